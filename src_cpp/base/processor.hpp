// Features of the processor and the system for which our code has variants.
#pragma once

namespace clgpu {

/// Vectors of 256 bits with fused multiply-adds and integer arithmetic.
bool has_avx2_and_fma();
/// Vectors of 512 bits.
bool has_avx512();

}  // namespace clgpu
