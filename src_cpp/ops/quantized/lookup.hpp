// Functions of one quantised tensor as tables: the result of TFLite's reference kernels for each
// value that can be stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/family.hpp"
#include "ops/quantized/table_function.hpp"

namespace clgpu::ops {

/// Refuses an input of a type for which an operation on one tensor is not defined.
std::optional<Refusal> check_unary_input(const tfl::TensorView& src, int builtin);

/// Refuses types and scales that the reference kernels do not accept.
std::optional<Refusal> check_table(const tfl::NodeView& node, const TableFunction& function);

/// Which scales of an int8 output the reference kernels take; empty if `dst` has one of them.
std::string scale_needed(const TableFunction& function, const ir::Tensor& src,
                         const ir::Tensor& dst);

/// The stored result for each stored value; that of value v is at index v modulo 2^8 (2^16 if src
/// is int16). A result of 8 bits must be truncated from its number.
std::vector<std::int16_t> table_of(const TableFunction& function, const ir::Tensor& src,
                                   const ir::Tensor& dst);

/// The same, as bytes in dst's storage.
kernel::Scratch table_scratch(const TableFunction& function, const ir::Tensor& src,
                              const ir::Tensor& dst);

}  // namespace clgpu::ops
