// Shared memory from lifetimes: the object and the offset of each block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clgpu::plan {

/// A block of memory needed from step `first` to step `last`, both included.
struct Block {
  std::int64_t bytes;
  int first, last;
};

/// Limits of a device.
struct ObjectLimits {
  std::int64_t max_bytes = INT64_MAX;  ///< of one object
  std::int64_t alignment = 1;          ///< of offsets, in bytes
  bool offsets = true;                 ///< false: every block is at the start of its object
  /// For devices on which overlapping parts of an object cost time. Above 0, sizes of blocks are
  /// rounded up to this many classes per power of two. If several places cost no memory, a block
  /// takes one that a block of its class has at another time.
  int size_classes = 0;
};

struct Layout {
  std::vector<int> objects;           ///< one per block: index of its object
  std::vector<std::int64_t> offsets;  ///< one per block: offset in the object
  std::vector<std::int64_t> spans;    ///< one per block: bytes kept for it; its size, or more
  std::vector<std::int64_t> bytes;    ///< of each object; none is larger than the limit
  std::string strategy;               ///< the one that found this layout

  std::int64_t total() const;  ///< bytes of all objects
};

/// The blocks of a layout that would lie above `bytes` if its objects lay one behind the other.
std::vector<Block> blocks_above(std::int64_t bytes, const std::vector<Block>& blocks,
                                const Layout& layout);

/// Places blocks so that no two that are alive at the same time overlap.
///
/// Tries several orders of placing and keeps the layout with the fewest bytes; among equals it
/// prefers whole objects, then fewer objects. Each is greedy, as in Pisarchyk and Lee, "Efficient
/// Memory Management for Deep Neural Net Inference" (2020): a block goes to the smallest gap that
/// takes it between the blocks alive at the same time, else to the place where its object grows
/// least. The time grows with the square of the number of blocks: 10 ms for 1000.
///
/// No block may be larger than the limit.
Layout lay_out(const std::vector<Block>& blocks, const ObjectLimits& limits);

/// Every block in a separate object.
Layout apart(const std::vector<Block>& blocks);

/// The most bytes alive at one step: no layout needs less.
std::int64_t lower_bound(const std::vector<Block>& blocks);

}  // namespace clgpu::plan
