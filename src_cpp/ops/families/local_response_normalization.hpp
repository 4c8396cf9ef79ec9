// Attributes of LOCAL_RESPONSE_NORMALIZATION, which a pass merges with the pooling of its result.
#pragma once

#include <vector>

#include "ir/fields.hpp"
#include "ops/families/pool.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kLocalResponseNormalizationFamily;

struct LrnAttrs : ir::Attrs {
  int radius = 0;
  float bias = 0.0F, alpha = 0.0F, beta = 0.0F;
  CLGPU_FIELDS(radius, bias, alpha, beta)
};

/// A kernel of the normalisation and, unless it is null, of the pooling of its result, which the
/// node has; none for radii above 4, and unless channels are a multiple of four.
std::vector<kernel::Candidate> normalization(const NodeContext& node, const LrnAttrs& attrs,
                                             const PoolAttrs* pooling);

}  // namespace clgpu::ops
