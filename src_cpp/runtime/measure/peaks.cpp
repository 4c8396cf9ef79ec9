#include "runtime/measure/peaks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <locale>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/sha256.hpp"
#include "cl/flusher.hpp"
#include "kernel/macros.hpp"
#include "kernel/sources.hpp"
#include "runtime/measure/probe.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kFile = "device/peaks.cl";
constexpr const char* kMmaFile = "device/mma_peak_nvidia.cl";
constexpr std::size_t kGroup = 64, kCopyGroup = 256;
constexpr std::size_t kItemsPerUnit = 2048;    // enough for a compute unit of any GPU known so far
constexpr std::size_t kLargestCopy = 1 << 28;  // bytes; many times the size of any cache
constexpr double kFmasPerRound = 16 * 8;       // of one work-item and lane, see peaks.cl
constexpr double kMmasPerRound = 32;           // of one warp, see mma_peak_nvidia.cl
constexpr double kReadsPerRound = 8;           // of one work-item, see device_reread
// Bytes that device_reread reads, for each compute unit and at least: more than a processor's own
// cache holds, less than the one behind it.
constexpr std::size_t kRereadPerUnit = 1 << 14, kLeastReread = 1 << 18;
constexpr int kShares = 14;            // measurements that share the time
constexpr double kKeptSeconds = 0.15;  // of the measurements that are kept

// The largest one that is not larger.
std::size_t power_of_two(std::size_t number) {
  std::size_t power = 1;
  while (power <= number / 2) power *= 2;
  return power;
}

class Probe {
 public:
  Probe(cl::Context& context, double seconds)
      : context_(context),
        queue_(context.create_queue()),
        flusher_(context),
        seconds_(seconds / kShares) {}

  Peaks measure() {
    Peaks peaks;
    for (const int lanes : {1, 4, 16}) peaks.fma_flops = std::max(peaks.fma_flops, fma(lanes));
    const DeviceInfo info = probe(context_, *store_).info;
    if (info.mma_f16) peaks.mma_f16_flops = mma(/*tf32=*/false);
    if (info.mma_tf32) peaks.mma_tf32_flops = mma(/*tf32=*/true);
    peaks.copy_bytes = copy();
    peaks.cache_bytes = std::max(reread(4, kGroup, 37), reread(16, 1, 1));  // GPUs, CPUs
    const cl::Memory word = buffer(sizeof(float));
    const cl::KernelHandle nothing = kernel(kFile, "device_nothing", "-DLANES=1");
    set(nothing, 0, word.get());
    const auto launch_nothing = [&] { launch(nothing, 1, 1); };
    peaks.launch_seconds = best(launch_nothing, /*in_flight=*/true);
    peaks.round_trip_seconds = best(launch_nothing, /*in_flight=*/false);
    transfers(peaks);
    return peaks;
  }

 private:
  cl::KernelHandle kernel(const char* file, const char* entry, const std::string& macros) {
    kernel::check_macros(file, macros);
    return context_.create_kernel({file, kernel::assemble(file), "-cl-std=CL1.2 " + macros}, entry,
                                  {}, *store_);
  }

  cl::Memory buffer(std::size_t bytes) { return context_.create_buffer(bytes, "a probe"); }

  template <class T>
  void set(const cl::KernelHandle& kernel, cl::cl_uint index, T value) {
    cl::check(context_.api().clSetKernelArg(kernel.get(), index, sizeof value, &value),
              "clSetKernelArg", kFile);
  }

