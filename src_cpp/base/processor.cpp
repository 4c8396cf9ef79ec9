#include "base/processor.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace clgpu {
namespace {

struct Processor {
  bool avx2_and_fma = false, avx512 = false;
};

#if defined(__x86_64__) && defined(__GNUC__)
// Not __builtin_cpu_supports: its table is in libgcc, which not every clang installation has.
Processor ask() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  const bool fma = (c & bit_FMA) != 0, kept = (c & bit_OSXSAVE) != 0;
  if (!kept || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  // The registers that the system saves when it switches processes: bits 1 and 2 are the parts of
  // 128 and 256 bits; bits 5 to 7 are masks, the upper halves and the second sixteen registers of
  // 512.
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool ymm = (low & 0x06) == 0x06, zmm = (low & 0xe6) == 0xe6;
  return {ymm && fma && (b & bit_AVX2) != 0, zmm && (b & bit_AVX512F) != 0};
}
#else
Processor ask() { return {}; }
#endif

const Processor& processor() {
  static const Processor found = ask();
  return found;
}

}  // namespace

bool has_avx2_and_fma() { return processor().avx2_and_fma; }
bool has_avx512() { return processor().avx512; }

}  // namespace clgpu
