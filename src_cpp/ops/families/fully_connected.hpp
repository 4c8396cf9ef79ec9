// FULLY_CONNECTED as a convolution whose pixels are rows: engines shared with CONV_2D.
#pragma once

#include <vector>

#include "ops/products/channels.hpp"
#include "ops/products/matmul.hpp"

namespace clgpu::ops::fully_connected {

constexpr int kSrc = 0, kWeights = 1, kBias = 2;  // inputs
constexpr ProductInputs kProduct{kSrc,
                                 kWeights,
                                 kBias,
                                 /*channel_axis=*/0,
                                 /*any_zero=*/true,
                                 /*narrow_bias=*/true};

/// 8-bit integers on CPUs, as pairs of 16 bits in registers; none for other types, nor for computed
/// weights, since packing belongs to load time.
std::vector<kernel::Candidate> pairs(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device);

/// Sums of floats in separate variables, for mobile GPUs; none for computed weights.
std::vector<kernel::Candidate> quads(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device);

}  // namespace clgpu::ops::fully_connected
