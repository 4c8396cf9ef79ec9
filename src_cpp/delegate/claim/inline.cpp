// Loops whose rounds are counted while planning, branches whose condition is known then, and
// composites without kernels of their own become part of the graph around them: a part of Model.
#include <algorithm>
#include <iterator>
#include <utility>

#include "delegate/claim/model.hpp"
#include "delegate/int_array.hpp"
#include "tfl/quantization.hpp"
#include "tfl/subgraph.hpp"

namespace clgpu::delegate {
namespace {

// Of a loop: what exceeds them takes long to load, and the device gains little from it.
// Graphs that run others twice double their nodes at each level, also where nothing is unrolled.
constexpr std::size_t kMostImported = 8192;
constexpr std::size_t kMostSteps = 4096;         // nodes of all rounds, and rounds
constexpr std::size_t kMostRepeated = 64 << 20;  // bytes of weights, which each round packs anew

// Planning cannot unroll it, but the graphs can be run (Inlining::is_open): nobody sees a reason.
const Refusal kOpen = {Why::kRunTime};

Refusal malformed(int graph, const std::string& what) {
  return {Why::kMalformed, "graph " + std::to_string(graph), what};
}

// Why a node stays on the CPU if one of its graphs has this refused node.
Refusal because_of(const ModelNode& inner, int graph) {
  Refusal refusal = *inner.refusal;
  const std::string where = inner.op + " of its graph " + std::to_string(graph);
  if (refusal.why == Why::kOption) {
    refusal.detail = where;
    return refusal;
  }
  refusal.detail = "runs " + where + ", which needs the CPU: " + sentence_of(refusal);
  refusal.what.clear();
  return refusal;
}

bool is_same(const ir::Quantization* a, const ir::Quantization* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->scales == b->scales && a->zero_points == b->zero_points &&
         (a->axis == b->axis || !a->per_axis()) && a->block == b->block && a->narrow == b->narrow;
}

// A node of a runtime, and of a file. Runtimes leave out outputs that nothing reads.
bool is_same_node(const tfl::NodeOperands& node, const tfl::NodeOperands& stored) {
  return node.inputs == stored.inputs &&
         std::equal(node.outputs.begin(), node.outputs.end(), stored.outputs.begin(),
                    stored.outputs.end(), [](int a, int b) { return a < 0 || a == b; });
}

}  // namespace

void Model::inline_graphs(ModelNode& node, const Options& options) {
  const auto refuse_it = [&](Refusal refusal) {
    node.works = node.claimed = false;
    // If the graph is not there, it is of no interest.
    const bool is_unknown = node.as_graph && refusal.why == Why::kRuntime;
    node.refusal = is_unknown ? *node.as_graph : std::move(refusal);
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (open_.count(node.inputs[i]) == 0) continue;
    return refuse_it({Why::kRunTime, "input " + std::to_string(i),
                      "has a shape that is known only in an inference"});
  }
  Inlining all;
  imported_ = 0;
  const OrRefusal<std::vector<int>> results = inline_node(node, options, all);
  if (!results) return refuse_it(results.refusal());
  if (results->size() != node.outputs.size())
    return refuse_it({Why::kOperands, "", "its graph has another number of results"});
  for (std::size_t i = 0; i < results->size(); ++i) {
    if (node.outputs[i] < 0) continue;
    if (uz(node.outputs[i]) >= inner_->first())
      return refuse_it({Why::kOperands, "output " + std::to_string(i), "is absent"});
    const TfLiteTensor& output = evaluator_.context().tensors[uz(node.outputs[i])];
    if (auto refusal = check_alike(output, (*results)[i], "output " + std::to_string(i)))
      return refuse_it(std::move(*refusal));
  }
  node.results = *results;
  node.inner = std::move(all.nodes);
  node.graphs = std::move(all.graphs);
  node.reads_values = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](int id) { return known_.count(id) != 0; });
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (node.outputs[i] < 0) continue;
    ir::Tensor& output = whole_.tensor(node.outputs[i]);
    output.shape = whole_.tensor(node.results[i]).shape;
    output.model_rank = output.shape.rank();
    evaluator_.set_shape(node.outputs[i], output.shape.dims());
  }
}

