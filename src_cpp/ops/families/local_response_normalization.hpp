// Attributes of LOCAL_RESPONSE_NORMALIZATION, which a pass merges with the pooling of its result.
#pragma once

#include "ir/fields.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kLocalResponseNormalizationFamily;

struct LrnAttrs : ir::Attrs {
  int radius = 0;
  float bias = 0.0F, alpha = 0.0F, beta = 0.0F;
  CLGPU_FIELDS(radius, bias, alpha, beta)
};

}  // namespace clgpu::ops
