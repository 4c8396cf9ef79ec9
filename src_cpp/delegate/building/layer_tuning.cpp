#include "delegate/building/layer_tuning.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/index.hpp"
#include "base/join.hpp"

namespace clgpu::delegate {
namespace {

// Relative L2 norm by which the results of two candidates may differ. Sums of many terms in another
// order differ by about 1e-5 in float; half storage and TF32 products by about 1e-3.
double tolerance_of(passes::Precision precision) {
  return precision == passes::Precision::kFp32 ? 1e-4 : 1e-2;
}

std::string label_of(const TunedLayer& layer) {
  std::string label = layer.op;
  for (const std::vector<int>& shape : layer.outputs) {
    label += " [";
    label += join(shape, ", ", [](int size) { return std::to_string(size); });
    label += "]";
  }
  return label + ": " + layer.winner;
}

}  // namespace

bool LayerTuning::measure_new(Built& built) const {
  std::vector<Tunable> tunables;
  collect({built.executor, built.graph, nullptr}, false, tunables);
  if (std::none_of(tunables.begin(), tunables.end(), [](const Tunable& t) { return t.pending; }))
    return false;
  built.executor.reset();  // frees memory for the new one
  measure(tunables, INFINITY, nullptr);
  return true;
}

LayerTuning::Tunable LayerTuning::tunable_of(const std::shared_ptr<const ir::Graph>& graph,
                                             const plan::Choice& choice, bool again) const {
  const ir::Node& node = graph->nodes.at(uz(choice.position));
  Tunable fresh{{}, graph, static_cast<std::size_t>(choice.position), choice};
  TunedLayer& layer = fresh.layer;
  layer.op = node.op;
  layer.family = choice.family;
  layer.signature = choice.signature;
  layer.standard = choice.candidates.front();
  layer.winner = choice.candidate;
  for (const int id : node.outputs) layer.outputs.push_back(graph->tensor(id).shape.dims());
  runtime::Contest known = engines_.contest(choice.signature);
  fresh.pending = again || known.winner.empty();
  if (!known.winner.empty()) layer.outcome = TunedLayer::Outcome::kKept;
  layer.trials = std::move(known.trials);
  return fresh;
}

void LayerTuning::collect(const Live::Held& partition, bool again,
                          std::vector<Tunable>& tunables) const {
  const plan::Plan& plan = partition.executor->plan();
  std::map<int, double> cost;  // of the nodes that compute something in each inference
  for (const plan::Step& step : plan.run) cost[step.node] = 0;
  bool any_pending = false;
  for (const plan::Choice& choice : plan.choices) {
    if (choice.signature.empty() || choice.candidates.size() < 2 || cost.count(choice.node) == 0)
      continue;
    auto tunable = std::find_if(tunables.begin(), tunables.end(), [&](const Tunable& t) {
      return t.layer.signature == choice.signature;
    });
    if (tunable == tunables.end()) {
      tunables.push_back(tunable_of(partition.graph, choice, again));
      tunable = tunables.end() - 1;
    }
    std::vector<int>& nodes = tunable->layer.nodes;  // all bands of a node are alike
    if (std::count(nodes.begin(), nodes.end(), choice.node) == 0) nodes.push_back(choice.node);
    any_pending = any_pending || tunable->pending;
  }
  if (!any_pending) return;
  try {
    const std::vector<double> seconds = partition.executor->launch_times(1).launches;
    for (std::size_t i = 0; i < seconds.size(); ++i) cost[plan.run[i].node] += seconds[i];
  } catch (const cl::OpenCLError&) {
    // Without a queue with profiling, the layers are measured in the order of the model.
  }
  for (Tunable& tunable : tunables) {
    if (tunable.graph != partition.graph) continue;
    for (const int node : tunable.layer.nodes) tunable.cost += cost[node];
  }
}

void LayerTuning::measure(std::vector<Tunable>& tunables, double budget,
                          const OnProgress& progress) const {
  using Clock = runtime::Tuner::Clock;
  // A century is as good as no limit, and the sum cannot overflow.
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
    const runtime::Tuner tuner(target_.context, target_.store, target_.device(),
                               tolerance_of(target_.options.precision), deadline, report);
    runtime::Contest contest =
        tuner.measure(*tunable->graph, tunable->position, tunable->choice, engines_.broken());
    ++index;
    for (const runtime::Trial& trial : contest.trials) {
      if (trial.broken) engines_.learn(layer.family, trial.candidate, {trial.problem});
    }
    if (contest.winner.empty()) continue;  // out of time, or no candidate works
    layer.winner = contest.winner;
    layer.outcome = TunedLayer::Outcome::kMeasured;
    engines_.keep(layer.signature, contest, label_of(layer));
    layer.trials = std::move(contest.trials);
  }
}

std::vector<TunedLayer> LayerTuning::measure(const Ledger& ledger, double budget, bool again,
                                             const OnProgress& progress) const {
  if (target_.options.tuning == Tuning::kOff)
    throw OptionError("option 'tuning' is 'off'; to tune, allowed: auto, exhaustive");
  const std::vector<Live> partitions = ledger.partitions();
  std::vector<Tunable> tunables;
  bool any = false;
  for (const Live& partition : partitions) {
    const std::optional<Live::Held> held = partition.hold();
    if (!held) continue;
    any = true;
    collect(*held, again, tunables);
  }
  if (!any && !partitions.empty())
    throw Error(
        "no node is on the device: tuning needs an interpreter whose tensors are allocated");
  measure(tunables, budget, progress);
  std::vector<TunedLayer> layers;
  for (Tunable& tunable : tunables) layers.push_back(std::move(tunable.layer));
  return layers;
}

void LayerTuning::leave_winners(const Ledger& ledger) const {
  for (const Live& partition : ledger.partitions()) {
    if (const std::optional<Live::Held> held = partition.hold())
      engines_.keep_slower(held->executor->plan());
  }
}

}  // namespace clgpu::delegate