OrRefusal<std::vector<int>> Model::inline_node(const ModelNode& node, const Options& options,
                                               Inlining& all) {
  if (node.operation->control == ops::Control::kNone)  // a composite
    return inline_graph(node.imported.graphs.at(0), node.inputs, node, options, all);
  Inlining before;  // without the nodes, which are many
  before.graphs = all.graphs;
  before.used = all.used;
  before.path = all.path;
  before.steps = all.steps;
  before.repeated = all.repeated;
  const std::size_t count = all.nodes.size();
  before.unrolls = all.unrolls;
  if (!all.unrolls) all.steps = all.repeated = 0;
  all.unrolls = true;
  OrRefusal<std::vector<int>> results = inline_known(node, options, all);
  all.unrolls = before.unrolls;
  if (results || !all.is_open) return results;
  all.nodes.erase(all.nodes.begin() + static_cast<std::ptrdiff_t>(count), all.nodes.end());
  before.nodes = std::move(all.nodes);
  all = std::move(before);
  return run_graphs(node, options, all);
}

OrRefusal<std::vector<int>> Model::inline_known(const ModelNode& node, const Options& options,
                                                Inlining& all) {
  if (node.operation->control == ops::Control::kLoop) return inline_loop(node, options, all);
  const OrRefusal<std::optional<bool>> taken = condition(node.inputs.at(0));
  if (!taken) return taken.refusal();
  all.is_open = !*taken;
  if (all.is_open) return kOpen;
  return inline_graph(node.imported.graphs.at(**taken ? 0 : 1),
                      {node.inputs.begin() + 1, node.inputs.end()}, node, options, all);
}

OrRefusal<std::vector<int>> Model::inline_loop(const ModelNode& node, const Options& options,
                                               Inlining& all) {
  const int check = node.imported.graphs.at(0), body = node.imported.graphs.at(1);
  std::vector<int> values = node.inputs;
  all.graphs.insert(check);
  while (true) {
    const OrRefusal<std::optional<bool>> more = evaluate_condition(check, values, node, options);
    if (!more) return more.refusal();
    all.is_open = !*more;
    if (all.is_open) return kOpen;
    if (!**more) return values;
    OrRefusal<std::vector<int>> next = inline_graph(body, values, node, options, all);
    if (!next) return next;
    if (next->size() != values.size())
      return malformed(body, "has another number of results than of inputs");
    values = std::move(*next);
    all.is_open = ++all.steps > kMostSteps;
    if (all.is_open) return kOpen;
  }
}

OrRefusal<std::vector<int>> Model::inline_graph(int graph, const std::vector<int>& operands,
                                                const ModelNode& by, const Options& options,
                                                Inlining& all) {
  if (std::count(all.path.begin(), all.path.end(), graph) > 0)
    return malformed(graph, "runs itself");
  const OrRefusal<InnerGraph*> found = inner_graph(graph);
  if (!found) return found.refusal();
  InnerGraph& inner = **found;
  OrRefusal<std::vector<int>> ids = bind(graph, inner, operands);
  if (!ids) return ids;
  all.graphs.insert(graph);
  all.path.push_back(graph);
  for (const CpuNode& recipe : inner.nodes) {
    if (auto refusal = inline_step(graph, recipe, *ids, by, options, all)) return *refusal;
  }
  all.path.pop_back();
  std::vector<int> results;
  for (const int id : inner.outputs) {
    if (id < 0 || uz(id) >= ids->size() || (*ids)[uz(id)] < 0)
      return malformed(graph, "has a result that none of its nodes writes");
    results.push_back((*ids)[uz(id)]);
  }
  return results;
}

