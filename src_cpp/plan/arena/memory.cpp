#include "plan/arena/memory.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"

namespace clgpu::plan {
namespace {

using Order = std::vector<std::size_t>;

// Steps that would stay unused between `block` and its neighbour in time among `members`; -1 if one
// of them is alive at the same time.
int pause(const Block& block, const std::vector<const Block*>& members) {
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

// Section 4.3 of the paper: from the largest block to the smallest, each is assigned to the object
// that stays unused for the shortest time next to it, or to a new one.
Layout whole_objects(const std::vector<Block>& blocks, const Order& by_size) {
  Layout layout;
  layout.objects.resize(blocks.size());
  layout.offsets.resize(blocks.size());
  std::vector<std::vector<const Block*>> members;  // of each object
  for (const std::size_t i : by_size) {
    std::size_t best = members.size();
    int shortest = INT_MAX;
    for (std::size_t object = 0; object < members.size(); ++object) {
      const int unused = pause(blocks[i], members[object]);
      if (unused >= 0 && unused < shortest) {
        best = object;
        shortest = unused;
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

struct Placed {
  std::int64_t begin, end;
  int first, last;
};

struct Object {
  std::vector<Placed> placed;                         // in the order of `begin`
  std::map<std::int64_t, std::set<std::int64_t>> at;  // size of a block -> offsets
  std::int64_t bytes = 0;
};

struct Spot {
  std::int64_t growth = INT64_MAX;  // of the object
  bool is_new = true;               // no block of this size has this place at another time
  std::int64_t gap = INT64_MAX;     // free bytes at this place
  std::size_t object = 0;
  std::int64_t offset = 0;
};

class Packer {
 public:
  Packer(const std::vector<Block>& blocks, const ObjectLimits& limits, bool best_fit)
      : blocks_(blocks), limits_(limits), best_fit_(best_fit) {}

  Layout pack(const Order& order) {
    Layout layout;
    layout.objects.resize(blocks_.size());
    layout.offsets.resize(blocks_.size());
    for (const std::size_t i : order) {
      const Spot spot = find(blocks_[i]);
      put(blocks_[i], spot);
      layout.objects[i] = static_cast<int>(spot.object);
      layout.offsets[i] = spot.offset;
    }
    for (const Object& object : objects_) layout.bytes.push_back(object.bytes);
    return layout;
  }

 private:
  std::int64_t aligned(std::int64_t offset) const {
    return (offset + limits_.alignment - 1) / limits_.alignment * limits_.alignment;
  }

  Spot find(const Block& block) const {
    Spot best;
    for (std::size_t k = 0; k < objects_.size(); ++k) {
      const auto consider = [&](std::int64_t offset, std::int64_t gap) {
        const std::int64_t growth =
            std::max(std::int64_t{0}, offset + block.bytes - objects_[k].bytes);
        const bool is_new = limits_.size_classes > 0 && !lies_at(objects_[k], block, offset);
        const Spot spot{growth, is_new, best_fit_ ? gap : 0, k, offset};
        if (std::tie(spot.growth, spot.is_new, spot.gap) <
            std::tie(best.growth, best.is_new, best.gap))
          best = spot;
      };
      if (limits_.size_classes > 0) {
        if (const auto same = objects_[k].at.find(block.bytes); same != objects_[k].at.end()) {
          for (const std::int64_t offset : same->second) {
            if (is_free(objects_[k], block, offset)) consider(offset, 0);
          }
        }
      }
      std::int64_t top = 0;
      for (const Placed& other : objects_[k].placed) {
        if (other.last < block.first || block.last < other.first) continue;
        const std::int64_t gap = other.begin - aligned(top);
        if (gap >= block.bytes) consider(aligned(top), gap);
        top = std::max(top, other.end);
      }
      if (aligned(top) <= limits_.max_bytes - block.bytes)
        consider(aligned(top), std::max(block.bytes, objects_[k].bytes - aligned(top)));
    }
    // Aligning the gap may make the object grow by more than the block.
    if (best.growth > block.bytes + limits_.alignment)
      best = {block.bytes, true, 0, objects_.size(), 0};
    return best;
  }

  static bool lies_at(const Object& object, const Block& block, std::int64_t offset) {
    const auto same = object.at.find(block.bytes);
    return same != object.at.end() && same->second.count(offset) != 0;
  }

  static bool is_free(const Object& object, const Block& block, std::int64_t offset) {
    for (const Placed& other : object.placed) {
      if (other.begin >= offset + block.bytes) break;
      if (other.end > offset && other.first <= block.last && block.first <= other.last)
        return false;
    }
    return true;
  }

  void put(const Block& block, const Spot& spot) {
    if (spot.object == objects_.size()) objects_.emplace_back();
    Object& object = objects_[spot.object];
    const Placed placed{spot.offset, spot.offset + block.bytes, block.first, block.last};
    const auto after = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
    object.placed.insert(
        std::upper_bound(object.placed.begin(), object.placed.end(), placed, after), placed);
    object.bytes = std::max(object.bytes, placed.end);
    object.at[block.bytes].insert(spot.offset);
  }

  const std::vector<Block>& blocks_;
  const ObjectLimits& limits_;
  bool best_fit_;
  std::vector<Object> objects_;
};

// The bytes alive at each step, from the first step of all on.
std::vector<std::int64_t> breadths(const std::vector<Block>& blocks, int begin) {
  int end = begin;
  for (const Block& block : blocks) end = std::max(end, block.last);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(end - begin) + 2);
  for (const Block& block : blocks) {
    bytes[uz(block.first - begin)] += block.bytes;
    bytes[static_cast<std::size_t>(block.last - begin) + 1] -= block.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

int first_step(const std::vector<Block>& blocks) {
  int begin = blocks.empty() ? 0 : blocks.front().first;
  for (const Block& block : blocks) begin = std::min(begin, block.first);
  return begin;
}

// The blocks with their sizes rounded up to one of `classes` sizes per power of two.
std::vector<Block> rounded(std::vector<Block> blocks, const ObjectLimits& limits) {
  for (Block& block : blocks) {
    std::int64_t power = 1;
    while (power <= block.bytes / 2) power *= 2;
    const std::int64_t step = std::max(limits.alignment, power / limits.size_classes);
    block.bytes = std::min((block.bytes + step - 1) / step * step, limits.max_bytes);
  }
  return blocks;
}

std::vector<std::int64_t> sizes(const std::vector<Block>& blocks) {
  std::vector<std::int64_t> bytes;
  for (const Block& block : blocks) bytes.push_back(block.bytes);
  return bytes;
}

// Positions of the blocks by descending keys; equal keys keep their order.
template <class F>
Order sorted(const std::vector<Block>& blocks, F key) {
  std::vector<decltype(key(blocks.front()))> keys;
  for (const Block& block : blocks) keys.push_back(key(block));
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace

std::int64_t Layout::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

Layout apart(const std::vector<Block>& blocks) {
  Layout layout;
  layout.strategy = "no sharing";
  layout.spans = sizes(blocks);
  layout.offsets.resize(blocks.size());
  for (const Block& block : blocks) {
    layout.objects.push_back(static_cast<int>(layout.bytes.size()));
    layout.bytes.push_back(block.bytes);
  }
  return layout;
}

std::int64_t lower_bound(const std::vector<Block>& blocks) {
  const std::vector<std::int64_t> bytes = breadths(blocks, first_step(blocks));
  return *std::max_element(bytes.begin(), bytes.end());
}

std::vector<Block> blocks_above(std::int64_t bytes, const std::vector<Block>& blocks,
                                const Layout& layout) {
  std::vector<std::int64_t> begin(layout.bytes.size());
  std::exclusive_scan(layout.bytes.begin(), layout.bytes.end(), begin.begin(), std::int64_t{0});
  std::vector<Block> above;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (begin[uz(layout.objects[i])] + layout.offsets[i] + blocks[i].bytes > bytes)
      above.push_back(blocks[i]);
  }
  return above;
}

Layout lay_out(const std::vector<Block>& exact, const ObjectLimits& limits) {
  for (const Block& block : exact) CLGPU_CHECK(block.bytes <= limits.max_bytes);
  const std::vector<Block> blocks = limits.size_classes > 0 ? rounded(exact, limits) : exact;
  const Order by_size = sorted(blocks, [](const Block& b) { return b.bytes; });
  Layout best = whole_objects(blocks, by_size);
  best.spans = sizes(blocks);
  best.strategy = "whole objects by size";
  if (!limits.offsets) return best;

  const std::int64_t least = lower_bound(blocks);
  bool whole = true;  // the best one so far is the layout in whole objects
  const auto attempt = [&](const char* strategy, const Order& order, bool best_fit) {
    if (best.total() == least) return;
    Layout layout = Packer(blocks, limits, best_fit).pack(order);
    layout.spans = sizes(blocks);
    layout.strategy = strategy;
    const auto rank = [](const Layout& l) { return std::pair(l.total(), l.bytes.size()); };
    if (whole ? layout.total() >= best.total() : rank(layout) >= rank(best)) return;
    best = std::move(layout);
    whole = false;
  };
  const int begin = first_step(blocks);
  const std::vector<std::int64_t> live = breadths(blocks, begin);
  attempt("offsets by size", by_size, true);
  // Of equal blocks the earlier first: then no more of them get a place than are alive at once.
  attempt("offsets by size and time",
          sorted(blocks, [](const Block& b) { return std::pair(b.bytes, -b.first); }), true);
  // The blocks of the step with the most bytes first, then those of the next.
  attempt("offsets by breadth",
          sorted(blocks,
                 [&](const Block& b) {
                   const auto from = live.begin() + (b.first - begin);
                   const auto to = live.begin() + (b.last - begin) + 1;
                   const auto fullest = std::max_element(from, to);
                   return std::tuple(*fullest, live.end() - fullest, b.bytes);
                 }),
          true);
  attempt("offsets by lifetime",
          sorted(blocks, [](const Block& b) { return std::pair(b.last - b.first, b.bytes); }),
          true);
  attempt(
      "offsets by bytes times lifetime",
      sorted(blocks,
             [](const Block& b) { return static_cast<double>(b.bytes) * (b.last - b.first + 1); }),
      true);
  attempt("offsets in time",
          sorted(blocks, [](const Block& b) { return std::pair(-b.first, b.bytes); }), false);
  return best;
}

}  // namespace clgpu::plan
