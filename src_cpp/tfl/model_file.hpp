// Checks that bytes are a whole .tflite file. Not every runtime checks that before it follows
// offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace clgpu::tfl {

/// The part of a .tflite file that is beyond its end, because the file was cut off or overwritten;
/// "" if there is none. The runtime checks what the values mean. For the options of StableHLO's
/// operations, which no kernel here reads, this checks the tables but not the vectors in them.
std::string model_file_problem(const std::uint8_t* data, std::size_t size);

}  // namespace clgpu::tfl
