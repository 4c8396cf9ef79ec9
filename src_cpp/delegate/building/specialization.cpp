#include "delegate/building/specialization.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "ops/shared/common.hpp"
#include "passes/pass.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Imports have relied on the ranks of the file; that of a computed value may depend on shapes.
void check_rank(const ir::Tensor& tensor, const ir::Node& by, bool is_awaited) {
  const int node = by.tflite_index, most = ops::family_of(by).most_axes;
  // A rank of 0 in the model may stand for an unknown one, and then no node here reads the tensor.
  if (is_awaited && tensor.model_rank > 0 && tensor.shape.rank() != tensor.model_rank) {
    throw ShapeError("tensor '" + tensor.name + "' has rank " +
                         std::to_string(tensor.shape.rank()) + "; the model says " +
                         std::to_string(tensor.model_rank),
                     node);
  }
  if (tensor.shape.rank() <= most) return;
  throw ShapeError("tensor '" + tensor.name + "' has rank " + std::to_string(tensor.shape.rank()) +
                       "; supported: 0 to " + std::to_string(most),
                   node);
}

void set_constant(ir::Tensor& tensor, const Known& known) {
  tensor.constant = known.constant;
  tensor.shape = ir::Shape(known.dims);
  tensor.model_rank = tensor.shape.rank();
}

bool is_same(const Known& a, const Known& b) {
  return a.constant != nullptr && a.dims == b.dims && a.constant->bytes == b.constant->bytes &&
         std::memcmp(a.constant->data, b.constant->data, a.constant->bytes) == 0;
}

// Tensors that nodes read or that are results; a constant needs no upload in each inference.
void drop_unused_inputs(ir::Graph& graph) {
  std::set<int> used(graph.outputs.begin(), graph.outputs.end());
  for (const ir::Node& node : graph.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  graph.inputs.erase(
      std::remove_if(graph.inputs.begin(), graph.inputs.end(),
                     [&](int id) { return used.count(id) == 0 || graph.tensor(id).is_constant(); }),
      graph.inputs.end());
}

}  // namespace

Specialization::Specialization(const TfLiteContext& context, const InnerTensors* inner,
                               std::map<int, CpuNode> evaluated, std::map<int, CpuNode> readers,
                               std::set<int> awaiting, std::vector<int> awaited)
    : evaluator_(context, inner),
      evaluated_(std::move(evaluated)),
      readers_(std::move(readers)),
      awaiting_(std::move(awaiting)),
      awaited_(std::move(awaited)) {}

const Known* Specialization::find(const KnownValues& known, int tensor) const {
  const auto found = known.find(tensor);
  if (found == known.end() || found->second.constant == nullptr) return nullptr;
  const bool is_own = std::count(awaited_.begin(), awaited_.end(), tensor) > 0;
  return found->second.is_awaited && !is_own ? nullptr : &found->second;
}

void Specialization::apply(ir::Graph& graph, KnownValues& known) {
  is_applied_ = true;
  taken_.clear();
  for (const int id : graph.inputs) {
    ir::Tensor& tensor = graph.tensor(id);
    if (tensor.tflite_id < 0) continue;  // a state
    if (const Known* const value = find(known, tensor.tflite_id)) {
      set_constant(tensor, *value);
      taken_[tensor.tflite_id] = value->constant;
      evaluator_.set_value(tensor.tflite_id, *value);
    } else {
      evaluator_.set_shape(tensor.tflite_id, tensor.shape.dims());
    }
  }
  apply_nodes(graph, known);
  for (const int id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (!awaiting_.empty() && tensor.is_constant() && tensor.constant->bytes == 0)
      throw ShapeError("the result '" + tensor.name + "' has 0 elements");
  }
}

// To the graphs that a node runs.
void Specialization::apply_within(const ir::Graph& graph, ir::Node& node, KnownValues& known) {
  for (auto& old : node.graphs) {
    auto inner = std::make_shared<ir::Graph>(*old);
    passes::take_inputs(graph, node, *inner);
    for (const int id : inner->inputs) {
      const ir::Tensor& tensor = inner->tensor(id);
      evaluator_.set_shape(tensor.tflite_id, tensor.shape.dims());
    }
    apply_nodes(*inner, known);
    old = std::move(inner);
  }
}

void Specialization::apply_nodes(ir::Graph& graph, KnownValues& known) {
  std::vector<bool> done(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = graph.nodes[i];
    const int first = graph.tensor(node.outputs.at(0)).tflite_id;
    done[i] = evaluated_.count(first) != 0;
    if (done[i]) {
      evaluate(graph, node, known);
      continue;
    }
    if (const auto reader = readers_.find(first); reader != readers_.end())
      import(node, reader->second);
    apply_within(graph, node, known);
    passes::infer_shapes(graph, node);
    for (const int id : node.outputs) {
      const ir::Tensor& tensor = graph.tensor(id);
      check_rank(tensor, node, awaiting_.count(node.tflite_index) != 0);
      if (tensor.tflite_id >= 0) evaluator_.set_shape(tensor.tflite_id, tensor.shape.dims());
    }
  }
  ir::remove_nodes(graph, done);
  drop_unused_inputs(graph);
}

