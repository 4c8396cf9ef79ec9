#include "delegate/doors/delegate.hpp"

#include <algorithm>
#include <optional>

#include "base/byte_size.hpp"
#include "cl/fork.hpp"
#include "delegate/claim/leaving.hpp"
#include "delegate/claim/model.hpp"
#include "delegate/guard.hpp"
#include "plan/choose.hpp"

namespace clgpu::delegate {
namespace {

// TfLiteIntArray over a std::vector, for arguments that the runtime only reads.
class IntArray {
 public:
  explicit IntArray(const std::vector<int>& values) : words_(values.size() + 1) {
    words_[0] = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), words_.begin() + 1);
  }
  const TfLiteIntArray* get() const {
    return reinterpret_cast<const TfLiteIntArray*>(words_.data());
  }

 private:
  std::vector<int> words_;
};

std::vector<int> to_vector(const TfLiteIntArray& array) {
  return {array.data, array.data + array.size};
}

struct PartitionIds {
  std::vector<int> nodes, outputs;
};

// Why a model that the runtime cannot divide stays on the CPU as a whole.
Refusal not_divided() {
  return {Why::kRuntime, "the runtime",
          "cannot divide the model into partitions (PreviewDelegatePartitioning fails), as where a "
          "node reads what only a later one writes"};
}

// Nothing where the runtime cannot do it.
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
        {to_vector(*params[i].nodes_to_replace), to_vector(*params[i].output_tensors)});
  }
  return partitions;
}

void refuse_all(Model& model) {
  for (const ModelNode& node : model.nodes) {
    if (node.claimed) model.refuse(node.index, not_divided());
  }
}

// With every node in one partition, what leaves it are the outputs of the model.
void find_outputs(TfLiteContext& context, Model& model) {
  std::vector<int> all;
  for (const ModelNode& node : model.nodes) all.push_back(node.index);
  const auto partitions = preview(context, all);
  if (!partitions) return refuse_all(model);
  for (const PartitionIds& ids : *partitions)
    model.model_outputs.insert(ids.outputs.begin(), ids.outputs.end());
}

// Deals the memory budget out to the partitions, in proportion to the least that each needs. Throws
// BudgetError when that is too much.
void share_budget(const std::shared_ptr<State>& state, const std::shared_ptr<Session>& session,
                  Model& model, const std::vector<PartitionIds>& partitions) {
  std::vector<std::int64_t> least;
  std::int64_t sum = 0;
  for (const PartitionIds& ids : partitions) {
    Partition partition(state, session, model.graph(ids.nodes, ids.outputs), ids.nodes,
                        static_cast<int>(least.size()));
    try {
      least.push_back(partition.smallest_budget());
    } catch (const ShapeError&) {
      least.push_back(0);  // of a dynamic model, whose shapes come later
    }
    sum += least.back();
  }
  const std::int64_t budget = state->options.plan.memory_budget;
  if (sum > budget) {
    throw plan::BudgetError(sum, "no plans of the " + std::to_string(least.size()) +
                                     " partitions fit into the memory budget of " +
                                     byte_size(budget) + "; the smallest feasible budget is " +
                                     byte_size(sum));
  }
  for (std::size_t i = 0; i < least.size(); ++i) {
    const double part = static_cast<double>(least[i]) / static_cast<double>(sum);
    session->share[static_cast<int>(i)] =
        least[i] + static_cast<std::int64_t>(static_cast<double>(budget - sum) * part);
  }
}

