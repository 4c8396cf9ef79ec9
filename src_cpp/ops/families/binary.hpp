// Shared by the families of element-wise operations on two tensors: add and binary.
#pragma once

#include "ops/shared/binary_op.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// Check and import of an operation on two tensors (ADD_N: two or more), see Family::import.
OrRefusal<Imported> import_binary(const tfl::NodeView& node);

/// The inputs broadcast together.
ir::Shapes infer_binary(const NodeContext& node);

/// Of ADD, SUB and MUL.
extern const IntegerForm kBinaryIntegers;

/// An addition of two tensors of floats in place of a part of the node `of`, with its epilogue.
ir::Node sum_of(const ir::Node& of, int a, int b, int result);

std::vector<kernel::Candidate> binary_candidates(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops
