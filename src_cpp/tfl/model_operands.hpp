// Checks that the nodes of a .tflite file have their operands. Runtimes read beyond their tensors,
// or follow null pointers, if an operand that an operation needs is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace clgpu::tfl {

/// The error, in words, if a node lacks an operand, names one that is not in the file, or writes a
/// tensor that another node writes; otherwise "". The file is whole (`model_file_problem`).
/// `may_lack(code, is_input, i)`: a node of that builtin operation may leave out its input or
/// output i.
std::string model_operands_problem(const std::uint8_t* data,
                                   bool (*may_lack)(int code, bool is_input, int i));

}  // namespace clgpu::tfl
