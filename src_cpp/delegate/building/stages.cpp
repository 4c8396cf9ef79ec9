#include "delegate/building/stages.hpp"

#include <algorithm>
#include <utility>

namespace clgpu::delegate {

Stages::Stages(std::vector<std::unique_ptr<Partition>> stages, std::vector<int> nodes)
    : stages_(std::move(stages)), nodes_(std::move(nodes)) {
  for (const auto& stage : stages_)
    contents_ += (contents_.empty() ? "" : "; then ") + stage->contents();
}

bool Stages::awaits() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const auto& stage) { return stage->awaits(); });
}

// Stages lend buffers to each other, and only these.
void Stages::lend_all_but(const std::set<int>& others, const std::shared_ptr<void>& entry) {
  if (stages_.size() == 1) stages_.front()->lend_all_but(others, entry);
}

void Stages::announce(TfLiteContext& context) {
  if (stages_.size() == 1) stages_.front()->announce(context);
}

void Stages::prepare(TfLiteContext& context) {
  for (const auto& stage : stages_) stage->prepare(context);
}

void Stages::invoke(TfLiteContext& context) {
  for (const auto& stage : stages_) stage->invoke(context);
}

}  // namespace clgpu::delegate
