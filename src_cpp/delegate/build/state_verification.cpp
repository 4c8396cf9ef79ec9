// What verification needs of a state: engines left out, nodes alone, verdicts in the store.
#include "delegate/build/state.hpp"
#include "plan/signature.hpp"

namespace clgpu::delegate {

void State::distrust(const std::string& engine, const std::string& name, const std::string& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Wrong& known = engines_[engine];
    if (!known.why.empty()) return;
    known = {name, why};
  }
  store->put(store::kVerification, key("engine " + engine), why, name);
}

std::string State::distrusted(const std::string& family, const kernel::Candidate& candidate) const {
  if (!candidate.refusal.empty()) return {};
  const std::string engine = plan::engine_signature(family, candidate);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto known = engines_.find(engine); known != engines_.end()) return known->second.why;
  }
  const auto kept = store->get(store::kVerification, key("engine " + engine));
  const std::lock_guard<std::mutex> lock(mutex_);
  return engines_.try_emplace(engine, Wrong{family + "/" + candidate.name, kept.value_or("")})
      .first->second.why;
}

runtime::Alone State::run_alone(
    const ir::Graph& graph, std::size_t position, const std::string& candidate, Level level,
    const std::function<const void*(const ir::Tensor&, std::int64_t bytes)>& input) const {
  plan::PlanOptions all = plan_options(0, level);
  all.distrusted = [](const std::string&, const kernel::Candidate&) { return std::string(); };
  return runtime::run_alone(context, store, device(), graph, position, candidate, all, broken(),
                            input);
}

std::optional<std::string> State::kept_verdict(const std::string& signature) const {
  return store->get(store::kVerification, key(signature));
}

void State::keep_verdict(const std::string& signature, const std::string& verdict,
                         const std::string& label) const {
  store->put(store::kVerification, key(signature), verdict, label);
}

}  // namespace clgpu::delegate