std::optional<Refusal> Model::inline_step(int graph, const CpuNode& recipe, std::vector<int>& ids,
                                          const ModelNode& by, const Options& options,
                                          Inlining& all) {
  if (++imported_ > kMostImported) {
    all.is_open = false;
    return Refusal{Why::kParameter, "",
                   "its graphs have more than " + std::to_string(kMostImported) +
                       " nodes, each counted at every place that runs it"};
  }
  all.is_open = ++all.steps > kMostSteps && all.unrolls;
  if (all.is_open) return kOpen;
  const InnerGraph& inner = graphs_.at(graph);
  CpuNode mapped = recipe;
  mapped.index = by.index;
  for (int& id : mapped.inputs) {
    if (id < 0) continue;
    if (uz(id) >= ids.size() || ids[uz(id)] < 0)
      return malformed(graph, "has a node that reads what no node before it writes");
    id = ids[uz(id)];
    if (stored_.count(id) != 0 && !all.used.insert(id).second)
      all.repeated += evaluator_.context().tensors[uz(id)].bytes;
  }
  all.is_open = all.repeated > kMostRepeated && all.unrolls;
  if (all.is_open) return kOpen;
  std::vector<int> own;
  for (int& id : mapped.outputs) {
    own.push_back(id);
    if (id < 0) continue;
    if (uz(id) >= ids.size() || ids[uz(id)] >= 0)
      return malformed(graph, "has a tensor that is written twice");
    id = ids[uz(id)] = add_inner(inner.tensors[uz(id)]);
  }
  for (int& id : mapped.intermediates) {
    id = id >= 0 && uz(id) < inner.tensors.size() ? add_inner(inner.tensors[uz(id)]) : -1;
  }
  ModelNode node = import_inner(mapped, options);
  if (node.works && node.claimed) {
    const bool keeps = node.operation->resource != ops::Resource::kNone || !states_of(node).empty();
    if (keeps) {
      node.refusal = Refusal{Why::kVariable, "", "uses a variable"};
    } else if (node.measures >= 0) {
      node.refusal = Refusal{Why::kRunTime, "the size of its result"};
    } else if (!node.awaits.empty()) {
      node.refusal = Refusal{
          Why::kRunTime, "input " + std::to_string(std::find(node.inputs.begin(), node.inputs.end(),
                                                             node.awaits[0]) -
                                                   node.inputs.begin())};
    }
  }
  if (node.refusal) return because_of(node, graph);
  if (!node.is_inlined()) {
    const bool shaped = node.folded != nullptr || evaluate(node);
    if (node.refusal) return because_of(node, graph);
    if (!shaped) {
      node.refusal = Refusal{Why::kShape, "", "its shapes do not fit together"};
      return because_of(node, graph);
    }
    all.nodes.push_back(std::move(node));
    return std::nullopt;
  }
  const OrRefusal<std::vector<int>> results = inline_node(node, options, all);
  if (!results) return results.refusal();
  if (results->size() != own.size()) return malformed(graph, "has a node with missing results");
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] < 0) continue;
    if (auto refusal = check_alike(inner.tensors[uz(own[i])], (*results)[i], "a result"))
      return refusal;
    ids[uz(own[i])] = (*results)[i];
  }
  return std::nullopt;
}

bool Model::runs_graphs(const ModelNode& node) {
  return node.run != nullptr || std::any_of(node.inner.begin(), node.inner.end(), runs_graphs);
}

int Model::add_value(int like) {
  TfLiteTensor tensor = evaluator_.context().tensors[uz(like)];
  tensor.allocation_type = kTfLiteArenaRw;
  tensor.data = nullptr;
  tensor.is_variable = false;
  const int id = add_inner(tensor);
  whole_.tensor(id).shape = whole_.tensor(like).shape;
  return id;
}

std::optional<Refusal> Model::check_same(int value, int other, const std::string& what) const {
  if (auto refusal = check_alike(evaluator_.context().tensors[uz(value)], other, what))
    return refusal;
  const ir::Shape &before = whole_.tensor(value).shape, &now = whole_.tensor(other).shape;
  if (before == now) return std::nullopt;
  return Refusal{Why::kShape, "",
                 what + " has the shape " + before.str() + " and then " + now.str()};
}

