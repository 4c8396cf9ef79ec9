#include "plan/memory.hpp"

#include <algorithm>
#include <numeric>

namespace clgpu::plan {

Layout lay_out(const std::vector<Block>& blocks, std::int64_t alignment, std::int64_t page_limit) {
  Layout layout;
  layout.slots.resize(blocks.size());
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  std::vector<std::vector<std::size_t>> placed;  // per page, sorted by offset
  for (const std::size_t i : order) {
    const std::int64_t bytes = (blocks[i].bytes + alignment - 1) / alignment * alignment;
    for (int page = 0;; ++page) {
      const auto p = static_cast<std::size_t>(page);
      if (p == placed.size()) {
        placed.emplace_back();
        layout.pages.push_back(0);
      }
      std::int64_t offset = 0;
      for (const std::size_t j : placed[p]) {
        if (blocks[j].last < blocks[i].first || blocks[i].last < blocks[j].first) continue;
        if (layout.slots[j].offset >= offset + bytes) break;
        const std::int64_t end = layout.slots[j].offset + blocks[j].bytes;
        offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
      }
      if (offset + bytes > page_limit && !placed[p].empty()) continue;
      layout.slots[i] = {page, offset};
      layout.pages[p] = std::max(layout.pages[p], offset + bytes);
      const auto position = std::find_if(placed[p].begin(), placed[p].end(), [&](std::size_t j) {
        return layout.slots[j].offset > offset;
      });
      placed[p].insert(position, i);
      break;
    }
  }
  return layout;
}

}  // namespace clgpu::plan
