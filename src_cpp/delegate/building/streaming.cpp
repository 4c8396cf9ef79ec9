#include "delegate/building/streaming.hpp"

#include <algorithm>

#include "base/byte_size.hpp"
#include "runtime/run/stream.hpp"

namespace clgpu::delegate {
namespace {

// The only partition of the report. Throws Error if no partition can be streamed.
Live::Held streamable(const Ledger& ledger, std::optional<std::uint64_t> number) {
  const Ledger::Shown shown = ledger.shown();
  if (number && *number != shown.number)
    throw Error("the delegate has been given to another interpreter in the meantime");
  const std::vector<PartitionReport>& reports = shown.report.partitions;
  const auto count = std::count_if(reports.begin(), reports.end(),
                                   [](const auto& partition) { return partition.stage_of < 0; });
  if (count != 1) {
    throw Error(count == 0
                    ? "no node of the model is on the device"
                    : "the model has " + std::to_string(count) + " partitions on the device");
  }
  if (reports.size() > 1) throw Error("the model's partition runs in stages");
  if (const std::string& why = shown.report.partitions.front().on_cpu; !why.empty())
    throw Error("the CPU's kernels compute the model for now: " + why);
  if (shown.report.partitions.front().awaits)
    throw Error("values of inputs decide on the plan of an inference");
  std::optional<Live::Held> held = shown.partitions.front().hold();
  if (!held) throw Error("the runtime has taken back the nodes that the delegate had claimed");
  return *std::move(held);
}

// How many of the wanted inferences fit the memory budget. Throws Error if none fits.
int affordable_lanes(const plan::Plan& plan, std::int64_t budget, int wanted) {
  if (budget <= 0 || runtime::Stream::is_direct(plan)) return wanted;
  const std::int64_t held = plan.arena_bytes + plan.weights_bytes + plan.kept_bytes;
  const std::int64_t each = runtime::Stream::lane_bytes(plan);
  int lanes = wanted;
  while (lanes > 0 && held + lanes * each > budget) --lanes;
  if (lanes == 0) {
    throw Error("the memory budget of " + byte_size(budget) + " does not suffice for another " +
                byte_size(each) + " in addition to the model's " + byte_size(held));
  }
  return lanes;
}

}  // namespace

Streamed stream(const Target& target, const Ledger& ledger, int lanes, bool verified,
                std::optional<std::uint64_t> number) {
  const Options& options = target.options;
  const Live::Held partition = streamable(ledger, number);
  const plan::Plan& plan = partition.executor->plan();
  // What the interpreter does in an inference besides computing.
  if (options.verify != kVerifyOff && !(options.verify == kVerifyFirst && verified))
    throw Error("the option 'verify' compares single inferences");
  for (const auto* transfers : {&plan.uploads, &plan.downloads}) {
    for (const plan::Transfer& t : *transfers) {
      if (partition.graph->tensor(t.tensor).state >= 0)
        throw Error("each inference needs the states that the one before it leaves");
    }
  }
  if (!plan.carries.empty())
    throw Error("each inference needs the tensors that the one before it leaves on the device");
  for (const plan::Step& step : plan.run) {
    if (step.launch.runs_graphs)
      throw Error("the host decides in each inference what node " + std::to_string(step.node) +
                  " (" + step.op + ") runs");
  }
  if (plan.uploads.empty()) throw Error("the model has no inputs on the device");
  if (options.profile) throw Error("the option 'profile' records single inferences");
  lanes = affordable_lanes(plan, options.plan.memory_budget, lanes);
  Streamed streamed{runtime::Stream::make(target.context, partition.executor, lanes), {}, {}};
  for (const plan::Transfer& t : plan.uploads)
    streamed.inputs.push_back(partition.graph->tensor(t.tensor).tflite_id);
  for (const plan::Transfer& t : plan.downloads)
    streamed.outputs.push_back(partition.graph->tensor(t.tensor).tflite_id);
  return streamed;
}

}  // namespace clgpu::delegate
