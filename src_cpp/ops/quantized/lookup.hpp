// Functions of one quantised tensor as tables: what TFLite's reference kernels make of each value
// that can be stored.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/family.hpp"
#include "ops/quantized/table_function.hpp"

namespace clgpu::ops {

/// Refuses an input of a type that an operation on one tensor is not defined on.
std::optional<Refusal> check_unary_input(const tfl::TensorView& src, int builtin);

/// Refuses types and scales that the reference kernels do not take.
std::optional<Refusal> check_table(const tfl::NodeView& node, const TableFunction& function);

/// The stored result for each stored value, that of value v at index v modulo 2^8 (2^16 where src
/// is int16). A result of 8 bits is to be cut from its number.
std::vector<std::int16_t> table_of(const TableFunction& function, const ir::Tensor& src,
                                   const ir::Tensor& dst);

/// The same in memory, in elements of dst's storage.
kernel::Scratch table_scratch(const TableFunction& function, const ir::Tensor& src,
                              const ir::Tensor& dst);

}  // namespace clgpu::ops
