// Inferences in flight, past the runtime: what may be streamed, and how many at a time.
#include "runtime/run/stream.hpp"

#include "base/byte_size.hpp"
#include "delegate/build/state.hpp"

namespace clgpu::delegate {

Streamed State::stream(int lanes, bool verified, std::optional<std::uint64_t> number) const {
  std::shared_ptr<runtime::Executor> executor;
  std::shared_ptr<const ir::Graph> graph;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number && *number != report_number_)
      throw Error("the delegate has been given to another interpreter since");
    if (live_.size() != 1) {
      throw Error(live_.empty() ? "nothing of the model is on the device"
                                : "the model has " + std::to_string(live_.size()) +
                                      " partitions on the device");
    }
    if (const std::string& why = report_.partitions.front().on_cpu; !why.empty())
      throw Error("the CPU's kernels compute the model for now: " + why);
    executor = live_.front().executor.lock();
    graph = live_.front().graph.lock();
  }
  if (executor == nullptr || graph == nullptr)
    throw Error("the runtime has taken back what the delegate had claimed");
  // What the interpreter's own inferences do beside computing.
  if (options.verify != kVerifyOff && !(options.verify == kVerifyFirst && verified))
    throw Error("the option 'verify' looks at single inferences");
  if (executor->plan().uploads.empty()) throw Error("the model takes nothing to the device");
  if (options.profile) throw Error("the option 'profile' records single inferences");
  const plan::Plan& plan = executor->plan();
  if (const std::int64_t budget = options.plan.memory_budget;
      budget > 0 && !runtime::Stream::is_direct(plan)) {
    const std::int64_t held = plan.arena_bytes + plan.weights_bytes;
    const std::int64_t each = runtime::Stream::lane_bytes(plan);
    while (lanes > 0 && held + lanes * each > budget) --lanes;
    if (lanes == 0) {
      throw Error("the memory budget of " + byte_size(budget) + " has no room for another " +
                  byte_size(each) + " beside the model's " + byte_size(held));
    }
  }
  Streamed streamed{runtime::Stream::make(context, executor, lanes), {}, {}};
  for (const plan::Transfer& t : plan.uploads)
    streamed.inputs.push_back(graph->tensor(t.tensor).tflite_id);
  for (const plan::Transfer& t : plan.downloads)
    streamed.outputs.push_back(graph->tensor(t.tensor).tflite_id);
  return streamed;
}

}  // namespace clgpu::delegate
