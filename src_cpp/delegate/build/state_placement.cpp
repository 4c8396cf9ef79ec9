// What partitions are expected to cost.
#include "delegate/build/state.hpp"

namespace clgpu::delegate {

plan::Cost State::expected(const ir::Graph& graph, std::int64_t budget, int cpu_nodes,
                           int threads) {
  const plan::Fitted fitted = plan::fit(graph, device(), plan_options(budget), broken());
  return plan::cost_of(plan::load_of(fitted.graph, fitted.plan, device(), cpu_nodes),
                       device_rates(*context, device(), *store), cpu_rates(*store, threads));
}

std::vector<std::pair<plan::Load, plan::Cost>> State::estimates(int threads) const {
  std::vector<Live> live;
  std::vector<int> nodes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    live = live_;
    for (const PartitionReport& partition : report_.partitions)
      nodes.push_back(static_cast<int>(partition.nodes.size()));
  }
  std::vector<std::pair<plan::Load, plan::Cost>> estimates;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const auto executor = live[i].executor.lock();
    const auto graph = live[i].graph.lock();
    if (executor == nullptr || graph == nullptr) continue;
    const plan::Load load = plan::load_of(*graph, executor->plan(), device(), nodes.at(i));
    estimates.emplace_back(load, plan::cost_of(load, device_rates(*context, device(), *store),
                                               cpu_rates(*store, threads)));
  }
  return estimates;
}

}  // namespace clgpu::delegate
