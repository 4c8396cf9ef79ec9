// Conversion of indices and sizes to std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clgpu {

/// An index or a size, known not to be negative.
constexpr std::size_t uz(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace clgpu
