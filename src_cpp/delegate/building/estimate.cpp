#include "delegate/building/estimate.hpp"

#include <algorithm>
#include <utility>

#include "runtime/measure/host_peaks.hpp"
#include "runtime/measure/peaks.hpp"

namespace clgpu::delegate {
namespace {

plan::DeviceRates device_rates(const Target& target) {
  const DeviceInfo& info = target.device();
  const runtime::Peaks peaks = runtime::peaks_of(*target.context, *target.store);
  plan::DeviceRates rates;
  rates.is_cpu = info.is_cpu();
  rates.units = std::max(info.compute_units, 1);
  // Tensor cores multiply int8 twice as fast as half floats; dot-product instructions do four
  // multiplications in one.
  const double int8 = peaks.mma_f16_flops > 0    ? 2 * peaks.mma_f16_flops
                      : info.dot8 != Dot8::kNone ? 4 * peaks.fma_flops
                                                 : peaks.fma_flops;
  rates.flops = {peaks.fma_flops, peaks.mma_tf32_flops, peaks.mma_f16_flops, int8};
  // These GPUs pack two halves into a register. It is not measured: the kernel would have to be
  // compiled for half.
  if (info.is_mobile() && info.half_arithmetic)
    rates.flops[static_cast<std::size_t>(plan::Arithmetic::kHalfSums)] = 2 * peaks.fma_flops;
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

}  // namespace

plan::Cost expected_cost(const Target& target, const plan::Load& load, int threads) {
  return plan::cost_of(load, device_rates(target), cpu_rates(*target.store, threads));
}

std::vector<plan::Load> loads(const Target& target, const Ledger& ledger) {
  const Ledger::Shown shown = ledger.shown();
  std::vector<plan::Load> loads;
  for (std::size_t i = 0; i < shown.partitions.size(); ++i) {
    const std::optional<Live::Held> held = shown.partitions[i].hold();
    if (!held) continue;
    const auto nodes = static_cast<int>(shown.report.partitions.at(i).nodes.size());
    loads.push_back(plan::load_of(*held->graph, held->executor->plan(), target.device(), nodes));
  }
  return loads;
}

std::vector<std::pair<plan::Load, plan::Cost>> estimates(const Target& target, const Ledger& ledger,
                                                         int threads) {
  std::vector<std::pair<plan::Load, plan::Cost>> estimates;
  for (plan::Load& load : loads(target, ledger)) {
    const plan::Cost cost = expected_cost(target, load, threads);
    estimates.emplace_back(std::move(load), cost);
  }
  return estimates;
}

}  // namespace clgpu::delegate
