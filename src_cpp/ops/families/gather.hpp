// The attributes of GATHER.
#pragma once

#include "ir/fields.hpp"

namespace clgpu::ops {

struct GatherAttrs : ir::Attrs {
  int table = 0;  ///< slot of the input from which elements are taken; the other one has indices
  int axis = 0;
  int batch_dims = 0;  ///< leading axes that input and indices have in common; at most `axis`
  CLGPU_FIELDS(table, axis, batch_dims)
};

}  // namespace clgpu::ops