void Specialization::evaluate(ir::Graph& graph, const ir::Node& node, KnownValues& known) {
  std::vector<Known> results;
  try {
    results = evaluator_.run(evaluated_.at(graph.tensor(node.outputs[0]).tflite_id));
  } catch (const ShadowError& error) {
    throw ShapeError(error.what(), node.tflite_index);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    ir::Tensor& tensor = graph.tensor(node.outputs[i]);
    const int rank = tensor.model_rank;
    set_constant(tensor, results[i]);
    if (awaiting_.count(node.tflite_index) != 0) tensor.model_rank = rank;
    check_rank(tensor, node, awaiting_.count(node.tflite_index) != 0);
    results[i].is_awaited = !awaiting_.empty();
    known[tensor.tflite_id] = std::move(results[i]);
  }
}

void Specialization::import(ir::Node& node, const CpuNode& recipe) const {
  const NodeInstance instance(recipe);
  const tfl::NodeView view(evaluator_.context(), instance.node, recipe.registration, recipe.index);
  const std::string where = node.op + " (node " + std::to_string(node.tflite_index) + "): ";
  try {
    const ops::Family& family = ops::family_of(node);
    const auto number = numbers_.find(recipe.outputs.at(0));
    OrRefusal<ops::Imported> imported = number == numbers_.end()
                                            ? family.import(view)
                                            : family.import_measured(view, number->second);
    if (!imported) throw ShapeError(where + sentence_of(imported.refusal()), node.tflite_index);
    node.attrs = imported->attrs;
    node.epilogue = imported->epilogue;
  } catch (const ShapeError&) {
    throw;
  } catch (const Error& error) {
    throw ShapeError(where + error.what(), node.tflite_index);
  }
}

bool Specialization::has_changed(const ir::Graph& graph, const KnownValues& known) const {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](int id) {
    const int tensor = graph.tensor(id).tflite_id;
    if (tensor < 0) return false;
    const auto before = taken_.find(tensor);
    const Known* const now = find(known, tensor);
    return (before == taken_.end() ? nullptr : before->second) !=
           (now == nullptr ? nullptr : now->constant);
  });
}

void Specialization::take_known(const ir::Graph& graph, const KnownValues& known) {
  is_applied_ = false;
  taken_.clear();
  for (const int id : graph.inputs) {
    const int tensor = graph.tensor(id).tflite_id;
    if (tensor < 0) continue;
    if (const Known* const value = find(known, tensor)) taken_[tensor] = value->constant;
  }
}

bool Specialization::take(const ir::Graph& graph, KnownValues& known) {
  if (!is_applied_) return false;
  std::set<int> fresh;  // tensors of the graph with other values than before
  std::map<int, std::shared_ptr<const ir::Constant>> taken = taken_;
  for (const int id : graph.inputs) {
    const int tensor = graph.tensor(id).tflite_id;
    const auto before = taken.find(tensor);
    const Known* const now = tensor < 0 ? nullptr : find(known, tensor);
    if (now == nullptr && before == taken.end()) continue;
    if (now == nullptr || before == taken.end()) return false;
    if (now->constant == before->second) continue;
    before->second = now->constant;
    evaluator_.set_value(tensor, *now);
    fresh.insert(id);
  }
  KnownValues results;
  for (const ir::Node& node : graph.nodes) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](int id) { return fresh.count(id) != 0; }))
      continue;
    const auto recipe = evaluated_.find(graph.tensor(node.outputs.at(0)).tflite_id);
    if (recipe == evaluated_.end()) return false;
    try {
      const std::vector<Known> found = evaluator_.run(recipe->second);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const int tensor = graph.tensor(node.outputs[i]).tflite_id;
        const auto before = known.find(tensor);
        if (before != known.end() && is_same(before->second, found[i])) continue;
        fresh.insert(node.outputs[i]);
        results[tensor] = found[i];
        results[tensor].is_awaited = true;
      }
    } catch (const ShadowError&) {
      return false;  // apply() reports it
    }
  }
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(),
                  [&](int id) { return fresh.count(id) != 0; }))
    return false;
  taken_ = std::move(taken);
  for (auto& [tensor, value] : results) known[tensor] = std::move(value);
  return true;
}

void Specialization::withdraw(KnownValues& known) const {
  for (const auto& [index, node] : evaluated_) {
    for (const int id : node.outputs) known.erase(id);
  }
}

}  // namespace clgpu::delegate