// One attempt: builds all partitions of the claimed nodes, or refuses at least one node that stood
// in the way and returns false.
bool try_build(TfLiteContext& context, const std::shared_ptr<State>& state,
               const std::shared_ptr<Session>& session, Model& model,
               std::vector<std::unique_ptr<Partition>>& built) {
  built.clear();
  session->held.clear();
  const std::vector<int> claimed = model.claimed();
  if (claimed.empty()) return true;
  const auto divided = preview(context, claimed);
  if (!divided) {
    refuse_all(model);
    return false;
  }
  const std::vector<PartitionIds>& partitions = *divided;
  if (session->share.size() != partitions.size()) session->share.clear();
  for (const PartitionIds& ids : partitions) {
    const auto count = std::count_if(ids.nodes.begin(), ids.nodes.end(), [&](int index) {
      return !model.computes_constant(model.node(index));
    });
    if (count > 0 && count < state->options.min_nodes) {
      const std::string nodes = std::to_string(count) + (count == 1 ? " node" : " nodes");
      const std::string least = std::to_string(state->options.min_nodes);
      leave(model, ids.nodes,
            {Why::kOption,
             "min_nodes",
             "its partition has " + nodes + ", fewer than " + least,
             nodes,
             {least + " and more"}});
      return false;
    }
  }
  const auto make = [&](const PartitionIds& ids, std::size_t index) {
    return std::make_unique<Partition>(state, session, model.graph(ids.nodes, ids.outputs),
                                       ids.nodes, static_cast<int>(index));
  };
  std::vector<std::unique_ptr<Partition>> plans;
  if (session->placement.source == kCostModel) {
    for (const PartitionIds& ids : partitions) plans.push_back(make(ids, plans.size()));
    if (leave_losers(*session, model, plans)) return false;
  }
  for (const PartitionIds& ids : partitions) {
    std::unique_ptr<Partition> partition;
    try {
      partition = plans.empty() ? make(ids, built.size()) : std::move(plans[built.size()]);
      partition->stand_by(model.cpu_nodes(ids.nodes));
      partition->build();
    } catch (const plan::NoCandidate& failure) {
      for (const ModelNode& node : model.nodes) {
        if (node.works && node.family->name == failure.family())
          model.refuse(node.index, {Why::kDevice, "", failure.what()});
      }
      return false;
    } catch (const ShapeError& error) {
      if (!partition->is_dynamic(context)) {
        model.refuse(error.node(), {Why::kShape, "", error.what()});
        return false;
      }
    } catch (const plan::BudgetError&) {
      if (partitions.size() == 1 || !session->share.empty()) throw;
      share_budget(state, session, model, partitions);
      return false;
    } catch (const OptionError&) {
      throw;
    } catch (const Error& error) {
      // Out of device memory, say: the partition stays on the CPU.
      leave(model, ids.nodes, {Why::kDevice, "", error.what()});
      return false;
    }
    built.push_back(std::move(partition));
  }
  return true;
}

// Engines asked for that no node of their family knows: with the alternative "auto" no error, but
// likely a slip of the pen.
std::vector<std::string> unknown_engines(
    const Options& options, const std::vector<std::unique_ptr<Partition>>& partitions) {
  std::vector<std::string> notes;
  for (const auto& [family, wish] : options.plan.engines) {
    std::set<std::string> known;
    for (const auto& partition : partitions) {
      if (partition->plan() == nullptr) continue;
      for (const plan::Choice& choice : partition->plan()->choices) {
        if (choice.family != family) continue;
        known.insert(choice.candidates.begin(), choice.candidates.end());
        for (const plan::Refused& refused : choice.refused) known.insert(refused.first);
      }
    }
    if (known.empty()) continue;
    for (const std::string& engine : plan::alternatives(wish)) {
      const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
        return plan::goes_by(name, engine);
      });
      if (found || engine == "auto") continue;
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
      std::string note = "option 'engines' asks for '";
      note += engine + "' of " + family + "; no node of this model has it, but: " + names;
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

// What the option 'exclude' names and the main graph does not have: likely a slip of the pen.
std::vector<std::string> unknown_excluded(const Options& options, const Model& model) {
  std::set<std::string> operations, indices;
  for (const ModelNode& node : model.nodes) {
    operations.insert(node.op);
    indices.insert(std::to_string(node.index));
  }
  std::string known;
  for (const std::string& name : operations) known += (known.empty() ? "" : ", ") + name;
  std::vector<std::string> notes;
  for (const std::string& item : options.exclude) {
    if (operations.count(item) != 0 || indices.count(item) != 0) continue;
    notes.push_back("option 'exclude' names '" + item +
                    "'; the model has no such node, but nodes 0 to " +
                    std::to_string(model.nodes.size() - 1) + ", of " + known);
  }
  return notes;
}

// Prepare is called for each subgraph. The model's own graph is the first; the others are bodies of
// loops and branches, or further signatures.
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

Report make_report(const State& state, const Model& model, TfLiteContext& context,
                   const std::vector<std::unique_ptr<Partition>>& partitions) {
  Report report;
  report.device = state.device().name;
  report.platform = state.device().platform;
  report.precision = passes::name_of(state.options.precision);
  std::set<int> tensors;
  for (const ModelNode& node : model.nodes) {
    NodeReport entry;
    entry.index = node.index;
    entry.op = node.op;
    entry.claimed = node.claimed;
    entry.reason =
        node.folded_at_load ? "computes a constant: runs once, at load time" : "runs on the device";
    if (!node.claimed) entry.refusal = node.refusal;
    const auto read = [&](const std::vector<int>& ids, std::vector<std::vector<int>>& shapes,
                          std::vector<int>& present) {
      for (const int id : ids) {
        if (id < 0) continue;
        shapes.push_back(tfl::TensorView(&context.tensors[id], id).dims());
        present.push_back(id);
        tensors.insert(id);
      }
    };
    read(node.inputs, entry.inputs, entry.input_ids);
    read(node.outputs, entry.outputs, entry.output_ids);
    report.nodes.push_back(std::move(entry));
  }
  for (const int id : tensors) {
    const TfLiteTensor& tensor = context.tensors[id];
    report.tensors.push_back({id, tensor.name != nullptr ? tensor.name : "",
                              tfl::type_name(tensor.type), static_cast<std::int64_t>(tensor.bytes),
                              tensor.allocation_type == kTfLiteMmapRo});
  }
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    for (const int index : partitions[p]->nodes()) {
      for (NodeReport& node : report.nodes) {
        if (node.index == index) node.partition = static_cast<int>(p);
      }
    }
  }
  report.partitions.resize(partitions.size());
  report.notes = unknown_engines(state.options, partitions);
  for (std::string& note : unknown_excluded(state.options, model))
    report.notes.push_back(std::move(note));
  return report;
}