  void launch(const cl::KernelHandle& kernel, std::size_t items, std::size_t group) {
    cl::check(context_.api().clEnqueueNDRangeKernel(queue_.get(), kernel.get(), 1, nullptr, &items,
                                                    &group, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel", kFile);
    flusher_.launched(queue_);
  }

  void finish() { cl::check(context_.api().clFinish(queue_.get()), "clFinish", kFile); }

  template <class F>
  double time(F enqueue, int count) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) enqueue();
    finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Shortest time in seconds per call of `enqueue`, of batches of some milliseconds with many calls
  // in flight.
  template <class F>
  double best(F enqueue, bool in_flight = true) {
    time(enqueue, 1);
    int count = 1;
    double least = time(enqueue, 1);
    while (in_flight && least * count < 5e-3 && count < 1 << 12) {
      count *= 4;
      least = time(enqueue, count) / count;
    }
    for (double spent = 0; spent < seconds_;) {
      const double batch = time(enqueue, count);
      least = std::min(least, batch / count);
      spent += batch;
    }
    return least;
  }

  double fma(int lanes) {
    const cl::KernelHandle kernel =
        this->kernel(kFile, "device_fma", "-DLANES=" + std::to_string(lanes));
    set(kernel, 2, 0.999F);
    set(kernel, 3, 0.001F);
    return arithmetic(kernel, static_cast<std::size_t>(lanes), 2 * kFmasPerRound * lanes);
  }

  double mma(bool tf32) {
    const cl::KernelHandle kernel =
        this->kernel(kMmaFile, "device_mma_peak", tf32 ? "-DMMA_TYPE=1" : "-DMMA_TYPE=0");
    constexpr cl::cl_uint kHalves = 0x2C002C00, kFloat = 0x3D800000;  // 1/16
    set(kernel, 2, tf32 ? kFloat : kHalves);
    const double operations = 2.0 * 16 * 8 * (tf32 ? 8 : 16) / 32;  // of a product, per work-item
    return arithmetic(kernel, 1, operations * kMmasPerRound);
  }

  // Of the kernels that compute or read in rounds: sets argument `index` to a number of rounds that
  // makes the time of starting and ending negligible, and returns it.
  template <class F>
  int set_rounds(const cl::KernelHandle& kernel, cl::cl_uint index, F enqueue) {
    cl::cl_int rounds = 1;
    set(kernel, index, rounds);
    time(enqueue, 1);
    while (time(enqueue, 1) < 2e-3 && rounds < 1 << 16) {
      rounds *= 4;
      set(kernel, index, rounds);
    }
    return rounds;
  }

  // Operations per second of a kernel in which each work-item writes `floats` floats and computes
  // `operations` operations per round. Its arguments 0 and 1 are the floats and the rounds.
  double arithmetic(const cl::KernelHandle& kernel, std::size_t floats, double operations) {
    const std::size_t group = std::min(kGroup, context_.max_work_group_size(kernel));
    const auto units = static_cast<std::size_t>(context_.device().info.compute_units);
    const std::size_t items = kItemsPerUnit * units / group * group;
    const cl::Memory sums = buffer(items * floats * sizeof(float));
    const auto enqueue = [&] { launch(kernel, items, group); };
    set(kernel, 0, sums.get());
    const int rounds = set_rounds(kernel, 1, enqueue);
    return operations * rounds * static_cast<double>(items) / best(enqueue);
  }

  double copy() {
    const cl::KernelHandle kernel = this->kernel(kFile, "device_copy", "-DLANES=1");
    const std::size_t group = std::min(kCopyGroup, context_.max_work_group_size(kernel));
    double seconds = 0;
    std::size_t bytes = 1 << 20;
    // Too large for any cache, unless the device is slow.
    for (;; bytes *= 4) {
      const cl::Memory from = buffer(bytes), to = buffer(bytes);
      set(kernel, 0, from.get());
      set(kernel, 1, to.get());
      const auto enqueue = [&] { launch(kernel, bytes / (4 * sizeof(float)), group); };
      time(enqueue, 1);
      const bool last = time(enqueue, 1) > 10e-3 || bytes * 4 > kLargestCopy ||
                        bytes * 4 > context_.device().info.max_object_bytes;
      if (!last) continue;
      seconds = best(enqueue);
      break;
    }
    return 2 * static_cast<double>(bytes) / seconds;
  }

  // Work-items that read vectors of `lanes` floats, in work-groups of at most `most`; each goes on
  // by the parts of `groups` of them.
  double reread(int lanes, std::size_t most, int groups) {
    const cl::KernelHandle kernel =
        this->kernel(kFile, "device_reread", "-DLANES=" + std::to_string(lanes));
    const auto units = static_cast<std::size_t>(context_.device().info.compute_units);
    const std::size_t group = power_of_two(std::min(most, context_.max_work_group_size(kernel)));
    const std::size_t bytes = power_of_two(std::max(kLeastReread, kRereadPerUnit * units));
    const std::size_t floats = bytes / sizeof(float),
                      items = floats / static_cast<std::size_t>(lanes);
    const cl::Memory from = buffer(bytes), to = buffer(bytes);
    set(kernel, 0, from.get());
    set(kernel, 1, to.get());
    set(kernel, 2, static_cast<cl::cl_int>(floats - 1));
    const auto part = static_cast<cl::cl_int>(group) * lanes;
    set(kernel, 3, part);
    set(kernel, 4, part * groups);
    const auto enqueue = [&] { launch(kernel, items, group); };
    const int rounds = set_rounds(kernel, 5, enqueue);
    return kReadsPerRound * rounds * static_cast<double>(bytes) / best(enqueue);
  }

  void transfers(Peaks& peaks) {
    std::vector<char> host(1 << 24);
    const cl::Memory device = buffer(host.size());
    const cl::Api& api = context_.api();
    const auto up = [&](std::size_t bytes) {
      return best(
          [&] {
            cl::check(api.clEnqueueWriteBuffer(queue_.get(), device.get(), cl::CL_TRUE, 0, bytes,
                                               host.data(), 0, nullptr, nullptr),
                      "clEnqueueWriteBuffer", "a probe");
          },
          /*in_flight=*/false);
    };
    const auto down = [&](std::size_t bytes) {
      return best(
          [&] {
            cl::check(api.clEnqueueReadBuffer(queue_.get(), device.get(), cl::CL_TRUE, 0, bytes,
                                              host.data(), 0, nullptr, nullptr),
                      "clEnqueueReadBuffer", "a probe");
          },
          /*in_flight=*/false);
    };
    peaks.upload_bytes = static_cast<double>(host.size()) / up(host.size());
    peaks.download_bytes = static_cast<double>(host.size()) / down(host.size());
    peaks.transfer_seconds = (up(sizeof(float)) + down(sizeof(float))) / 2;
  }

  cl::Context& context_;
  std::shared_ptr<store::Store> store_ = store::Store::off();
  cl::QueueHandle queue_;
  cl::Flusher flusher_;
  double seconds_;  // of one measurement
};

}  // namespace

