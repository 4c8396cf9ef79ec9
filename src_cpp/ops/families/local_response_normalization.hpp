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

/// Whether the kernel of the next function computes a normalisation of `image`: radii up to 4, and
/// a multiple of four channels.
bool reads_vectors(const LrnAttrs& attrs, const ir::Shape& image);

/// The kernel that reads four channels at once, if it computes the node. With `pooling` it pools
/// the normalised image, and output 0 is the pooled one.
std::vector<kernel::Candidate> normalization_kernels(const NodeContext& node, const LrnAttrs& attrs,
                                                     const PoolAttrs* pooling);

}  // namespace clgpu::ops
