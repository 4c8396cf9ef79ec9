// Normalisations by mean and variance, for the passes that make one node of each.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::passes {

/// A kind of normalisation: over which axes the moments are, and the node that computes it.
struct Moments {
  const char* pass;  ///< its name, for steps
  /// Whether a node is the mean over these axes; it keeps them with size 1.
  bool (*is_mean)(const ir::Graph& graph, const ir::Node& node);
  /// The node that computes `(x - mean) / sqrt(variance + epsilon) * scale + bias` in place of
  /// `last`; scale and bias are constants with one number per channel, or -1.
  ir::Node (*node)(const ir::Node& last, int x, float epsilon, int scale, int bias);
};

/// MEAN, SQUARED_DIFFERENCE, RSQRT and so on become one node, in whatever form the converter has
/// written them.
void fuse_moments(ir::Graph& graph, const Moments& moments);

}  // namespace clgpu::passes