OrRefusal<std::vector<int>> Model::run_graphs(const ModelNode& node, const Options& options,
                                              Inlining& all) {
  const bool is_loop = node.operation->control == ops::Control::kLoop;
  ModelNode run;
  run.index = node.index;
  run.op = node.op;
  run.family = node.family;
  run.operation = node.operation;
  run.imported = node.imported;
  run.cpu = node.cpu;
  run.works = run.claimed = true;
  const std::vector<int> operands(node.inputs.begin() + (is_loop ? 0 : 1), node.inputs.end());
  const OrRefusal<InnerGraph*> body = inner_graph(node.imported.graphs.at(1));
  if (!body) return body.refusal();
  // Constants that stay as they are, weights for example, remain constants within the graphs.
  const auto stays = [&](std::size_t i) {
    if (stored_.count(operands[i]) == 0) return false;
    const std::vector<int>&inputs = (*body)->inputs, &outputs = (*body)->outputs;
    return !is_loop || (i < inputs.size() && i < outputs.size() && inputs[i] == outputs[i]);
  };
  if (!is_loop) run.inputs.push_back(node.inputs[0]);
  std::vector<int> values, results;
  const auto graphs = std::make_shared<RunGraphs>();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values.push_back(stays(i) ? operands[i] : add_value(operands[i]));
    if (stays(i)) continue;
    graphs->values.push_back(values.back());
    run.inputs.push_back(operands[i]);
  }
  if (auto refusal = read_graphs(values, options, all, run, *graphs)) return *refusal;
  for (const int result : graphs->otherwise) run.outputs.push_back(result);
  if (is_loop) run.outputs = graphs->values;
  if (run.outputs.empty())
    return Refusal{Why::kOperands, "", "has no state that its rounds may change"};
  for (int& output : run.outputs) {
    const ir::Shape shape = whole_.tensor(output).shape;
    output = add_value(output);
    evaluator_.set_shape(output, shape.dims());
  }
  results = run.outputs;
  for (std::size_t i = 0, next = 0; is_loop && i < operands.size(); ++i) {
    if (i == 0) results.clear();
    results.push_back(stays(i) ? operands[i] : run.outputs[next++]);
  }
  run.run = graphs;
  all.nodes.push_back(std::move(run));
  return results;
}

std::optional<Refusal> Model::read_graphs(const std::vector<int>& values, const Options& options,
                                          Inlining& all, ModelNode& run, RunGraphs& graphs) {
  const int first = run.imported.graphs.at(0), second = run.imported.graphs.at(1);
  Inlining one, two;
  one.path = two.path = all.path;
  OrRefusal<std::vector<int>> results = inline_graph(first, values, run, options, one);
  if (!results) return results.refusal();
  OrRefusal<std::vector<int>> otherwise = inline_graph(second, values, run, options, two);
  if (!otherwise) return otherwise.refusal();
  if (run.operation->control == ops::Control::kLoop) {
    if (otherwise->size() != values.size())
      return malformed(second, "has another number of results than of inputs");
    const OrRefusal<std::vector<int>> again = inline_graph(first, *otherwise, run, options, two);
    if (!again) return again.refusal();
    if (results->size() != 1) return malformed(first, "has no result, or several");
    for (const int condition : {results->front(), again->front()}) {
      if (auto refusal = check_condition(condition)) return refusal;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((*otherwise)[i] == values[i] && stored_.count(values[i]) != 0) continue;
      if (auto refusal = check_same(values[i], (*otherwise)[i], "state " + std::to_string(i)))
        return refusal;
      graphs.otherwise.push_back((*otherwise)[i]);
    }
    graphs.otherwise.push_back(again->front());
  } else {
    if (auto refusal = check_condition(run.inputs[0])) return refusal;
    if (results->size() != otherwise->size())
      return malformed(second, "has another number of results than the other graph");
    for (std::size_t i = 0; i < results->size(); ++i) {
      if (auto refusal = check_same((*results)[i], (*otherwise)[i], "result " + std::to_string(i)))
        return refusal;
    }
    graphs.otherwise = *otherwise;
  }
  graphs.results = *results;
  graphs.split = one.nodes.size();
  run.inner = std::move(one.nodes);
  std::move(two.nodes.begin(), two.nodes.end(), std::back_inserter(run.inner));
  for (const Inlining* each : {&one, &two}) {
    all.graphs.insert(each->graphs.begin(), each->graphs.end());
    all.steps += each->steps;
  }
  return std::nullopt;
}

ModelNode Model::import_inner(const CpuNode& mapped, const Options& options) {
  ModelNode node;
  node.index = mapped.index;
  node.op = mapped.op;
  node.inputs = mapped.inputs;
  node.outputs = mapped.outputs;
  node.cpu = std::make_shared<const CpuNode>(mapped);
  const NodeInstance instance(mapped);
  const tfl::NodeView view(evaluator_.context(), instance.node, mapped.registration, node.index);
  import(node, view, options);
  if (node.works && node.claimed) {
    if (auto refusal = check_bounds(evaluator_.context(), instance.node, view.builtin())) {
      node.works = node.claimed = false;
      node.refusal = std::move(refusal);
    }
  }
  return node;
}

