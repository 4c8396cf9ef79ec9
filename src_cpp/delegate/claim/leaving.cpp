#include "delegate/claim/leaving.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace clgpu::delegate {
namespace {

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::kAuto:
      return "auto";
    case Placement::kMeasured:
      return "measured";
    default:
      return "all";
  }
}

// A pointer may be passed to another interpreter than the one that asked for it.
bool fits(const Verdict& verdict, const Model& model) {
  if (verdict.ops.size() != model.nodes.size()) return false;
  for (std::size_t i = 0; i < verdict.ops.size(); ++i) {
    if (verdict.ops[i] != model.nodes[i].op) return false;
  }
  return std::all_of(verdict.left.begin(), verdict.left.end(), [&](int index) {
    return std::any_of(model.nodes.begin(), model.nodes.end(),
                       [&](const ModelNode& node) { return node.index == index; });
  });
}

void follow(const Verdict& verdict, Session& session, Model& model, bool is_main) {
  std::vector<int> left;
  if (verdict.cpu) {
    for (const ModelNode& node : model.nodes) left.push_back(node.index);
  } else if (is_main) {
    for (const int index : verdict.left) {
      if (!model.computes_constant(model.node(index))) left.push_back(index);
    }
  }
  for (const int index : left) {
    if (model.node(index).claimed) model.refuse(index, {Why::kMeasured, "", verdict.reason});
  }
  PlacementReport& report = session.placement;
  report.choice = verdict.choice;
  report.source = verdict.source;
  report.runtime = verdict.runtime;
  report.threads = verdict.threads;
  report.candidates = verdict.candidates;
}

// Gives the reason "the CPU is expected to take 0.04 ms, the device 0.21 ms".
Refusal refusal_of(const plan::Cost& cost) {
  const auto milliseconds = [](double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
    return std::string(text);
  };
  const std::string cpu = milliseconds(cost.cpu_seconds),
                    device = milliseconds(cost.device_seconds);
  return {Why::kCost,
          "",
          "the CPU is expected to take " + cpu + ", the device " + device,
          device,
          {"less than " + cpu}};
}

// The runtime's number of threads, limited to what the machine can run.
int usable_threads(int recommended) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(recommended, 1, cores);
}

}  // namespace

void leave(Model& model, const std::vector<int>& nodes, const Refusal& refusal) {
  std::vector<int> working;
  for (const int index : nodes) {
    if (!model.computes_constant(model.node(index))) working.push_back(index);
  }
  for (const int index : working.empty() ? nodes : working) model.refuse(index, refusal);
}

void begin_placement(TfLiteContext& context, State& state, Session& session, Model& model,
                     bool is_main) {
  PlacementReport& report = session.placement;
  const Placement placement = state.target.options.placement;
  report.mode = name_of(placement);
  report.threads = usable_threads(context.recommended_num_threads);
  if (placement == Placement::kAll) return;
  if (placement == Placement::kMeasured) {
    const auto [verdict, note] = state.verdicts.get();
    // Bodies of loops and branches are other graphs of the same model, so the verdict holds for
    // them too.
    if (verdict && (!is_main || fits(*verdict, model))) {
      follow(*verdict, session, model, is_main);
      return;
    }
    session.placement_note =
        "placement: " + (note.empty() ? "this model was not measured here" : note) +
        "; the cost model decides. clgpu_delegate.measure_placement(model) "
        "measures it and keeps the verdict";
  }
  report.source = kCostModel;
}

bool leave_losers(Session& session, Model& model,
                  const std::vector<std::unique_ptr<Partition>>& partitions) {
  bool any = false;
  PlacementReport& report = session.placement;
  report.judged.erase(std::remove_if(report.judged.begin(), report.judged.end(),
                                     [](const auto& judged) { return judged.claimed; }),
                      report.judged.end());
  for (const auto& partition : partitions) {
    const std::vector<int>& nodes = partition->nodes();
    const bool computes = std::any_of(nodes.begin(), nodes.end(), [&](int index) {
      return !model.node(index).evaluated && !model.computes_constant(model.node(index));
    });
    if (!computes) continue;  // other partitions need its values
    plan::Cost cost;
    try {
      cost = partition->expected(report.threads);
    } catch (const Error&) {
      continue;  // building it reports the error, or its shapes come later
    }
    const bool loses = cost.device_seconds >= cost.cpu_seconds;
    report.judged.push_back({partition->nodes(), cost.device_seconds, cost.cpu_seconds, !loses});
    if (loses) leave(model, partition->nodes(), refusal_of(cost));
    any = any || loses;
  }
  return any;
}

void end_placement(Session& session, Report& report) {
  PlacementReport& placement = session.placement;
  if (placement.choice.empty()) {
    const bool any = !report.partitions.empty();
    const bool lost = std::any_of(placement.judged.begin(), placement.judged.end(),
                                  [](const auto& judged) { return !judged.claimed; });
    placement.choice = !any ? "cpu" : lost ? "some" : "all";
  }
  report.placement = placement;
  if (!session.placement_note.empty()) report.notes.push_back(session.placement_note);
}

}  // namespace clgpu::delegate
