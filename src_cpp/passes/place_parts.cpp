#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "passes/concatenations.hpp"

namespace clgpu::passes {
namespace {

// Bytes of live intermediate tensors while each node runs, if every tensor were freed after its
// last reader.
class LiveBytes {
 public:
  LiveBytes(const ir::Graph& graph, const Links& links) : bytes_(graph.nodes.size(), 0) {
    const int count = static_cast<int>(graph.nodes.size());
    std::vector<int> last(graph.tensors.size(), -1);
    // Backwards: the last reader of a view counts for its source.
    for (int n = count - 1; n >= 0; --n) {
      const ir::Node& node = graph.nodes[uz(n)];
      for (const int id : node.outputs) last[uz(id)] = std::max(last[uz(id)], n);
      for (const int id : node.inputs) {
        if (id < 0) continue;
        const int until = node.kind->is_view ? last[uz(node.outputs[0])] : n;
        last[uz(id)] = std::max(last[uz(id)], until);
      }
    }
    for (const int id : graph.outputs) last[uz(id)] = count - 1;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      if (last[i] < 0 || links.known[i]) continue;
      const int writer = links.writers[i];
      if (writer >= 0 && graph.nodes[uz(writer)].kind->is_view) continue;
      add(std::max(writer, 0), last[i] + 1, graph.tensors[i].storage_bytes());
    }
  }

  void add(int begin, int end, std::int64_t bytes) {
    for (int n = begin; n < end; ++n) bytes_[uz(n)] += bytes;
  }
  std::int64_t most(int begin, int end) const {
    return begin < end ? *std::max_element(bytes_.begin() + begin, bytes_.begin() + end) : 0;
  }
  std::int64_t most() const { return most(0, static_cast<int>(bytes_.size())); }

 private:
  std::vector<std::int64_t> bytes_;
};

// The place in the outermost whole of a part of a tensor that itself has a place in another.
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

// Decides which parts are written in place, for one concatenation after the other.
class Chooser {
 public:
  Chooser(const ir::Graph& graph, const Sums& sums)
      : graph_(graph), sums_(sums), links_(graph), live_(graph, links_) {}

  std::vector<Slot> choose() {
    std::vector<std::vector<Slot>> open;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (concatenation_of(graph_.nodes[n]) == nullptr) continue;
      std::vector<Slot> slots;
      for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        auto slot = slot_of(graph_, links_, sums_, static_cast<int>(n), static_cast<int>(i));
        if (slot) slots.push_back(std::move(*slot));
      }
      std::stable_sort(slots.begin(), slots.end(),
                       [](const Slot& a, const Slot& b) { return a.writer > b.writer; });
      open.push_back(std::move(slots));
    }
    // First the slots that need no more memory at that time; after that the new peak is known. Then
    // the slots that do not exceed it.
    for (std::vector<Slot>& slots : open) take(slots, false);
    for (std::vector<Slot>& slots : open) take(slots, true);
    return std::move(chosen_);
  }

 private:
  int whole_of(const Slot& slot) const { return graph_.nodes[uz(slot.node)].outputs[0]; }

  // The node that first writes to the memory of a tensor.
  int begin_of(int id) const {
    const auto found = begin_.find(id);
    return found != begin_.end() ? found->second : links_.writers[uz(id)];
  }

  // Takes the longest run of the latest written slots that memory allows.
  void take(std::vector<Slot>& slots, bool up_to_peak) {
    for (std::size_t count = slots.size(); count > 0; --count) {
      int whole = whole_of(slots[0]);
      for (auto next = around_.find(whole); next != around_.end(); next = around_.find(whole))
        whole = next->second;
      LiveBytes live = live_;
      int begin = begin_of(whole);
      for (std::size_t i = 0; i < count; ++i) {
        const int part = slots[i].tensors.back();
        begin = std::min(begin, begin_of(part));
        live.add(begin_of(part), slots[i].node + 1, -graph_.tensor(part).storage_bytes());
      }
      live.add(begin, begin_of(whole), graph_.tensor(whole).storage_bytes());
      const int end = slots[0].node + 1;
      const std::int64_t limit = up_to_peak ? live_.most() : live_.most(begin, end);
      if (live.most(begin, end) > limit && sums_.count(whole_of(slots[0])) == 0) continue;
      live_ = std::move(live);
      begin_[whole] = begin;
      for (std::size_t i = 0; i < count; ++i) {
        around_[slots[i].tensors.back()] = whole_of(slots[i]);
        chosen_.push_back(std::move(slots[i]));
      }
      slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count));
      return;
    }
  }

  const ir::Graph& graph_;
  const Sums& sums_;
  const Links links_;
  LiveBytes live_;
  std::map<int, int> around_;  // tensor -> the one that contains it
  std::map<int, int> begin_;   // of tensors that have parts
  std::vector<Slot> chosen_;
};

}  // namespace

std::vector<Slot> choose_slots(const ir::Graph& graph, const Sums& sums) {
  return Chooser(graph, sums).choose();
}

void place_parts(ir::Graph& graph, const Sums& sums) {
  std::vector<Slot> slots = choose_slots(graph, sums);
  // Outer concatenations first, since the inner ones are placed in them.
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.node > b.node; });
  for (const Slot& slot : slots) {
    const ir::Node& node = graph.nodes[uz(slot.node)];
    const int whole = node.outputs[0];
    const ops::Part part = ops::parts_of(ops::NodeContext(graph, node))[uz(slot.input)];
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
