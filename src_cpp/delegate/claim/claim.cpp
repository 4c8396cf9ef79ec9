#include "delegate/claim/claim.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/byte_size.hpp"
#include "delegate/building/largest.hpp"
#include "delegate/claim/first_report.hpp"
#include "delegate/claim/leaving.hpp"
#include "delegate/claim/mixed.hpp"
#include "delegate/claim/model.hpp"
#include "delegate/int_array.hpp"

namespace clgpu::delegate {
namespace {

struct PartitionIds {
  std::vector<int> nodes, outputs;
};

// A stage of one of the runtime's partitions; most have only one.
struct StageIds : StageNodes {
  std::size_t partition = 0;
  int stage_of = -1;                      // the position of the first stage, if it is another one
  std::shared_ptr<StageTensors> tensors;  // null if the partition is one stage
};

// Why a model that the runtime cannot partition stays on the CPU as a whole.
Refusal not_divided() {
  return {Why::kRuntime, "the runtime",
          "cannot divide the model into partitions (PreviewDelegatePartitioning fails); one "
          "cause: a node reads a tensor that only a later node writes"};
}

// Empty if the runtime cannot do it.
std::optional<std::vector<PartitionIds>> preview(TfLiteContext& context,
                                                 const std::vector<int>& nodes) {
  TfLiteDelegateParams* params = nullptr;
  int count = 0;
  if (context.PreviewDelegatePartitioning(&context, IntArray(nodes).get(), &params, &count) !=
      kTfLiteOk)
    return std::nullopt;
  std::vector<PartitionIds> partitions;
  for (int i = 0; i < count; ++i) {
    partitions.push_back(
        {to_vector(params[i].nodes_to_replace), to_vector(params[i].output_tensors)});
  }
  return partitions;
}

void refuse_all(Model& model) {
  for (const ModelNode& node : model.nodes) {
    if (node.claimed) model.refuse(node.index, not_divided());
  }
}

// If one partition has all nodes, its outputs are the outputs of the model.
void find_outputs(TfLiteContext& context, Model& model) {
  std::vector<int> all;
  for (const ModelNode& node : model.nodes) all.push_back(node.index);
  const auto partitions = preview(context, all);
  if (!partitions) return refuse_all(model);
  for (const PartitionIds& ids : *partitions)
    model.model_outputs.insert(ids.outputs.begin(), ids.outputs.end());
}

// Why a tensor of the options is not carried by a partition; otherwise marks it in the graph, and
// has its largest elements found if `largest` is not negative.
std::string carry(const Model& model, const std::vector<int>& nodes, ir::Graph& graph, int number,
                  const CarriedTensor::Pair& pair, int largest) {
  const auto find = [&](const std::vector<int>& ids, int tflite_id) {
    const auto found = std::find_if(ids.begin(), ids.end(), [&](int id) {
      return graph.tensor(id).state < 0 && graph.tensor(id).tflite_id == tflite_id;
    });
    return found == ids.end() ? -1 : *found;
  };
  const std::set<int> own(nodes.begin(), nodes.end());
  const int output = find(graph.outputs, pair.output), input = find(graph.inputs, pair.input);
  if (output < 0) return {};
  if (pair.input >= model.tensor_count())
    return "the graph has no tensor with the index of its input";
  if (graph.tensor(output).carried >= 0) return "another carried tensor has its output";
  if (input >= 0 && graph.tensor(input).carried >= 0) return "another carried tensor has its input";
  // Its own input: nothing is read, and its value stays on the device for others.
  if (pair.input == pair.output) {
    if (model.is_read_outside(pair.output, own)) return "other nodes read its output";
    graph.tensor(output).carried = number;
    if (largest >= 0) append_largest(graph, output, largest);
    return {};
  }
  if (model.is_computed(pair.input)) return "its input is computed by a node";
  if (model.is_read_outside(pair.input, own)) return "other nodes read its input";
  if (model.is_read_outside(pair.output, own)) return "other nodes read its output";
  if (input >= 0 && (graph.tensor(input).dtype != graph.tensor(output).dtype ||
                     graph.tensor(input).shape != graph.tensor(output).shape))
    return "its input and its output differ in type or shape";
  graph.tensor(output).carried = number;
  if (input >= 0) graph.tensor(input).carried = number;
  return {};
}

// A partition's part of the model, with its carried tensors.
Extract extract(const TfLiteContext& context, const Options& options, const Session& session,
                const Model& model, const StageIds& ids) {
  Extract extract = model.extract(context, ids);
  for (std::size_t i = 0; i < options.carry.size() && session.carriers != nullptr; ++i) {
    const auto pair = options.carry[i].graphs.find(session.graph);
    if (pair == options.carry[i].graphs.end()) continue;
    const int number = static_cast<int>(i);
    // Verification would need their values of the CPU's kernels.
    const int largest = options.verify == kVerifyOff ? options.carry[i].largest : -1;
    const bool has_output =
        std::count(ids.outputs.begin(), ids.outputs.end(), pair->second.output) > 0;
    const std::vector<int>& awaited = extract.awaited;
    const bool is_awaited =
        std::count(awaited.begin(), awaited.end(), pair->second.input) > 0;  // by the host
    std::string reason =
        is_awaited ? "the shapes of nodes follow from its input"
                   : carry(model, ids.nodes, extract.graph, number, pair->second, largest);
    if (has_output) session.carriers->tell(number, session.graph, std::move(reason));
  }
  if (options.plan.reuse && session.is_main) {
    for (const int id : extract.graph.inputs) {
      ir::Tensor& tensor = extract.graph.tensor(id);
      tensor.is_fed =
          tensor.state < 0 && tensor.carried < 0 && !model.is_computed(tensor.tflite_id);
    }
  }
  return extract;
}

// Before partitions are made.
void tell_nothing_carried(const Options& options, const Session& session) {
  for (std::size_t i = 0; i < options.carry.size() && session.carriers != nullptr; ++i) {
    if (options.carry[i].graphs.count(session.graph) > 0)
      session.carriers->tell(static_cast<int>(i), session.graph,
                             "no partition on the device computes its output");
  }
}

// Divides the runtime's partitions.
std::vector<StageIds> stages_of(const Model& model, const Target& target,
                                const std::vector<PartitionIds>& partitions) {
  std::vector<StageIds> all;
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    const PartitionIds& ids = partitions[p];
    std::vector<StageNodes> stages = model.stages(ids.nodes, ids.outputs);
    std::set<int> on_device, on_host;
    for (const StageNodes& stage : stages) {
      for (const int id : stage.outputs) {
        if (std::count(ids.outputs.begin(), ids.outputs.end(), id) == 0) on_device.insert(id);
      }
    }
    for (const StageNodes& stage : stages) {
      for (const int id : model.awaited(stage)) {
        if (on_device.erase(id) != 0) on_host.insert(id);
      }
    }
    const auto tensors = stages.size() == 1
                             ? nullptr
                             : std::make_shared<StageTensors>(target.context, std::move(on_device),
                                                              std::move(on_host));
    const int first = static_cast<int>(all.size());
    for (std::size_t i = 0; i < stages.size(); ++i)
      all.push_back({std::move(stages[i]), p, i > 0 ? first : -1, tensors});
  }
  return all;
}

// Divides the memory budget among the partitions, in proportion to the minimum that each needs.
// Throws BudgetError if the sum of the minima exceeds the budget.
void share_budget(const TfLiteContext& context, const std::shared_ptr<State>& state,
                  const std::shared_ptr<Session>& session, Model& model,
                  const std::vector<StageIds>& partitions) {
  std::vector<std::int64_t> least;
  std::int64_t sum = 0;
  for (const StageIds& ids : partitions) {
    Partition partition(state, session,
                        extract(context, state->target.options, *session, model, ids), ids.nodes,
                        static_cast<int>(least.size()));
    try {
      least.push_back(partition.smallest_budget());
    } catch (const ShapeError&) {
      least.push_back(0);  // of a dynamic model, whose shapes come later
    }
    sum += least.back();
  }
  const std::int64_t budget = state->target.options.plan.memory_budget;
  if (sum > budget) {
    throw plan::BudgetError(sum, "no plans of the " + std::to_string(least.size()) +
                                     " partitions fit into the memory budget of " +
                                     byte_size(budget) + "; the smallest feasible budget is " +
                                     byte_size(sum));
  }
  for (std::size_t i = 0; i < least.size(); ++i) {
    const double part = sum > 0 ? static_cast<double>(least[i]) / static_cast<double>(sum) : 0;
    const auto more = static_cast<std::int64_t>(static_cast<double>(budget - sum) * part);
    // A share of 0 would be no budget.
    session->share[static_cast<int>(i)] = std::max<std::int64_t>(least[i] + more, 1);
  }
}

// Leaves a partition with fewer nodes than the option 'min_nodes' to the CPU; returns whether it
// did.
bool leave_small(const Options& options, Model& model, const PartitionIds& ids) {
  const auto count = std::count_if(ids.nodes.begin(), ids.nodes.end(), [&](int index) {
    return !model.computes_constant(model.node(index)) && !model.node(index).evaluated;
  });
  if (count == 0 || count >= options.min_nodes) return false;
  const std::string nodes = std::to_string(count) + (count == 1 ? " node" : " nodes");
  const std::string least = std::to_string(options.min_nodes);
  leave(model, ids.nodes,
        {Why::kOption,
         "min_nodes",
         "its partition has " + nodes + ", fewer than " + least,
         nodes,
         {least + " and more"}});
  return true;
}

// Whether the device computes a node, or one of its loop, with kernels of this family.
bool uses(const ModelNode& node, const std::string& family) {
  if (!node.works || node.evaluated) return false;
  return node.family->name == family ||
         std::any_of(node.inner.begin(), node.inner.end(),
                     [&](const ModelNode& inner) { return uses(inner, family); });
}

// Whether a pass may have made a node of this family, which no model has, of a node and others.
bool may_be_part(const ModelNode& node, const std::string& family) {
  return node.works &&
         std::any_of(ops::all_families().begin(), ops::all_families().end(),
                     [&](const ops::Family* made) {
                       return made->name == family &&
                              std::count(made->fuses.begin(), made->fuses.end(), node.family) > 0;
                     });
}

// Refuses the nodes that no kernel computes, at least one of `nodes`.
void refuse(Model& model, const std::vector<int>& nodes, const plan::NoCandidate& failure) {
  const Refusal refusal{Why::kDevice, "", failure.what()};
  bool is_any = false;
  for (const ModelNode& node : model.nodes) {
    if (!uses(node, failure.family())) continue;
    model.refuse(node.index, refusal);
    is_any = true;
  }
  if (is_any) return;
  // A node that a pass has made has the number of the first of its parts.
  if (std::count(nodes.begin(), nodes.end(), failure.node()) > 0 &&
      may_be_part(model.node(failure.node()), failure.family()))
    return model.refuse(failure.node(), refusal);
  leave(model, nodes, refusal);
}

// The partition that `make` makes of the nodes, built for the current shapes if it `is_run`. If a
// node prevents that, refuses the node and returns null. Throws OptionError, and so
// plan::BudgetError.
template <class Make>
std::unique_ptr<Partition> build_or_refuse(const TfLiteContext& context, Model& model,
                                           const std::vector<int>& nodes, bool is_run, Make make) {
  std::unique_ptr<Partition> partition;
  try {
    partition = make();
    partition->stand_by(model.cpu_nodes(nodes));
    if (is_run && !partition->awaits()) partition->build();
    return partition;
  } catch (const plan::NoCandidate& failure) {
    refuse(model, nodes, failure);
  } catch (const ShapeError& error) {
    // The shapes may still change before the first inference.
    const auto is_open = [&] {
      return partition->is_dynamic(context) ||
             (partition->is_specialized() && model.is_dynamic() && model.follows_cpu(nodes));
    };
    if (partition != nullptr && is_open()) return partition;
    // The problem concerns no particular node: for example, an upload for nodes that have been
    // removed.
    const Refusal refusal{Why::kShape, "", error.what()};
    if (error.node() < 0) {
      leave(model, nodes, refusal);
    } else {
      model.refuse(error.node(), refusal);
    }
  } catch (const OptionError&) {
    throw;
  } catch (const Error& error) {
    // For example, out of device memory: the partition stays on the CPU.
    leave(model, nodes, {Why::kDevice, "", error.what()});
  }
  return nullptr;
}

// One attempt: builds all partitions of the claimed nodes, or refuses at least one node that
// prevented it and returns false.
bool try_build(TfLiteContext& context, const std::shared_ptr<State>& state,
               const std::shared_ptr<Session>& session, Model& model, bool is_run,
               std::vector<std::unique_ptr<Partition>>& built,
               std::vector<std::vector<std::size_t>>& groups, std::vector<PartitionIds>& divided) {
  built.clear();
  groups.clear();
  divided.clear();
  session->held.clear();
  session->known.clear();
  tell_nothing_carried(state->target.options, *session);
  const std::vector<int> claimed = model.claimed();
  if (claimed.empty()) return true;
  std::optional<std::vector<PartitionIds>> previewed = preview(context, claimed);
  if (!previewed) {
    refuse_all(model);
    return false;
  }
  divided = *std::move(previewed);
  for (const PartitionIds& ids : divided) {
    if (leave_small(state->target.options, model, ids)) return false;
  }
  const std::vector<StageIds> partitions = stages_of(model, state->target, divided);
  groups.resize(divided.size());
  std::vector<std::vector<int>> node_lists;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    groups[partitions[i].partition].push_back(i);
    node_lists.push_back(partitions[i].nodes);
  }
  if (model.leave_shared_resources(node_lists)) return false;
  if (session->share.size() != partitions.size()) session->share.clear();
  const auto make = [&](const StageIds& ids, std::size_t index) {
    return std::make_unique<Partition>(
        state, session, extract(context, state->target.options, *session, model, ids), ids.nodes,
        static_cast<int>(index), ids.tensors, ids.stage_of);
  };
  std::vector<std::unique_ptr<Partition>> plans;
  if (session->placement.source == kCostModel) {
    for (const StageIds& ids : partitions) plans.push_back(make(ids, plans.size()));
    if (leave_losers(*session, model, plans)) return false;
  }
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    try {
      built.push_back(build_or_refuse(context, model, partitions[i].nodes, is_run, [&] {
        return plans.empty() ? make(partitions[i], i) : std::move(plans[i]);
      }));
    } catch (const plan::BudgetError&) {
      if (partitions.size() == 1 || !session->share.empty()) throw;
      share_budget(context, state, session, model, partitions);
      return false;
    }
    if (built.back() == nullptr) return false;
  }
  return true;
}

