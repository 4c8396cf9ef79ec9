// What passes may know of element-wise operations on one tensor.
#pragma once

#include <optional>

#include "ir/node.hpp"
#include "ops/quantized/table_function.hpp"

namespace clgpu::ops {

/// Value of the macro OP in kernels/unary/unary.cl.
enum class UnaryOp : int {
  kIdentity = 0,
  kAbs = 1,
  kNeg = 2,
  kExp = 3,
  kLog = 4,
  kSqrt = 5,
  kRsqrt = 6,
  kSquare = 7,
  kSin = 8,
  kCos = 9,
  kFloor = 10,
  kCeil = 11,
  kRound = 12,
  kSign = 13,
};

/// The function of a node that is nothing but an ir::Activation of one tensor (RELU, TANH, GELU
/// ...), so that the previous node can apply it in its epilogue; nullopt for every other node.
std::optional<ir::Epilogue> as_epilogue(const ir::Node& node);

/// The node that applies an activation to `x`. It replaces `last` and has its result.
ir::Node activation_of(const ir::Node& last, int x, ir::Activation activation);

/// The operation of a node of this family on floats or wide integers; nullopt for every other node.
std::optional<UnaryOp> unary_op(const ir::Node& node);

/// The operation of a node of this family on integers of at most 16 bits, which table_of()
/// tabulates with the node's input and output; nullopt for every other node.
std::optional<TableFunction> table_function(const ir::Node& node);

}  // namespace clgpu::ops
