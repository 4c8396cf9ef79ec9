#include "plan/memory.hpp"

#include <algorithm>
#include <climits>
#include <numeric>

namespace clgpu::plan {
namespace {

// Steps that would stay unused between `block` and its neighbour in time among `members`; -1 when
// one of them is alive at the same time.
int gap(const Block& block, const std::vector<const Block*>& members) {
  int shortest = INT_MAX;
  for (const Block* other : members) {
    if (other->last < block.first) {
      shortest = std::min(shortest, block.first - other->last);
    } else if (block.last < other->first) {
      shortest = std::min(shortest, other->first - block.last);
    } else {
      return -1;
    }
  }
  return shortest;
}

}  // namespace

Layout lay_out(const std::vector<Block>& blocks) {
  Layout layout;
  layout.objects.resize(blocks.size());
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  std::vector<std::vector<const Block*>> members;  // of each object
  for (const std::size_t i : order) {
    std::size_t best = members.size();
    int best_gap = INT_MAX;
    for (std::size_t object = 0; object < members.size(); ++object) {
      const int unused = gap(blocks[i], members[object]);
      if (unused >= 0 && unused < best_gap) {
        best = object;
        best_gap = unused;
      }
    }
    if (best == members.size()) {
      members.emplace_back();
      layout.bytes.push_back(blocks[i].bytes);
    }
    members[best].push_back(&blocks[i]);
    layout.objects[i] = static_cast<int>(best);
  }
  return layout;
}

}  // namespace clgpu::plan
