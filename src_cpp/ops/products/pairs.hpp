// Products of 8-bit integers on CPUs, widened to pairs of 16 bits, which x86 multiplies and adds at
// twice the rate of floats: kernels/conv2d/pairs.cl, for convolutions and rows of a matrix.
#pragma once

#include <string>
#include <vector>

#include "ops/products/channels.hpp"

namespace clgpu::ops {

/// `pixels` sums of `depth` products for each of `channels` channels of each of `groups` groups.
struct PairProducts {
  int src, weights;  ///< inputs; weights [groups * channels, depth], 8 bits
  std::int64_t pixels, groups, channels, depth;
};

/// A work-item keeps `vectors` vectors of `width` channels x `pixels` pixels.
struct PairTile {
  int width, vectors, pixels;

  int panel() const { return width * vectors; }
  /// "pairs_14": the number of pixels distinguishes the tiles of a node.
  std::string name() const { return "pairs_" + std::to_string(pixels); }
};

/// The two best tiles, best guess first.
std::vector<PairTile> pair_tiles(const PairProducts& products, const DeviceInfo& device);

/// Packs the weights into scratch buffer 0 of a candidate; `scratch` is set to its size.
kernel::Launch pack_pairs(const NodeContext& node, const PairProducts& products,
                          const PairTile& tile, kernel::Scratch& scratch);

/// The launch of kernels/conv2d/pairs.cl with macros, range and arguments up to group_out; the
/// caller appends those of the geometry and src_zero. The types of src and of the result are
/// already set.
void push_pairs(kernel::Launch& launch, const NodeContext& node, const DeviceInfo& device,
                const PairProducts& products, const PairTile& tile, const ChannelTable& channels);

}  // namespace clgpu::ops
