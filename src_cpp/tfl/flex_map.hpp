// Numbers in a FlexBuffers map: the attributes of STABLEHLO_COMPOSITE. Nobody has checked the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/refusal.hpp"

namespace clgpu::tfl {

/// The entries of a map that are integers, booleans or floats; others are left out. No bytes at all
/// are an empty map. Refuses (kMalformed) bytes that are no map, or that point outside of
/// themselves.
OrRefusal<std::map<std::string, double>> read_flex_map(const std::uint8_t* data, std::size_t size);

}  // namespace clgpu::tfl