OrRefusal<std::optional<bool>> Model::evaluate_condition(int graph,
                                                         const std::vector<int>& operands,
                                                         const ModelNode& by,
                                                         const Options& options) {
  const OrRefusal<InnerGraph*> found = inner_graph(graph);
  if (!found) return found.refusal();
  InnerGraph& inner = **found;
  OrRefusal<std::vector<int>> bound = bind(graph, inner, operands);
  if (!bound) return bound.refusal();
  std::vector<int>& ids = *bound;
  for (const CpuNode& recipe : inner.nodes) {
    CpuNode mapped = recipe;
    mapped.index = by.index;
    for (int& id : mapped.inputs) {
      if (id < 0) continue;
      if (uz(id) >= ids.size() || ids[uz(id)] < 0)
        return malformed(graph, "has a node that reads what no node before it writes");
      id = ids[uz(id)];
    }
    for (int& id : mapped.outputs) {
      if (id < 0 || uz(id) >= ids.size() || ids[uz(id)] >= 0)
        return malformed(graph, "has a tensor that is written twice");
      const auto [entry, is_new] = inner.scratch.try_emplace(id, -1);
      if (is_new) entry->second = add_inner(inner.tensors[uz(id)]);
      id = ids[uz(id)] = entry->second;
      evaluator_.set_shape(id, to_vector(evaluator_.context().tensors[uz(id)].dims));
      by_shape_.erase(id);
    }
    // A kernel of the runtime may abort where the node is refused. Its results remain unknown.
    const ModelNode node = import_inner(mapped, options);
    if (!node.works) continue;
    const bool follows =
        node.operation->by_shape || std::any_of(mapped.inputs.begin(), mapped.inputs.end(),
                                                [&](int id) { return by_shape_.count(id) != 0; });
    if (follows) by_shape_.insert(mapped.outputs.begin(), mapped.outputs.end());
    try {
      evaluator_.run(mapped);
    } catch (const ShadowError&) {
      continue;
    }
  }
  if (inner.outputs.size() != 1 || inner.outputs[0] < 0 || uz(inner.outputs[0]) >= ids.size() ||
      ids[uz(inner.outputs[0])] < 0)
    return malformed(graph, "has no result, or several");
  return condition(ids[uz(inner.outputs[0])]);
}

constexpr const char* kCondition = "the condition";

std::optional<Refusal> Model::check_condition(int tensor) const {
  const tfl::TensorView view(&evaluator_.context().tensors[uz(tensor)], tensor);
  if (view.tflite_type() != kTfLiteBool)
    return Refusal{Why::kType, kCondition, {}, tfl::type_name(view.tflite_type()), {"bool"}};
  if (view.elements() != 1) return Refusal{Why::kOperands, kCondition, "has several elements"};
  return std::nullopt;
}

OrRefusal<std::optional<bool>> Model::condition(int tensor) const {
  if (auto refusal = check_condition(tensor)) return *refusal;
  const tfl::TensorView view(&evaluator_.context().tensors[uz(tensor)], tensor);
  const auto values = view.ints();
  // Planning for other shapes does not read the graphs again.
  if (!values || by_shape_.count(tensor) != 0) return std::optional<bool>();
  return std::optional<bool>(values->front() != 0);
}

