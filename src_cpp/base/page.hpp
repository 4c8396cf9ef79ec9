// The system's pages of memory.
#pragma once

#include <cstddef>

namespace clgpu {

/// Bytes of a page: 4096 on x86-64; on ARM, depending on the kernel, also 16384 or 65536.
std::size_t page_bytes();

}  // namespace clgpu
