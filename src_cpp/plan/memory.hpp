// From lifetimes to shared memory: which intermediate tensors may take turns in one buffer.
#pragma once

#include <cstdint>
#include <vector>

namespace clgpu::plan {

/// A block of memory needed from step `first` to step `last`, both included.
struct Block {
  std::int64_t bytes;
  int first, last;
};

struct Layout {
  std::vector<int> objects;         ///< one per block: index of the object it lies in, at its start
  std::vector<std::int64_t> bytes;  ///< of each object: that of the largest block in it
};

/// Blocks share an object when no two of them are alive at the same time.
///
/// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// 2020, section 4.3): from the largest block to the smallest, each goes to the object that leaves
/// the shortest time unused next to it, or to a new one. Whole objects rather than offsets into
/// one: an NVIDIA driver (580) crashes when sub-buffers are released in the order they were created
/// in, offsets as kernel arguments would burden every kernel, and no object grows beyond a device's
/// limit.
Layout lay_out(const std::vector<Block>& blocks);

}  // namespace clgpu::plan
