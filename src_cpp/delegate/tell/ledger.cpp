#include "delegate/tell/ledger.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"

namespace clgpu::delegate {
namespace {

thread_local std::uint64_t last_report_here = 0;

const char* name_of(plan::Choice::Origin origin) {
  switch (origin) {
    case plan::Choice::Origin::kForced:
      return "forced";
    case plan::Choice::Origin::kTuned:
      return "tuned";
    default:
      return "default";
  }
}

// Whether a node only makes floats of integers, or the reverse: passes put such nodes beside nodes
// of the model that compute with integers, with the same index.
bool converts(const ir::Graph& graph, const plan::Choice& choice) {
  const ir::Node& node = graph.nodes.at(uz(choice.position));
  return node.inputs.size() == 1 && node.inputs[0] >= 0 &&
         is_float(graph.tensor(node.inputs[0]).dtype) !=
             is_float(graph.tensor(node.outputs[0]).dtype);
}

// The outcome of each node of a graph in a plan, by its index in the model.
struct Outcome {
  Outcome(const ir::Graph& planned, const plan::Plan& plan) : graph(planned) {
    const auto is_found = [&](int id) { return graph.tensor(id).largest_of >= 0; };
    for (const plan::Choice& choice : plan.choices) {
      // No node of the model: it has the index of the one whose results it looks at.
      const std::vector<int>& outputs = graph.nodes.at(uz(choice.position)).outputs;
      if (std::any_of(outputs.begin(), outputs.end(), is_found)) continue;
      // Bands of a node are computed separately, and reported as one node.
      const plan::Choice*& most = choices[choice.node];
      const auto rank = [&](const plan::Choice& c) {
        return std::pair(!converts(graph, c), c.work.flops);
      };
      if (most == nullptr || rank(choice) >= rank(*most)) most = &choice;
      work[choice.node] += choice.work;
    }
    for (const ir::Node& node : graph.nodes) {
      if (node.kind->is_view) views.insert(node.tflite_index);
    }
  }

  const ir::Graph& graph;
  std::map<int, const plan::Choice*> choices;
  std::map<int, ops::Work> work;  // of all its bands
  std::set<int> views;
};

// A node without a kernel.
void clear(NodeReport& node) {
  node.family = node.candidate = node.chosen = node.precision = "";
  node.work = {};
  node.fused_into.reset();
  node.is_view = false;
}

void set_choice(NodeReport& node, const plan::Choice& choice) {
  node.family = choice.family;
  node.candidate = choice.candidate;
  node.adds_halves = choice.adds_halves;
  node.tensor_cores = choice.tensor_cores;
  node.chosen = name_of(choice.origin);
  node.candidates = choice.candidates;
  node.refused = choice.refused;
}

// Of the first input; of a node without inputs, of its output.
DType storage_of(const ir::Graph& graph, const plan::Choice& choice) {
  const ir::Node& node = graph.nodes.at(uz(choice.position));
  const auto& ids = node.inputs.empty() || node.inputs[0] < 0 ? node.outputs : node.inputs;
  return graph.tensor(ids.at(0)).storage;
}

const char* precision_of(const ir::Graph& graph, const plan::Choice& choice) {
  const ir::Node& node = graph.nodes.at(uz(choice.position));
  const DType type = storage_of(graph, choice);
  if (type == DType::kF16) return "fp16";
  if (type == DType::kBF16) return "bf16";
  if (type != DType::kF32) return name_of(type);
  if (!choice.tensor_cores) return "fp32";
  if (choice.makes_halves) return "fp16";
  return ir::allows_tf32(graph, node)         ? "tf32"
         : ir::allows_bf16_pairs(graph, node) ? "bf16_pairs"
                                              : "fp32";
}

// `reason`: the one known before anything was built.
void set_outcome(NodeReport& node, const std::string& reason, const Outcome& outcome) {
  // Other shapes or types may have had another outcome.
  clear(node);
  node.reason = reason;
  node.candidates.clear();
  node.refused.clear();
  node.adds_halves = node.tensor_cores = node.rounds_factors = false;
  if (const auto work = outcome.work.find(node.index); work != outcome.work.end())
    node.work = work->second;
  if (const auto choice = outcome.choices.find(node.index); choice != outcome.choices.end()) {
    set_choice(node, *choice->second);
    node.precision = precision_of(outcome.graph, *choice->second);
    const ir::Node& planned = outcome.graph.nodes.at(uz(choice->second->position));
    node.rounds_factors = choice->second->tensor_cores &&
                          storage_of(outcome.graph, *choice->second) == DType::kF32 &&
                          ir::allows_tf32(outcome.graph, planned);
  } else if (const int into = ir::merged_into(outcome.graph, node.index); into >= 0) {
    node.fused_into = into;
    node.reason = "fused into node " + std::to_string(into);
  } else if (outcome.views.count(node.index) != 0) {
    node.is_view = true;
    node.reason = "a view: shares the memory of its input";
  }
}

}  // namespace

std::optional<Live::Held> Live::hold() const {
  Held held{executor.lock(), graph.lock(), original.lock()};
  if (held.executor == nullptr || held.graph == nullptr) return std::nullopt;
  return held;
}

Ledger::Shown Ledger::shown() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {number_, report_, live_};
}

