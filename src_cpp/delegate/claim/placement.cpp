#include "delegate/claim/placement.hpp"

#include <algorithm>
#include <cstdio>

#include "runtime/measure/host_peaks.hpp"
#include "runtime/measure/peaks.hpp"

namespace clgpu::delegate {

void Verdicts::set(std::optional<Verdict> verdict, std::string note) {
  const std::lock_guard<std::mutex> lock(mutex_);
  by_thread_[std::this_thread::get_id()] = {std::move(verdict), std::move(note)};
}

std::pair<std::optional<Verdict>, std::string> Verdicts::get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_thread_.find(std::this_thread::get_id());
  if (found == by_thread_.end()) return {std::nullopt, {}};
  return found->second;
}

plan::DeviceRates device_rates(cl::Context& context, const DeviceInfo& info, store::Store& store) {
  const runtime::Peaks peaks = runtime::peaks_of(context, store);
  plan::DeviceRates rates;
  rates.is_cpu = info.is_cpu();
  rates.units = std::max(info.compute_units, 1);
  // Tensor cores multiply int8 twice as fast as halves; sums of four products are four in one.
  const double int8 = peaks.mma_f16_flops > 0    ? 2 * peaks.mma_f16_flops
                      : info.dot8 != Dot8::kNone ? 4 * peaks.fma_flops
                                                 : peaks.fma_flops;
  rates.flops = {peaks.fma_flops, peaks.mma_tf32_flops, peaks.mma_f16_flops, int8};
  rates.bytes = peaks.copy_bytes;
  rates.up_bytes = peaks.upload_bytes;
  rates.down_bytes = peaks.download_bytes;
  rates.launch_seconds = peaks.launch_seconds;
  rates.round_trip_seconds = peaks.round_trip_seconds;
  rates.transfer_seconds = peaks.transfer_seconds;
  return rates;
}

plan::CpuRates cpu_rates(store::Store& store, int threads) {
  const runtime::HostPeaks peaks = runtime::host_peaks_of(store);
  return {threads, peaks.fma_flops, peaks.cache_bytes, peaks.memory_bytes};
}

Refusal refusal_of(const plan::Cost& cost) {
  const auto milliseconds = [](double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
    return std::string(text);
  };
  const std::string cpu = milliseconds(cost.cpu_seconds),
                    device = milliseconds(cost.device_seconds);
  return {Why::kCost,
          "",
          "the CPU is expected to take " + cpu + ", the device " + device,
          device,
          {"less than " + cpu}};
}

int usable_threads(int recommended) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(recommended, 1, cores);
}

}  // namespace clgpu::delegate