// The index of a graph in its model, -1 if the runtime does not tell it. `main` gets the main
// graph.
int index_of(TfLiteContext& context, const TfLiteContext*& main) {
  main = &context;
  if (context.AcquireSubgraphContext == nullptr) return -1;
  for (int index = 0;; ++index) {
    TfLiteContext* graph = nullptr;
    if (context.AcquireSubgraphContext(&context, index, &graph) != kTfLiteOk) return -1;
    if (index == 0) main = graph;
    if (graph == &context) return index;  // releasing it would end our own right to read the graph
    context.ReleaseSubgraphContext(&context, index);
  }
}

// Prepare is called for each subgraph. The model's main graph is the first; the others are bodies
// of loops and branches, or further signatures.
bool is_main_graph(TfLiteContext& context) {
  TfLiteContext* main = nullptr;
  if (context.AcquireSubgraphContext == nullptr ||
      context.AcquireSubgraphContext(&context, 0, &main) != kTfLiteOk) {
    return true;
  }
  if (main == &context) return true;  // releasing it would end our own right to read the graph
  context.ReleaseSubgraphContext(&context, 0);
  return false;
}

}  // namespace

Claim claim(TfLiteContext& context, const std::shared_ptr<State>& state, bool is_run) {
  Model model(context, state->target.options);
  find_outputs(context, model);
  const auto session = std::make_shared<Session>();
  session->model_outputs = model.model_outputs;
  const auto make_pool = [&] { return state->builder.pool(); };
  const bool is_main = session->is_main = is_main_graph(context);
  const TfLiteContext* main = nullptr;
  session->graph = index_of(context, main);
  session->holdings = state->holdings.of(main);
  session->carriers = state->carried.of(main, state->target);
  if (session->carriers != nullptr) session->carriers->holdings = session->holdings;
  session->pool = session->carriers == nullptr ? make_pool() : session->carriers->pool(make_pool);
  find_mixed(context, *state, model, is_main, *session);
  begin_placement(context, *state, *session, model, is_main);
  std::vector<std::unique_ptr<Partition>> partitions;
  std::vector<std::vector<std::size_t>> groups;  // indices of the stages
  std::vector<PartitionIds> divided;
  do {
    model.settle_constants();
  } while (!try_build(context, state, session, model, is_run, partitions, groups, divided));
  if (is_main) {
    Report report = first_report(state->target, model, context, partitions);
    end_placement(*session, report);
    tell_mixed(*state, *session, report);
    session->report = state->ledger.set_report(std::move(report));
    session->holdings->report = session->report;
    for (const auto& partition : partitions) partition->publish();
  }
  state->ledger.set_totals(session->holdings->report, session->holdings->totals());
  std::vector<std::unique_ptr<Stages>> wholes;
  for (std::size_t p = 0; p < groups.size(); ++p) {
    std::vector<std::unique_ptr<Partition>> stages;
    for (const std::size_t i : groups[p]) stages.push_back(std::move(partitions[i]));
    wholes.push_back(std::make_unique<Stages>(std::move(stages), std::move(divided[p].nodes)));
  }
  return {model.claimed(), std::move(wholes), is_main, model.inlined_graphs()};
}

}  // namespace clgpu::delegate
