// How a state measures layers and keeps the winners.
#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/sha256.hpp"
#include "delegate/build/state.hpp"

namespace clgpu::delegate {
namespace {

// Relative L2 norm by which the results of two candidates may differ. Sums of many terms in another
// order differ by some 1e-5 in float; half storage and TF32 products by some 1e-3.
double tolerance_of(passes::Precision precision) {
  return precision == passes::Precision::kFp32 ? 1e-4 : 1e-2;
}

std::string label_of(const TunedLayer& layer) {
  std::string label = layer.op;
  for (const std::vector<int>& shape : layer.outputs) {
    label += " [";
    for (std::size_t i = 0; i < shape.size(); ++i)
      label += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    label += "]";
  }
  return label + ": " + layer.winner;
}

}  // namespace

std::string State::key(const std::string& signature) const {
  const DeviceInfo& info = device();
  Sha256 hash;
  for (const std::string* field : {&info.name, &info.vendor, &info.driver_version,
                                   &info.opencl_version, &info.platform, &info.platform_version})
    hash.update(*field).update({"\0", 1});
  return hex(hash.update(signature).digest());
}

runtime::Contest State::record(const std::string& signature) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = records_.find(signature); found != records_.end())
      return from_record(found->second);
  }
  return from_record(store->get(store::kTuning, key(signature)).value_or(""));
}

void State::drop_records(const plan::Plan& plan) {
  for (const plan::Choice& choice : plan.choices) {
    if (choice.dropped.empty()) continue;
    store->erase(store::kTuning, key(choice.signature));
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.erase(choice.signature);
    notes_.insert("the kernel " + choice.family + "/" + choice.dropped + ", tuned for node " +
                  std::to_string(choice.node) + ", does not work any more: it is forgotten");
  }
}

void State::collect(const std::shared_ptr<const ir::Graph>& graph, runtime::Executor& executor,
                    bool again, std::vector<Tunable>& tunables) const {
  const plan::Plan& plan = executor.plan();
  std::map<int, double> cost;  // of the nodes that compute anything in an inference
  for (const plan::Step& step : plan.run) cost[step.node] = 0;
  bool any_pending = false;
  for (const plan::Choice& choice : plan.choices) {
    if (choice.signature.empty() || choice.candidates.size() < 2 || cost.count(choice.node) == 0)
      continue;
    const ir::Node& node = graph->nodes.at(uz(choice.position));
    auto tunable = std::find_if(tunables.begin(), tunables.end(), [&](const Tunable& t) {
      return t.layer.signature == choice.signature;
    });
    if (tunable == tunables.end()) {
      Tunable fresh{{}, graph, static_cast<std::size_t>(choice.position), choice};
      TunedLayer& layer = fresh.layer;
      layer.op = node.op;
      layer.family = choice.family;
      layer.signature = choice.signature;
      layer.standard = choice.candidates.front();
      layer.winner = choice.candidate;
      for (const int id : node.outputs) layer.outputs.push_back(graph->tensor(id).shape.dims());
      runtime::Contest known = record(choice.signature);
      fresh.pending = again || known.winner.empty();
      if (!known.winner.empty()) layer.outcome = TunedLayer::Outcome::kKept;
      layer.trials = std::move(known.trials);
      tunables.push_back(std::move(fresh));
      tunable = tunables.end() - 1;
    }
    std::vector<int>& nodes = tunable->layer.nodes;  // bands of one node are alike
    if (std::count(nodes.begin(), nodes.end(), choice.node) == 0) nodes.push_back(choice.node);
    any_pending = any_pending || tunable->pending;
  }
  if (!any_pending) return;
  try {
    const std::vector<double> seconds = executor.launch_times(1).launches;
    for (std::size_t i = 0; i < seconds.size(); ++i) cost[plan.run[i].node] += seconds[i];
  } catch (const cl::OpenCLError&) {
    // No queue with profiling: the layers are measured in the order of the model.
  }
  for (Tunable& tunable : tunables) {
    if (tunable.graph != graph) continue;
    for (const int node : tunable.layer.nodes) tunable.cost += cost[node];
  }
}

void State::measure(std::vector<Tunable>& tunables, double budget, const OnProgress& progress) {
  using Clock = runtime::Tuner::Clock;
  // A century is as good as no limit, and a sum that does not overflow.
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(budget, 3e9)));
  std::vector<Tunable*> pending;
  for (Tunable& tunable : tunables) {
    if (tunable.pending) pending.push_back(&tunable);
  }
  std::stable_sort(pending.begin(), pending.end(),
                   [](const Tunable* a, const Tunable* b) { return a->cost > b->cost; });
  int index = 0;
  for (Tunable* tunable : pending) {
    TunedLayer& layer = tunable->layer;
    const auto report = [&](const std::string& candidate) {
      if (progress) progress({index, static_cast<int>(pending.size()), layer, candidate});
    };
    const runtime::Tuner tuner(context, store, device(), tolerance_of(options.precision), deadline,
                               report);
    runtime::Contest contest =
        tuner.measure(*tunable->graph, tunable->position, tunable->choice, broken());
    ++index;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const runtime::Trial& trial : contest.trials) {
        if (trial.broken) plan::learn(broken_, layer.family, trial.candidate, {trial.problem});
      }
      if (contest.winner.empty()) continue;  // out of time, or nothing works
      records_[layer.signature] = to_record(contest);
    }
    layer.winner = contest.winner;
    layer.outcome = TunedLayer::Outcome::kMeasured;
    store->put(store::kTuning, key(layer.signature), to_record(contest), label_of(layer));
    layer.trials = std::move(contest.trials);
  }
}

std::vector<TunedLayer> State::tune(double budget, bool again, const OnProgress& progress) {
  if (options.tuning == Tuning::kOff)
    throw OptionError("option 'tuning' is 'off'; to tune, allowed: auto, exhaustive");
  std::vector<Live> partitions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    partitions = live_;
  }
  std::vector<Tunable> tunables;
  bool any = false;
  for (const Live& partition : partitions) {
    const auto executor = partition.executor.lock();
    const auto graph = partition.graph.lock();
    if (executor == nullptr || graph == nullptr) continue;
    any = true;
    collect(graph, *executor, again, tunables);
  }
  if (!any && !partitions.empty())
    throw Error(
        "nothing is on the device: tuning needs an interpreter whose tensors are allocated");
  measure(tunables, budget, progress);
  std::vector<TunedLayer> layers;
  for (Tunable& tunable : tunables) layers.push_back(std::move(tunable.layer));
  return layers;
}

}  // namespace clgpu::delegate
