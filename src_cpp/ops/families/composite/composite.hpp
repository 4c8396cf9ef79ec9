// STABLEHLO_COMPOSITE: operations that a file both names and defines by a graph of its own.
#pragma once

#include <map>
#include <string>

#include "ops/shared/common.hpp"
#include "tfl/decomposition.hpp"

namespace clgpu::ops::composite {

enum Kind : int { kAttention, kRmsNorm, kL2Norm, kGroupNorm };

struct CompositeAttrs : ir::Attrs {
  int kind = kAttention;
  float scale = 1.0F;  ///< of the products of queries and keys
  float epsilon = 0.0F;
  int groups = 1;  ///< of channels
  CLGPU_FIELDS(kind, scale, epsilon, groups)
  static const char* words(std::string_view member) {
    return member == "kind" ? "attention, rms_norm, l2_norm, group_norm" : "";
  }
};

using Numbers = std::map<std::string, double>;

// What the attributes and operands of a node mean, or why there are no kernels for them.
OrRefusal<CompositeAttrs> import_attention(const tfl::NodeView& node, const Numbers& numbers);
OrRefusal<CompositeAttrs> import_row_norm(const tfl::NodeView& node, const Numbers& numbers,
                                          Kind kind);
OrRefusal<CompositeAttrs> import_group_norm(const tfl::NodeView& node, const Numbers& numbers);

/// Whether the graph computes what the kernels compute for these attributes. Names promise less
/// than a graph defines, and the runtime computes the graph.
bool defines(const tfl::Decomposition& graph, const tfl::NodeView& node,
             const CompositeAttrs& attrs);

ir::Shape attention_shape(const NodeContext& node);
ir::Shape norm_shape(const NodeContext& node);

std::vector<kernel::Candidate> attention(const NodeContext& node, const DeviceInfo& device);

double attention_flops(const NodeContext& node);

}  // namespace clgpu::ops::composite
