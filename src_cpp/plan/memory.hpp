// From lifetimes to offsets: which intermediate tensors may share memory.
#pragma once

#include <cstdint>
#include <vector>

namespace clgpu::plan {

/// A block of memory needed from step `first` to step `last`, both included.
struct Block {
  std::int64_t bytes;
  int first, last;
};

struct Slot {
  int page;             ///< which of the arena's buffers
  std::int64_t offset;  ///< bytes from its start, a multiple of the alignment
};

struct Layout {
  std::vector<Slot> slots;          ///< one per block
  std::vector<std::int64_t> pages;  ///< bytes of each of the arena's buffers
};

/// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// 2020): blocks from the largest to the smallest, each at the lowest offset where it overlaps no
/// block alive at the same time. A page is never larger than `page_limit` unless one block is.
Layout lay_out(const std::vector<Block>& blocks, std::int64_t alignment, std::int64_t page_limit);

}  // namespace clgpu::plan
