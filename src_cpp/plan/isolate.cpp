#include "plan/isolate.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "ops/shared/conversions.hpp"

namespace clgpu::plan {

ir::Graph isolate(const ir::Graph& graph, std::size_t position) {
  // Known at load time: constants and what is computed from constants alone.
  std::vector<bool> known(graph.tensors.size());
  const auto knows = [&](int id) { return id < 0 || known[uz(id)]; };
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) known[i] = graph.tensors[i].is_constant();
  for (const ir::Node& node : graph.nodes) {
    if (node.inputs.empty() || !std::all_of(node.inputs.begin(), node.inputs.end(), knows))
      continue;
    for (const int id : node.outputs) known[uz(id)] = true;
  }

  const std::vector<int> writers = ir::writers_of(graph);
  std::set<std::size_t> members{position};
  for (std::vector<std::size_t> open{position}; !open.empty();) {
    const ir::Node& node = graph.nodes[open.back()];
    open.pop_back();
    for (const int id : node.inputs) {
      if (id < 0 || !knows(id) || graph.tensor(id).is_constant()) continue;
      const auto writer = static_cast<std::size_t>(writers[uz(id)]);
      if (members.insert(writer).second) open.push_back(writer);
    }
  }

  const auto readers = ir::readers_of(graph);
  const std::vector<bool> is_output = ir::output_mask(graph);
  ir::Graph part = graph;  // with all properties of the graph as a whole
  part.tensors.clear();
  part.nodes.clear();
  part.inputs.clear();
  part.outputs.clear();
  std::map<int, int> id_of;  // of a tensor here -> in the part
  const auto add = [&](int id) {
    const auto [entry, inserted] = id_of.try_emplace(id, static_cast<int>(part.tensors.size()));
    if (inserted) part.tensors.push_back(graph.tensor(id));
    part.tensor(entry->second).carried = -1;  // other numbers must not remain on the device
    part.tensor(entry->second).is_kept = false;
    // The host gives and takes what the runtime's kernels do.
    if (graph.tensor(id).is_converted()) ops::store_as_computed(part.tensor(entry->second));
    return entry->second;
  };
  const auto intern = [&](int id) {
    if (id < 0) return -1;
    const int result = add(id);
    if (const auto& placement = graph.tensor(id).placement) {
      const int whole = add(placement->whole);
      part.tensor(result).placement->whole = whole;
    }
    return result;
  };
  for (const std::size_t member : members) {  // a set of positions is sorted by execution order
    ir::Node node = graph.nodes[member];
    for (int& id : node.inputs) {
      // If the part reads a slice, the slice has already been written to the result.
      const bool input = member == position && !knows(id) && !graph.tensor(id).placement;
      id = intern(id);
      if (input && std::find(part.inputs.begin(), part.inputs.end(), id) == part.inputs.end())
        part.inputs.push_back(id);
    }
    for (int& id : node.outputs) {
      const auto old = static_cast<std::size_t>(id);
      id = intern(id);
      // If nothing reads a result, it may not even be written.
      if (member != position || (!is_output[old] && readers[old].empty())) continue;
      const auto& placement = part.tensor(id).placement;
      part.outputs.push_back(placement ? placement->whole : id);
    }
    node.predicate = -1;  // its own time and results are of interest
    part.nodes.push_back(std::move(node));
  }
  return part;
}

}  // namespace clgpu::plan
