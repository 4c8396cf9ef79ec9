// What verification needs of a state: engines left out, nodes alone, verdicts in the store.
#include "delegate/state.hpp"

namespace clgpu::delegate {

void State::distrust(Level level, const std::string& family, const std::string& candidate,
                     const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wrong_[level].emplace(std::pair(family, candidate), why);
}

std::vector<runtime::AloneResult> State::run_alone(
    const ir::Graph& graph, std::size_t position, const std::string& candidate, Level level,
    const std::function<const void*(const ir::Tensor&, std::int64_t bytes)>& input) const {
  return runtime::run_alone(context, store, device(), graph, position, candidate,
                            plan_options(0, level), broken(level), input);
}

std::optional<std::string> State::kept_verdict(const std::string& signature) const {
  return store->get(store::kVerification, key(signature));
}

void State::keep_verdict(const std::string& signature, const std::string& verdict,
                         const std::string& label) const {
  store->put(store::kVerification, key(signature), verdict, label);
}

}  // namespace clgpu::delegate
