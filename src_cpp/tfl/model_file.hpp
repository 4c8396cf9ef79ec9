// Whether bytes are a whole .tflite file. Not every runtime checks that before it follows offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace clgpu::tfl {

/// What of a .tflite file lies beyond its end, or "" where nothing does: a file that was cut off or
/// overwritten. What the values mean is the runtime's to check; of the options of StableHLO's
/// operations, which no kernel here reads, the tables are looked at and not the vectors in them.
std::string model_file_problem(const std::uint8_t* data, std::size_t size);

}  // namespace clgpu::tfl
