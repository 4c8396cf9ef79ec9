// Shared by the engines of DEPTHWISE_CONV_2D; one file each in this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops::depthwise_conv2d {

constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

bool quantized(const NodeContext& node);

/// Output channels per input channel.
int multiplier(const NodeContext& node);

/// Channels per work-item: at most `most`, without a remainder.
int vector_width(const NodeContext& node, int most);

/// The stored integer that represents zero in the weights.
std::int32_t weights_zero(const NodeContext& node);

/// Inputs that a kernel reads as images.
struct Images {
  bool image = false, weights = false;
  bool any() const { return image || weights; }
};

/// A candidate with one launch, after the load-time launches of quantised nodes. `vectors`: the
/// kernel has the macro QUICK, and results are vectors.
kernel::Candidate make_candidate(const NodeContext& node, const std::string& name, const char* file,
                                 const char* entry, std::optional<bool> vectors = {},
                                 Images images = {});

/// Appends the value of elements outside of the image, and the value that represents zero in the
/// weights.
void push_zeros(kernel::Launch& launch, const NodeContext& node);

/// Appends all sizes, strides, dilations and paddings, then zeros as above.
void push_geometry(kernel::Launch& launch, const NodeContext& node);

/// A work-item keeps pixels and filter in registers; best guess first, none if they do not fit.
std::vector<kernel::Candidate> blocks(const NodeContext& node, const DeviceInfo& device);

/// A work-item keeps some pixels of a row in named vectors; best guess first. One candidate for
/// devices that have other engines.
std::vector<kernel::Candidate> quads(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops::depthwise_conv2d
