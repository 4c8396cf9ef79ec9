// The system's pages of memory.
#pragma once

#include <cstddef>

namespace clgpu {

/// Bytes of a page: 4096 on x86-64; 16384 and 65536 are common on ARM, by the kernel that runs.
std::size_t page_bytes();

}  // namespace clgpu
