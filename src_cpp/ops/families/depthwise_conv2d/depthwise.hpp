// What the engines of DEPTHWISE_CONV_2D share; one file each in this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops::depthwise_conv2d {

constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

bool quantized(const NodeContext& node);

/// Output channels of an input channel.
int multiplier(const NodeContext& node);

/// Channels of a work-item: at most `most`, without a rest.
int vector_width(const NodeContext& node, int most);

/// Number that stands for zero among the weights.
std::int32_t weights_zero(const NodeContext& node);

/// Inputs that a kernel reads as images.
struct Images {
  bool image = false, weights = false;
  bool any() const { return image || weights; }
};

/// A candidate of one launch, after what quantised nodes do at load time. `vectors`: the kernel has
/// the macro QUICK, and results come as vectors.
kernel::Candidate make_candidate(const NodeContext& node, const std::string& name, const char* file,
                                 const char* entry, std::optional<bool> vectors = {},
                                 Images images = {});

/// Appends what an element outside of the image is, and what stands for zero among the weights.
void push_zeros(kernel::Launch& launch, const NodeContext& node);

/// Appends the sizes of all that takes part, strides, dilations and paddings, then zeros as above.
void push_geometry(kernel::Launch& launch, const NodeContext& node);

/// A work-item keeps pixels and filter in registers; best guess first, none where they do not fit.
std::vector<kernel::Candidate> blocks(const NodeContext& node, const DeviceInfo& device);

/// A work-item keeps some pixels of a row in vectors by name; best guess first. One for devices
/// that have others.
std::vector<kernel::Candidate> quads(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops::depthwise_conv2d
