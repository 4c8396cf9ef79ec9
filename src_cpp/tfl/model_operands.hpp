// Whether the nodes of a .tflite file have their operands. Runtimes read beyond their tensors, or
// follow null pointers, where one is left out that an operation needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace clgpu::tfl {

/// Which node lacks an operand, names one that is not in the file, or writes a tensor that another
/// one writes, in words; "" where none does.
/// The file is whole (`model_file_problem`). `may_lack(code, is_input, i)`: a node of that builtin
/// operation may leave out its input or output i.
std::string model_operands_problem(const std::uint8_t* data,
                                   bool (*may_lack)(int code, bool is_input, int i));

}  // namespace clgpu::tfl
