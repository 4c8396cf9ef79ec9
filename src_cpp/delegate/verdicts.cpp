#include "delegate/verdicts.hpp"

namespace clgpu::delegate {

void Verdicts::set(std::optional<Verdict> verdict, std::string note) {
  const std::lock_guard<std::mutex> lock(mutex_);
  by_thread_[std::this_thread::get_id()] = {std::move(verdict), std::move(note)};
}

std::pair<std::optional<Verdict>, std::string> Verdicts::get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_thread_.find(std::this_thread::get_id());
  if (found == by_thread_.end()) return {std::nullopt, {}};
  return found->second;
}

}  // namespace clgpu::delegate
