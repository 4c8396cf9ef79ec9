#include "passes/concatenations.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

Links::Links(const ir::Graph& graph)
    : readers(ir::readers_of(graph)),
      writers(ir::writers_of(graph)),
      is_output(ir::output_mask(graph)),
      known(graph.tensors.size()) {
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = graph.tensors[i].is_constant();
  for (const ir::Node& node : graph.nodes) {
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int id) { return id < 0 || known[uz(id)]; });
    if (node.inputs.empty() || !all) continue;
    for (const int id : node.outputs) known[uz(id)] = true;
  }
}

const ops::ConcatenationAttrs* concatenation_of(const ir::Node& node) {
  return dynamic_cast<const ops::ConcatenationAttrs*>(node.attrs.get());
}

bool joins_channels(const ir::Graph& graph, int node) {
  const ir::Node& joined = graph.nodes[uz(node)];
  const auto* attrs = concatenation_of(joined);
  return attrs != nullptr && !attrs->new_axis &&
         attrs->axis == graph.tensor(joined.outputs[0]).shape.rank() - 1;
}

std::optional<ir::Placement> placement_in(const ir::Graph& graph, int whole, int id,
                                          const ops::Part& part) {
  const std::int64_t channels = graph.tensor(id).shape.back(0);
  if (part.rows == 1) return ir::Placement{whole, channels, part.first};
  if (part.columns == channels) return ir::Placement{whole, part.pitch, part.first};
  return std::nullopt;
}

std::optional<Slot> slot_of(const ir::Graph& graph, const Links& links, const Sums& sums, int node,
                            int input) {
  const ir::Node& concatenation = graph.nodes[uz(node)];
  const int whole = concatenation.outputs[0];
  const ops::Part part = ops::parts_of(ops::NodeContext(graph, concatenation))[uz(input)];
  if (ops::is_requantized(graph.tensor(concatenation.inputs[uz(input)]), graph.tensor(whole)))
    return std::nullopt;
  Slot slot{node, input, -1, {}};
  for (int id = concatenation.inputs[uz(input)];;) {
    slot.tensors.push_back(id);
    slot.writer = links.writers[uz(id)];
    if (slot.writer < 0 || links.known[uz(id)] || links.is_output[uz(id)]) return std::nullopt;
    // Converted numbers have the type that they were given.
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.is_converted() && tensor.storage != graph.tensor(whole).storage) return std::nullopt;
    if (links.readers[uz(id)].size() != 1 || !placement_in(graph, whole, id, part))
      return std::nullopt;
    const ir::Node& writer = graph.nodes[uz(slot.writer)];
    if (!writer.kind->is_view) break;
    id = writer.inputs[0];
  }
  const ir::Node& writer = graph.nodes[uz(slot.writer)];
  if (!writer.kind->writes_slices || writer.outputs[0] != slot.tensors.back()) return std::nullopt;
  if (sums.count(writer.outputs[0]) != 0) return std::nullopt;
  // An addend has the layout of the result, so it would need the shape of the whole.
  const bool adds = ir::input_of(writer, writer.kind->residual) >= 0;
  if (adds && sums.count(whole) == 0) return std::nullopt;
  return slot;
}

void remove_concatenations(ir::Graph& graph, Concats concats, std::int64_t most) {
  if (concats == Concats::kCopyAll) return;
  const bool parts = most < INT64_MAX;
  if (parts) split_additions(graph, most);
  const Sums sums = add_before_concatenations(graph);
  if (concats == Concats::kSplit || parts)
    split_convolutions(graph, sums, most, concats != Concats::kSplit);
  place_parts(graph, sums);
}

}  // namespace clgpu::passes
