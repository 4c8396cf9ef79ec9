// A function of one quantised tensor.
#pragma once

#include "ir/fields.hpp"

namespace clgpu::ops {

/// An operation on one quantised tensor.
struct TableFunction {
  int builtin = 0;           ///< TFLite's code
  float alpha = 0.0F;        ///< slope of LEAKY_RELU
  bool approximate = false;  ///< for GELU: with tanh
  CLGPU_FIELDS(builtin, alpha, approximate)
};

}  // namespace clgpu::ops
