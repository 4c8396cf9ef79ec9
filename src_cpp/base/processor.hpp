// What this machine's processor and its system have, where code of ours has more than one form.
#pragma once

namespace clgpu {

/// Registers of 256 bits, products with sums and arithmetic of integers in them.
bool has_avx2_and_fma();
/// Registers of 512 bits.
bool has_avx512();

}  // namespace clgpu