OrRefusal<Model::InnerGraph*> Model::inner_graph(int graph) {
  if (const auto found = graphs_.find(graph); found != graphs_.end()) return &found->second;
  const Refusal unknown{Why::kRuntime, "the runtime",
                        "does not tell the inputs and outputs of graph " + std::to_string(graph)};
  if (graph < 0) return unknown;
  const tfl::Acquired acquired(context_, graph);
  if (acquired.context == nullptr || acquired.is_own()) return unknown;
  TfLiteContext& context = *acquired.context;
  if (!file_ || !file_->is_found()) {
    // Also those in front: this one may have no constants, by which the file is found.
    std::vector<const TfLiteContext*> known = {&context_, &context};
    std::vector<std::unique_ptr<tfl::Acquired>> others;
    for (int i = 0; i < graph; ++i) {
      others.push_back(std::make_unique<tfl::Acquired>(context_, i));
      if (others.back()->context != nullptr) known.push_back(others.back()->context);
    }
    file_.emplace(known);
  }
  TfLiteIntArray* plan = nullptr;
  if (context.GetExecutionPlan(&context, &plan) != kTfLiteOk) return unknown;
  InnerGraph inner;
  inner.context = &context;
  inner.tensors.assign(context.tensors, context.tensors + context.tensors_size);
  std::vector<tfl::NodeOperands> nodes;
  for (const int index : to_vector(plan)) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context.GetNodeAndRegistration(&context, index, &node, &registration) != kTfLiteOk)
      return unknown;
    nodes.push_back({to_vector(node->inputs), to_vector(node->outputs)});
    const std::string op = tfl::NodeView(context, *node, *registration, index).op();
    inner.nodes.emplace_back(index, op, *node, *registration);
  }
  std::optional<tfl::GraphOperands> operands =
      file_->graph(graph, [&](const tfl::GraphOperands& found) {
        return std::equal(nodes.begin(), nodes.end(), found.nodes.begin(), found.nodes.end(),
                          is_same_node);
      });
  if (!operands) return unknown;
  inner.inputs = std::move(operands->inputs);
  inner.outputs = std::move(operands->outputs);
  return &graphs_.emplace(graph, std::move(inner)).first->second;
}

OrRefusal<std::vector<int>> Model::bind(int index, InnerGraph& graph,
                                        const std::vector<int>& operands) {
  if (graph.inputs.size() != operands.size())
    return Refusal{Why::kOperands, "",
                   "graph " + std::to_string(index) + " has " +
                       std::to_string(graph.inputs.size()) + " inputs, and gets " +
                       std::to_string(operands.size())};
  std::vector<int> ids(graph.tensors.size(), -1);
  for (std::size_t id = 0; id < ids.size(); ++id) {
    const TfLiteTensor& tensor = graph.tensors[id];
    if (tensor.allocation_type != kTfLiteMmapRo) continue;
    const auto [entry, is_new] = graph.constants.try_emplace(static_cast<int>(id), -1);
    if (is_new) entry->second = add_inner(tensor);
    ids[id] = entry->second;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int id = graph.inputs[i];
    if (id < 0 || uz(id) >= ids.size() || ids[uz(id)] >= 0)
      return malformed(index, "has an input that is no tensor, a constant or another input");
    const std::string what = "input " + std::to_string(i) + " of graph " + std::to_string(index);
    if (auto refusal = check_alike(graph.tensors[uz(id)], operands[i], what)) return *refusal;
    ids[uz(id)] = operands[i];
  }
  return ids;
}

std::optional<Refusal> Model::check_alike(const TfLiteTensor& inner, int tensor,
                                          const std::string& what) const {
  const TfLiteTensor& given = evaluator_.context().tensors[uz(tensor)];
  if (inner.type != given.type) {
    return Refusal{Why::kType, what, {}, tfl::type_name(inner.type), {tfl::type_name(given.type)}};
  }
  const auto quantization = [&](const TfLiteTensor& of) {
    return tfl::quantization_of(tfl::TensorView(&of, -1));
  };
  const tfl::TensorView view(&inner, -1), other(&given, -1);
  const bool same =
      view.is_quantized() == other.is_quantized() && !view.is_blockwise() &&
      !other.is_blockwise() &&
      (!view.is_quantized() || is_same(quantization(inner).get(), quantization(given).get()));
  if (same) return std::nullopt;
  return Refusal{Why::kRescaling, what, "has another scale or zero point than its value"};
}

int Model::add_inner(const TfLiteTensor& tensor) {
  const int id = inner_->add(tensor);
  evaluator_.append(inner_->list().back());
  whole_.tensors.emplace_back();
  read_tensor(tfl::TensorView(&evaluator_.context().tensors[uz(id)], id, &evaluator_.context()),
              id);
  return id;
}

std::set<const TfLiteContext*> Model::inlined_graphs() const {
  std::set<int> inlined;
  for (const ModelNode& node : nodes) {
    if (node.claimed) inlined.insert(node.graphs.begin(), node.graphs.end());
  }
  for (const ModelNode& node : nodes) {
    if (node.claimed) continue;
    for (const int graph : node.imported.graphs) inlined.erase(graph);
  }
  std::set<const TfLiteContext*> contexts;
  for (const int graph : inlined) contexts.insert(graphs_.at(graph).context);
  return contexts;
}

}  // namespace clgpu::delegate
