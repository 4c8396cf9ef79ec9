// The element-wise operations on two tensors.
#pragma once

#include "ir/fields.hpp"

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
  kAtan2 = 11,
  kGated = 12,  ///< a * b, but 0 where b is 0, whatever a is: passes::skip_experts makes its nodes
};

struct BinaryAttrs : ir::Attrs {
  BinaryOp op = BinaryOp::kAdd;
  bool quantized = false;  ///< of int8, uint8 or int16
  bool shifts = false;     ///< quantised: operands are only shifted, by powers of two
  CLGPU_FIELDS(op, quantized, shifts)
  static const char* words(std::string_view member) {
    if (member == "op")
      return "add, sub, mul, div, maximum, minimum, pow, squared_difference, floor_div, floor_mod, "
             "prelu, atan2, gated";
    return "";
  }
};

}  // namespace clgpu::ops
