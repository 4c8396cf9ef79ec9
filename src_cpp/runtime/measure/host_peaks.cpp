#include "runtime/measure/host_peaks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/processor.hpp"
#include "base/sha256.hpp"
#include "runtime/measure/peaks.hpp"

namespace clgpu::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Independent sums: latency times throughput of multiply-adds. They start at different values, so
// that the compiler does not merge them.
constexpr int kChains = 12;
constexpr int kRounds = 4096;

// One source, compiled for several instruction sets; the compiler contracts to multiply-adds if the
// set has any.
#if defined(__GNUC__) || defined(__clang__)
#define CLGPU_INLINE inline __attribute__((always_inline))
template <int Lanes>
struct Lane {};
template <>
struct Lane<4> {
  typedef float Vector __attribute__((vector_size(16)));
};
template <>
struct Lane<8> {
  typedef float Vector __attribute__((vector_size(32)));
};
template <>
struct Lane<16> {
  typedef float Vector __attribute__((vector_size(64)));
};

template <int Lanes>
CLGPU_INLINE float sum_products(float factor, float addend) {
  using Vector = typename Lane<Lanes>::Vector;
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + static_cast<float>(i);
  const Vector f = Vector{} + factor, a = Vector{} + addend;
  for (int round = 0; round < kRounds; ++round) {
    for (Vector& sum : sums) sum = sum * f + a;
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0] + sum[Lanes - 1];
  return total;
}
#else
template <int Lanes>
float sum_products(float factor, float addend) {
  float sums[kChains * Lanes];
  for (int i = 0; i < kChains * Lanes; ++i) sums[i] = static_cast<float>(i);
  for (int round = 0; round < kRounds; ++round) {
    for (float& sum : sums) sum = sum * factor + addend;
  }
  return sums[0] + sums[kChains * Lanes - 1];
}
#endif

struct Loop {
  float (*run)(float, float);
  int lanes;
};

float with_128_bits(float f, float a) { return sum_products<4>(f, a); }

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
__attribute__((target("avx2,fma"))) float with_avx2(float f, float a) {
  return sum_products<8>(f, a);
}
__attribute__((target("avx512f"))) float with_avx512(float f, float a) {
  return sum_products<16>(f, a);
}
std::vector<Loop> loops() {
  std::vector<Loop> all{{with_128_bits, 4}};
  if (has_avx2_and_fma()) all.push_back({with_avx2, 8});
  if (has_avx512()) all.push_back({with_avx512, 16});
  return all;
}
#else
std::vector<Loop> loops() { return {{with_128_bits, 4}}; }
#endif

// Shortest time of a call in seconds, of as many calls as fit into some milliseconds.
template <class F>
double best(F call) {
  call();
  double least = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(6);
  do {
    const auto start = Clock::now();
    call();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  } while (Clock::now() < end);
  return std::max(least, 1e-9);
}

double copy_rate(std::size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes);
  const double seconds = best([&] {
    std::memcpy(to.data(), from.data(), bytes);
    from[0] = static_cast<char>(from[0] + to[bytes - 1]);  // so that the compiler keeps every copy
  });
  return 2 * static_cast<double>(bytes) / seconds;
}

// Distinguishes the machines that share a store.
std::string identity() {
  std::string text = std::to_string(std::thread::hardware_concurrency());
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line) && !line.empty();) {
    for (const char* key : {"model name", "cpu family", "model\t", "stepping", "flags", "Features",
                            "CPU implementer", "CPU part"}) {
      if (line.rfind(key, 0) == 0) text += "\n" + line;
    }
  }
  return text;
}

}  // namespace

HostPeaks measure_host_peaks() {
  HostPeaks peaks;
  volatile float factor = 0.999F, addend = 0.001F, result = 0;
  for (const Loop& loop : loops()) {
    const double seconds = best([&] { result = loop.run(factor, addend); });
    peaks.fma_flops = std::max(peaks.fma_flops, 2.0 * kChains * kRounds * loop.lanes / seconds);
  }
  peaks.cache_bytes = copy_rate(std::size_t{1} << 17);
  peaks.memory_bytes = copy_rate(std::size_t{1} << 25);
  return peaks;
}

HostPeaks host_peaks_of(store::Store& store) {
  static auto* mutex = new std::mutex;
  static auto* done = new std::optional<HostPeaks>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (*done) return **done;
  const std::string key = sha256_hex("host 2\n" + identity());
  HostPeaks peaks;
  const std::vector<double*> fields = {&peaks.fma_flops, &peaks.cache_bytes, &peaks.memory_bytes};
  if (!read_numbers(store.get(store::kPeaks, key).value_or(""), fields)) {
    peaks = measure_host_peaks();
    store.put(store::kPeaks, key, write_numbers(fields), "rates of the host's CPU");
  }
  *done = peaks;
  return peaks;
}

}  // namespace clgpu::runtime
