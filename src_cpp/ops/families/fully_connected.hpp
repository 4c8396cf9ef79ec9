// FULLY_CONNECTED as a convolution whose pixels are rows: engines shared with CONV_2D.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/products/channels.hpp"
#include "ops/products/matmul.hpp"

namespace clgpu::ops::fully_connected {

constexpr int kSrc = 0, kWeights = 1, kBias = 2;  // inputs
/// Further inputs of a fused node (fully_connected_fused.hpp).
constexpr int kNormWeight = 7, kWeights2 = 8, kWeightScales2 = 9;
constexpr int kCosines = 10, kSines = 11, kOld = 12, kStart = 13;
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

/// What a fused node computes besides the product.
struct Fusion {
  bool normed = false;  ///< rows of the input are divided by their lengths, times kNormWeight
  float epsilon = 0.0F;
  bool gated = false;  ///< the result is multiplied by the product with kWeights2
  /// Pairs of columns, so many apart, are turned by the angles of kCosines and kSines; 0: none are.
  int apart = 0;
  /// The rows replace a part of kOld.
  struct Update {
    int axis;          ///< of kOld; its place is element `axis` of kStart
    int most;          ///< the last place, where the rows end with kOld
    std::int64_t row;  ///< elements of kOld from one place to the next
  };
  std::optional<Update> update{};
};

/// Up to 8 rows of halves, or 4 of floats as two halves each, on tensor cores, for which weights of
/// 4 and 8 bits become halves; none for other nodes, and for more than one row that is normalised
/// or turned.
std::vector<kernel::Candidate> warps(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device, const Fusion& fusion = {});

/// The attributes of a node of FULLY_CONNECTED whose result gets `ones` axes of size 1 in front of
/// its two; null of other nodes, and of those that keep the axes of their input.
ir::AttrsPtr with_ones(const ir::Node& node, int ones);

/// The variants of fused nodes, without their names: that end as a product does, and that end in a
/// rotation or an update.
Family fused_family();
Family ended_family();

}  // namespace clgpu::ops::fully_connected
