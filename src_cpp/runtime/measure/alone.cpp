#include "runtime/measure/alone.hpp"

#include "plan/budget/planner.hpp"
#include "plan/isolate.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {

Alone run_alone(const std::shared_ptr<cl::Context>& context,
                const std::shared_ptr<store::Store>& store, const DeviceInfo& device,
                const ir::Graph& graph, std::size_t position, const std::string& candidate,
                plan::PlanOptions options, const plan::Broken& broken, const InputOf& input) {
  if (!graph.nodes[position].graphs.empty())
    throw Error(graph.nodes[position].op + " runs graphs, and is no launch");
  const ir::Graph part = plan::isolate(graph, position);
  const std::string family = part.nodes.back().kind->name;
  // The family may also compute constants of the node.
  options.engines[family] = candidate + "|auto";
  options.tuned = nullptr;
  options.zero_copy = false;
  plan::Plan plan = plan::make_plan(part, device, options, broken);
  if (plan.choices.empty() || plan.choices.back().candidate != candidate)
    throw Error(candidate + " cannot compute the node alone");
  Executor executor(context, store, std::move(plan), false);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Alone alone;
  alone.engine = executor.plan().choices.back().engine;
  for (const plan::Transfer& t : executor.plan().uploads)
    inputs.push_back(input(part.tensor(t.tensor), t.host_bytes));
  for (const plan::Transfer& t : executor.plan().downloads) {
    alone.results.push_back({part.tensor(t.tensor).tflite_id,
                             std::vector<std::uint8_t>(static_cast<std::size_t>(t.host_bytes))});
  }
  for (Alone::Result& result : alone.results) outputs.push_back(result.bytes.data());
  executor.run(inputs, outputs);
  return alone;
}

}  // namespace clgpu::runtime