Peaks measure_peaks(cl::Context& context, double seconds) {
  return Probe(context, seconds).measure();
}

std::string write_numbers(const std::vector<double*>& numbers) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(9);
  for (const double* number : numbers) text << *number << ' ';
  return text.str();
}

bool read_numbers(const std::string& text, const std::vector<double*>& numbers) {
  std::istringstream words(text);
  words.imbue(std::locale::classic());
  for (double* number : numbers) {
    if (!(words >> *number) || !std::isfinite(*number) || *number < 0) return false;
  }
  double more = 0;
  return !(words >> more);
}

void write(Writer& to, const Peaks& peaks) {
  write_object(to, [&] {
    field(to, "fma_flops", peaks.fma_flops);
    field(to, "mma_f16_flops", peaks.mma_f16_flops);
    field(to, "mma_tf32_flops", peaks.mma_tf32_flops);
    field(to, "copy_bytes", peaks.copy_bytes);
    field(to, "cache_bytes", peaks.cache_bytes);
    field(to, "launch_seconds", peaks.launch_seconds);
    field(to, "round_trip_seconds", peaks.round_trip_seconds);
    field(to, "upload_bytes", peaks.upload_bytes);
    field(to, "download_bytes", peaks.download_bytes);
    field(to, "transfer_seconds", peaks.transfer_seconds);
  });
}

Peaks peaks_of(cl::Context& context, store::Store& store) {
  static auto* mutex = new std::mutex;
  static auto* done = new std::map<std::string, Peaks>;
  const std::string key = sha256_hex("device 1\n" + context.identity() + kernel::assemble(kFile) +
                                     kernel::assemble(kMmaFile));
  const std::lock_guard<std::mutex> lock(*mutex);
  if (const auto found = done->find(key); found != done->end()) return found->second;
  Peaks peaks;
  const std::vector<double*> fields = {
      &peaks.fma_flops,      &peaks.mma_f16_flops,   &peaks.mma_tf32_flops,     &peaks.copy_bytes,
      &peaks.cache_bytes,    &peaks.launch_seconds,  &peaks.round_trip_seconds, &peaks.upload_bytes,
      &peaks.download_bytes, &peaks.transfer_seconds};
  if (!read_numbers(store.get(store::kPeaks, key).value_or(""), fields)) {
    peaks = measure_peaks(context, kKeptSeconds);
    store.put(store::kPeaks, key, write_numbers(fields), "rates of " + context.device().info.name);
  }
  return done->emplace(key, peaks).first->second;
}

}  // namespace clgpu::runtime
