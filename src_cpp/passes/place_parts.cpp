#include <algorithm>
#include <map>

#include "passes/concatenations.hpp"

namespace clgpu::passes {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Bytes of intermediate tensors alive while each node runs, were every tensor freed after its last
// reader.
class LiveBytes {
 public:
  LiveBytes(const ir::Graph& graph, const Links& links) : bytes_(graph.nodes.size(), 0) {
    const int count = static_cast<int>(graph.nodes.size());
    std::vector<int> last(graph.tensors.size(), -1);
    // Backwards: a view's last reader counts for its source.
    for (int n = count - 1; n >= 0; --n) {
      const ir::Node& node = graph.nodes[at(n)];
      for (const int id : node.outputs) last[at(id)] = std::max(last[at(id)], n);
      for (const int id : node.inputs) {
        if (id < 0) continue;
        const int until = node.kind->is_view ? last[at(node.outputs[0])] : n;
        last[at(id)] = std::max(last[at(id)], until);
      }
    }
    for (const int id : graph.outputs) last[at(id)] = count - 1;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      if (last[i] < 0 || links.known[i]) continue;
      const int writer = links.writers[i];
      if (writer >= 0 && graph.nodes[at(writer)].kind->is_view) continue;
      add(std::max(writer, 0), last[i] + 1, graph.tensors[i].storage_bytes());
    }
  }

  void add(int begin, int end, std::int64_t bytes) {
    for (int n = begin; n < end; ++n) bytes_[at(n)] += bytes;
  }
  std::int64_t most(int begin, int end) const {
    return begin < end ? *std::max_element(bytes_.begin() + begin, bytes_.begin() + end) : 0;
  }
  std::int64_t most() const { return most(0, static_cast<int>(bytes_.size())); }

 private:
  std::vector<std::int64_t> bytes_;
};

// Where a part of a tensor that is itself placed lies in the whole of all.
std::optional<ir::Placement> composed(const ir::Graph& graph, const ir::Placement& inner, int id,
                                      const ir::Placement& outer) {
  const std::int64_t channels = graph.tensor(id).shape.back(0);
  const std::int64_t around = graph.tensor(inner.whole).shape.back(0);
  if (outer.pitch == around)
    return ir::Placement{outer.whole, inner.pitch, outer.first + inner.first};
  const std::int64_t row = inner.first / around, column = inner.first % around;
  const bool one_row = graph.tensor(id).shape.elements() == channels;
  if (column + channels > around || (!one_row && inner.pitch % around != 0)) return std::nullopt;
  return ir::Placement{outer.whole, inner.pitch / around * outer.pitch,
                       outer.first + row * outer.pitch + column};
}

}  // namespace

std::vector<Slot> choose_slots(const ir::Graph& graph, const Sums& sums) {
  const Links links(graph);
  std::vector<Slot> slots;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (concatenation_of(graph.nodes[n]) == nullptr) continue;
    for (std::size_t i = 0; i < graph.nodes[n].inputs.size(); ++i) {
      auto slot = slot_of(graph, links, sums, static_cast<int>(n), static_cast<int>(i));
      if (slot) slots.push_back(std::move(*slot));
    }
  }
  const auto whole_of = [&](const Slot& slot) { return graph.nodes[at(slot.node)].outputs[0]; };
  const auto forced = [&](const Slot& slot) { return sums.count(whole_of(slot)) != 0; };
  // The cheapest first: once these are in place, what a dear one costs is plain to see.
  std::stable_sort(slots.begin(), slots.end(), [&](const Slot& a, const Slot& b) {
    if (forced(a) != forced(b)) return forced(a);
    return a.node - a.writer < b.node - b.writer;
  });

  LiveBytes live(graph, links);
  std::map<int, int> around;         // tensor -> the one that it is a part of
  std::map<int, int> first_written;  // of what has parts
  const auto begin_of = [&](int id) {
    const auto found = first_written.find(id);
    return found != first_written.end() ? found->second : links.writers[at(id)];
  };
  std::vector<Slot> chosen;
  for (Slot& slot : slots) {
    int whole = whole_of(slot);
    for (auto next = around.find(whole); next != around.end(); next = around.find(whole))
      whole = next->second;
    const int part = slot.tensors.back();
    const int begin = begin_of(part), begin_of_whole = begin_of(whole);
    const std::int64_t bytes = graph.tensor(part).storage_bytes();
    const std::int64_t bytes_of_whole = graph.tensor(whole).storage_bytes();
    const std::int64_t most = live.most(begin, begin_of_whole) + bytes_of_whole - bytes;
    if (begin < begin_of_whole && most > live.most() && !forced(slot)) continue;
    live.add(begin, slot.node + 1, -bytes);
    live.add(begin, begin_of_whole, bytes_of_whole);
    first_written[whole] = std::min(begin, begin_of_whole);
    around[part] = whole_of(slot);
    chosen.push_back(std::move(slot));
  }
  return chosen;
}

void place_parts(ir::Graph& graph, const Sums& sums) {
  std::vector<Slot> slots = choose_slots(graph, sums);
  // The outer ones first, which the inner ones are placed in.
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.node > b.node; });
  for (const Slot& slot : slots) {
    const ir::Node& node = graph.nodes[at(slot.node)];
    const int whole = node.outputs[0];
    const ops::Part part = ops::parts_of(ops::NodeContext(graph, node))[at(slot.input)];
    std::vector<ir::Placement> places;
    for (const int id : slot.tensors) {
      auto place = placement_in(graph, whole, id, part);
      if (const auto& outer = graph.tensor(whole).placement; place && outer)
        place = composed(graph, *place, id, *outer);
      if (!place) break;
      places.push_back(*place);
    }
    if (places.size() != slot.tensors.size()) continue;
    for (std::size_t i = 0; i < places.size(); ++i) {
      ir::Tensor& tensor = graph.tensor(slot.tensors[i]);
      tensor.placement = places[i];
      tensor.storage = graph.tensor(whole).storage;
    }
  }
}

}  // namespace clgpu::passes