TfLiteStatus prepare_callback(TfLiteContext* context, TfLiteDelegate* tflite) {
  return guarded(
      kTfLiteError,
      [&](const char* what) { context->ReportError(context, "clgpu_delegate: %s", what); },
      [&] {
        Delegate::of(tflite).prepare(*context);
        return kTfLiteOk;
      });
}

}  // namespace

Delegate::Delegate(const std::map<std::string, std::string>& options)
    : state_(std::make_shared<State>(parse_options(options))) {
  tflite_.data_ = this;
  tflite_.Prepare = prepare_callback;
  // Shapes are inferred by us, in the kernel's prepare; so the CPU kernels of claimed nodes need
  // not be able to prepare them.
  tflite_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  enlist();
}

Delegate::Delegate(Problem problem) : problem_(std::move(problem.sentence)) {
  tflite_.data_ = this;
  tflite_.Prepare = prepare_callback;
  enlist();
}

void Delegate::prepare(TfLiteContext& context) {
  cl::refuse_forked_child();
  std::shared_ptr<State> state;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = true;
    state = state_;
  }
  if (!problem_.empty()) throw Error(problem_);
  if (state == nullptr)
    throw Error("the delegate has been deleted; keep it alive as long as its interpreter");
  state->fail(std::nullopt);
  recording_failure(*state, [&] { prepare(context, state); });
}

void Delegate::prepare(TfLiteContext& context, const std::shared_ptr<State>& state) {
  Model model(context, state->options);
  find_outputs(context, model);
  const auto session = std::make_shared<Session>();
  session->pool = state->pool();
  begin_placement(context, *state, *session, model, is_main_graph(context));
  std::vector<std::unique_ptr<Partition>> partitions;
  do {
    model.settle_constants();
  } while (!try_build(context, state, session, model, partitions));
  if (is_main_graph(context)) {
    Report report = make_report(*state, model, context, partitions);
    end_placement(*session, report);
    session->report = state->set_report(std::move(report));
    for (const auto& partition : partitions) partition->publish();
  }
  const std::vector<int> claimed = model.claimed();
  if (claimed.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_[&context] = std::move(partitions);
  }
  const TfLiteStatus status = context.ReplaceNodeSubsetsWithDelegateKernels(
      &context, kernel_registration(), IntArray(claimed).get(), &tflite_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.erase(&context);
  }
  if (status != kTfLiteOk)
    throw Error("the runtime refuses to replace nodes by the delegate's kernels");
}

std::unique_ptr<Partition> Delegate::take(TfLiteContext& context, const TfLiteIntArray& nodes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto pending = pending_.find(&context);
  if (pending == pending_.end()) return nullptr;
  for (std::unique_ptr<Partition>& partition : pending->second) {
    if (partition != nullptr && std::equal(partition->nodes().begin(), partition->nodes().end(),
                                           nodes.data, nodes.data + nodes.size))
      return std::move(partition);
  }
  return nullptr;
}

}  // namespace clgpu::delegate
