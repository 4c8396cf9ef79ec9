// What the rooms of element-wise operations on two tensors share: add and binary.
#pragma once

#include "ops/common.hpp"

namespace clgpu::ops {

/// Value of the macro OP in kernels/binary/binary.cl.
enum class BinaryOp : int {
  kAdd = 0,
  kSub = 1,
  kMul = 2,
  kDiv = 3,
  kMaximum = 4,
  kMinimum = 5,
  kPow = 6,
  kSquaredDifference = 7,
  kFloorDiv = 8,
  kFloorMod = 9,
  kPrelu = 10,
};

struct BinaryAttrs : ir::Attrs {
  BinaryOp op = BinaryOp::kAdd;
  bool quantized = false;  ///< of int8, uint8 or int16
  bool shifts = false;     ///< of those: operands are shifted only, see quantized_binary.hpp
};

/// Check and import of an operation on two tensors (ADD_N: two or more), see Family::import.
OrRefusal<Imported> import_binary(const tfl::NodeView& node);

/// The inputs broadcast together.
ir::Shapes infer_binary(const NodeContext& node);

std::vector<kernel::Candidate> binary_candidates(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops
