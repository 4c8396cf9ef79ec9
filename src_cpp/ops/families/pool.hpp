// Attributes of the pooling operations, into which a pass folds PAD.
#pragma once

#include <optional>

#include "ir/fields.hpp"
#include "ir/graph.hpp"
#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops {

struct PoolAttrs : ir::Attrs {
  static constexpr int kMax = 0, kAverage = 1, kRootMeanSquare = 2;
  int kind = kMax;  ///< macro KIND of kernels/pool
  int padding = kPaddingSame;
  int stride_h = 1, stride_w = 1;
  int filter_h = 1, filter_w = 1;
  /// Rows and columns around the image, added to those of the mode; only with VALID. They do not
  /// count, as those of the mode do not.
  int extra_top = 0, extra_bottom = 0, extra_left = 0, extra_right = 0;
  std::optional<Window> rows;  ///< for a band: replaces the padding of rows
  CLGPU_FIELDS(kind, padding, stride_h, stride_w, filter_h, filter_w, extra_top, extra_bottom,
               extra_left, extra_right, rows)
  static const char* words(std::string_view member) {
    if (member == "padding") return ", SAME, VALID";
    return "";
  }
};

/// The same pooling of an image that is still to get `border`, which must not change the result:
/// the maxima of numbers that are not below the border's. Null if this node cannot do that, or a
/// window may lie in the border as a whole.
ir::AttrsPtr with_border(const PoolAttrs& attrs, const Border& border);

/// Whether a node is AVERAGE_POOL_2D with one window, which covers the image.
bool averages_all_pixels(const ir::Graph& graph, const ir::Node& node);

}  // namespace clgpu::ops