std::vector<Live> Ledger::partitions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return live_;
}

void Ledger::fail(std::optional<Failure> failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  report_.failure = std::move(failure);
}

std::uint64_t Ledger::set_report(Report report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(report.failure, report_.failure);
  report_ = std::move(report);
  reasons_.clear();
  for (const NodeReport& node : report_.nodes) reasons_.push_back(node.reason);
  live_.assign(report_.partitions.size(), {});
  return last_report_here = ++number_;
}

std::uint64_t Ledger::last_report() { return last_report_here; }

void Ledger::set_partition(std::uint64_t number, int partition, const PartitionReport& report,
                           const Live::Held& held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number == number_) set(partition, report, held);
}

void Ledger::set_totals(std::uint64_t number, const std::optional<MemoryTotals>& totals) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number == number_) report_.totals = totals;
}

void Ledger::unplan_after(std::uint64_t number, int partition, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number != number_) return;
  for (std::size_t i = uz(partition) + 1; i < report_.partitions.size(); ++i) {
    PartitionReport report;
    report.nodes = report_.partitions[i].nodes;
    report.unplanned = why;
    set(static_cast<int>(i), report, {});
  }
}

void Ledger::set(int partition, const PartitionReport& partition_report, const Live::Held& held) {
  PartitionReport& reported = report_.partitions.at(uz(partition));
  const std::map<int, const char*> before = std::move(reported.storages);
  reported = partition_report;
  for (TensorReport& tensor : report_.tensors) {
    if (before.count(tensor.id) == 0) continue;
    tensor.storage = "";
    for (const PartitionReport& other : report_.partitions) {
      const auto found = other.storages.find(tensor.id);
      if (found != other.storages.end()) tensor.storage = found->second;
    }
  }
  const std::shared_ptr<runtime::Executor>& executor = held.executor;
  live_.at(uz(partition)) = {executor, held.graph, held.original,
                             executor == nullptr ? nullptr : executor->recorder()};
  if (executor == nullptr) {
    for (NodeReport& node : report_.nodes) {
      if (node.partition != partition) continue;
      clear(node);
      node.reason = partition_report.unplanned.empty()
                        ? "computed by the CPU's kernels: " + partition_report.on_cpu
                        : reasons_.at(uz(&node - report_.nodes.data()));
    }
    return;
  }
  for (TensorReport& tensor : report_.tensors) {
    const auto found = partition_report.storages.find(tensor.id);
    if (found != partition_report.storages.end()) tensor.storage = found->second;
  }
  const Outcome outcome(*held.graph, executor->plan());
  for (std::size_t i = 0; i < report_.nodes.size(); ++i) {
    if (report_.nodes[i].partition == partition)
      set_outcome(report_.nodes[i], reasons_[i], outcome);
  }
}

std::vector<int> Ledger::tensors_of_cpu(std::uint64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<int> ids;
  for (const NodeReport& node : report_.nodes) {
    if (number != number_ || node.claimed) continue;
    ids.insert(node.input_ids.begin(), node.input_ids.end());
    ids.insert(node.output_ids.begin(), node.output_ids.end());
  }
  return {ids.begin(), ids.end()};
}

void Ledger::set_shapes(std::uint64_t number, const std::map<int, ShapeReport>& shapes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number != number_) return;
  const auto update = [&](const std::vector<int>& ids, std::vector<std::vector<int>>& known) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (const auto now = shapes.find(ids[i]); now != shapes.end()) known[i] = now->second.shape;
    }
  };
  for (NodeReport& node : report_.nodes) {
    update(node.input_ids, node.inputs);
    update(node.output_ids, node.outputs);
  }
  for (TensorReport& tensor : report_.tensors) {
    if (const auto now = shapes.find(tensor.id); now != shapes.end())
      tensor.bytes = now->second.bytes;
  }
}

Stats Ledger::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Ledger::count_invoke(cl::Counters& inference, bool first, const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first) {
    ++stats_.invokes;
    inference = {};
  }
  inference += cost;
  stats_.total += cost;
  stats_.last_invoke = inference;
}

void Ledger::count_after_invoke(const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.total += cost;
  stats_.last_invoke += cost;
}

void Ledger::count_load(const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.load += cost;
}

}  // namespace clgpu::delegate
