// Operands that only an inference has, and that planning needs: a part of Model.
#include <algorithm>

#include "delegate/claim/model.hpp"

namespace clgpu::delegate {
namespace {

constexpr std::int64_t kMostAwaited = 64;  // elements of such an operand

}  // namespace

bool Model::await(ModelNode& node, const tfl::NodeView& view) const {
  const std::vector<int>& positions = node.operation->positions;
  if (!node.operation->reads_positions &&
      std::any_of(positions.begin(), positions.end(),
                  [&](int slot) { return view.has_input(slot) && !view.input(slot).has_data(); }))
    return false;
  for (const int slot : node.operation->settings) {
    if (!view.has_input(slot)) continue;
    const tfl::TensorView input = view.input(slot);
    if (input.has_data()) continue;
    const auto dtype = tfl::dtype_of(input.tflite_type());
    const bool is_index = dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kI16;
    // Another awaited value may decide on the shape of this one: without stages, both would have to
    // be known.
    const bool is_open = open_.count(input.id()) != 0 && !has_stages_;
    if (!is_index || input.elements() > kMostAwaited || is_open) {
      node.awaits.clear();
      return false;
    }
    node.awaits.push_back(input.id());
  }
  const int measured = node.operation->measured;
  if (measured >= 0 && view.has_input(measured) && !view.input(measured).has_data())
    node.measures = view.input(measured).id();
  if (!node.waits()) return false;
  node.evaluated = !node.family->has_kernels();
  node.reads_values = !node.evaluated;
  return true;
}

void Model::note_open(const ModelNode& node) {
  // The ranks of what follows from shapes, such as that of SHAPE, do not depend on these shapes.
  if (node.evaluated && !node.waits()) return;
  const bool is_open = node.waits() || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                   [&](int id) { return open_.count(id) != 0; });
  if (is_open) open_.insert(node.outputs.begin(), node.outputs.end());
}

bool Model::is_small(int tensor) const {
  const ir::Tensor& value = whole_.tensor(tensor);
  return value.shape.elements() <= kMostAwaited && open_.count(tensor) == 0;
}

std::set<int> Model::hostable() const {
  std::set<int> found;
  // A stage of its own computes what is measured: then its elements are there.
  std::set<int> measured;
  for (const ModelNode& node : nodes) {
    if (node.claimed && has_stages_) measured.insert(node.measures);
  }
  // The CPU computes what nodes behind a border write.
  const auto has = [&](int id) {
    if (id < 0 || is_constant(id) || known_.count(id) != 0 || found.count(id) != 0) return true;
    const auto writer = writer_.find(id);
    return is_small(id) && (writer == writer_.end() || !nodes[writer->second].claimed);
  };
  for (const ModelNode& node : nodes) {
    const bool is_pure = node.claimed && node.operation->code != kTfLiteBuiltinCustom &&
                         node.operation->resource == ops::Resource::kNone &&
                         node.imported.graphs.empty() && node.operation->states.empty() &&
                         node.folded == nullptr;
    const auto is_result = [&](int id) {
      return id < 0 || (is_small(id) && measured.count(id) == 0);
    };
    if (is_pure && std::all_of(node.outputs.begin(), node.outputs.end(), is_result) &&
        std::all_of(node.inputs.begin(), node.inputs.end(), has))
      found.insert(node.outputs.begin(), node.outputs.end());
  }
  return found;
}

void Model::host(ModelNode& node) {
  if (node.evaluated) return;
  node.evaluated = node.hosted = true;
  for (const int id : node.inputs) {
    if (id < 0 || is_constant(id) || known_.count(id) != 0) continue;
    const auto writer = writer_.find(id);
    if (writer != writer_.end() && nodes[writer->second].claimed) host(nodes[writer->second]);
  }
}

std::vector<int> Model::awaited_by(const ModelNode& node) const {
  std::vector<int> ids = node.awaits;
  for (const int id : node.inputs) {
    if (node.hosted && id >= 0 && !is_constant(id) && known_.count(id) == 0) ids.push_back(id);
  }
  return ids;
}

void Model::settle_awaited() {
  for (ModelNode& node : nodes) {
    if (node.hosted) node.evaluated = node.hosted = false;
  }
  const std::set<int> on_host = hostable();
  const auto is_claimed = [&](int id) {
    const auto writer = writer_.find(id);
    return writer != writer_.end() && nodes[writer->second].claimed;
  };
  for (const ModelNode& node : nodes) {
    if (!node.claimed) continue;
    if (node.measures >= 0 && !has_stages_ && is_claimed(node.measures))
      refuse(node.index, {Why::kRunTime, "the size of its result"});
    // No stage writes such a tensor to memory.
    const bool is_planned =
        is_constant(node.measures) ||
        (is_claimed(node.measures) && nodes[writer_.at(node.measures)].evaluated);
    if (node.claimed && node.measures >= 0 && is_planned) {
      refuse(node.index, {Why::kRunTime, "the size of its result",
                          "follows from a tensor that is computed while loading or planning"});
    }
    for (const int id : node.awaits) {
      if (!is_claimed(id)) continue;
      ModelNode& writer = nodes[writer_.at(id)];
      if (on_host.count(id) != 0) {
        host(writer);
        continue;
      }
      if (has_stages_) continue;
      refuse(writer.index, {Why::kRunTime, "",
                            "computes a value that the plan of node " + std::to_string(node.index) +
                                " (" + node.op + ") needs"});
    }
  }
}

}  // namespace clgpu::delegate
