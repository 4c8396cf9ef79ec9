#include "delegate/building/largest.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "base/index.hpp"
#include "delegate/building/holdings.hpp"
#include "ir/text.hpp"
#include "ops/family.hpp"

namespace clgpu::delegate {
namespace {

// The operations that a generator adds to the model of a small file.
ir::Graph graph_of(const plan::CarriedForm& form, int number, int count) {
  std::vector<int> rows = form.shape.dims();
  const std::string axis = std::to_string(rows.size() - 1);
  rows.pop_back();
  std::string text = "%0: " + std::string(name_of(form.dtype)) + form.shape.str() +
                     " \"logits\" carried=" + std::to_string(number);
  if (form.storage != form.dtype) text += " storage=" + std::string(name_of(form.storage));
  if (count == 0) {
    const std::string shape = ir::Shape(rows).str();
    text += "\n%1: int32[1] = const [" + axis + "]\ninputs %0\n%2: float32" + shape +
            " = reduce(%0, %1) {axes=[" + axis + "]} op=SUM node=0\n%3: int32" + shape +
            " = arg_min_max(%0, %1) {axis=" + axis + "} op=ARG_MAX node=1\noutputs %2, %3\n";
  } else {
    rows.push_back(count);
    const std::string shape = ir::Shape(rows).str(), k = std::to_string(count);
    text += "\n%1: int32[] = const [" + k + "]\ninputs %0\n%2: float32" + shape + ", %3: int32" +
            shape + " = topk(%0, %1) {k=" + k + "} op=TOPK_V2 node=0\noutputs %2, %3\n";
  }
  return ir::read_text(text, ops::all_kinds());
}

std::shared_ptr<runtime::Executor> build(State& state, Carriers& carriers,
                                         const plan::CarriedForm& form, int number, int count) {
  const std::int64_t budget = state.target.options.plan.memory_budget;
  const auto pool = carriers.pool([&] { return state.builder.pool(); });
  const Excess excess = [&](const plan::Plan& plan) {
    HeldBytes held;
    if (carriers.holdings != nullptr) carriers.holdings->add_to(held);
    held.forget_peak();
    held.add(plan, {}, carriers.weights().get(), pool.get());
    return held.totals().peak_bytes - budget;
  };
  return state.builder
      .build(graph_of(form, number, count), budget, pool, Level::kAsAsked, /*lasts=*/false,
             &carriers, /*records=*/false, nullptr, budget > 0 ? excess : Excess())
      .executor;
}

}  // namespace

Largest find_largest(State& state, Carriers& carriers, int number, int count) {
  const plan::CarriedForm* const form = carriers.set()->form(number);
  const std::string what = "the carried tensor '" + carriers.set()->name(number) + "'";
  if (form == nullptr) throw Error("no graph on the device has used " + what + " yet");
  if (form->dtype != DType::kF32 || form->shape.rank() == 0)
    throw Error(what + " is " + name_of(form->dtype) + form->shape.str() +
                "; the largest elements are found in rows of float32");
  const int size = form->shape.dims().back();
  if (count < 0 || count > size)
    throw OptionError("count is " + std::to_string(count) + "; allowed: 0 to " +
                      std::to_string(size));
  if (const auto known = carriers.found(number, count)) return *known;
  const cl::Counters before = cl::counters();
  const auto executor = carriers.finder(
      {number, count}, [&] { return build(state, carriers, *form, number, count); });
  const auto rows = size == 0 ? 0 : static_cast<std::size_t>(form->shape.elements() / size);
  const std::size_t found = rows * static_cast<std::size_t>(std::max(count, 1));
  Largest largest{std::vector<float>(found), std::vector<std::int32_t>(found)};
  executor->run({}, {largest.values.data(), largest.indices.data()});
  state.ledger.count_after_invoke(cl::counters() - before);
  return largest;
}

void append_largest(ir::Graph& graph, int output, int count) {
  const ir::Tensor& tensor = graph.tensor(output);
  const int number = tensor.carried;
  if (tensor.dtype != DType::kF32 || tensor.shape.rank() == 0 || count < 0 ||
      count > tensor.shape.dims().back())
    return;
  const auto writer = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
    return std::count(node.outputs.begin(), node.outputs.end(), output) > 0;
  });
  if (writer == graph.nodes.end()) return;
  const int index = writer->tflite_index;
  const std::string name = "largest of '" + tensor.name + "'";
  const ir::Graph part = graph_of({tensor.shape, tensor.dtype, tensor.storage}, number, count);
  std::vector<int> ids{output};
  for (std::size_t i = 1; i < part.tensors.size(); ++i) {
    ids.push_back(static_cast<int>(graph.tensors.size()));
    graph.tensors.push_back(part.tensors[i]);
  }
  const auto renumber = [&](std::vector<int>& list) {
    for (int& id : list) id = ids[uz(id)];
  };
  for (ir::Node node : part.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
    node.tflite_index = index;
    graph.nodes.push_back(std::move(node));
  }
  for (const int id : part.outputs) {
    graph.tensor(ids[uz(id)]).largest_of = number;
    graph.tensor(ids[uz(id)]).name = name;
    graph.outputs.push_back(ids[uz(id)]);
  }
}

bool finds_largest(const ir::Graph& graph) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](int id) { return graph.tensor(id).largest_of >= 0; });
}

void remove_largest(ir::Graph& graph) {
  const auto is_found = [&](int id) { return graph.tensor(id).largest_of >= 0; };
  const auto outputs = std::remove_if(graph.outputs.begin(), graph.outputs.end(), is_found);
  graph.outputs.erase(outputs, graph.outputs.end());
  const auto nodes =
      std::remove_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
        return std::any_of(node.outputs.begin(), node.outputs.end(), is_found);
      });
  graph.nodes.erase(nodes, graph.nodes.end());
}

}  // namespace clgpu::delegate
