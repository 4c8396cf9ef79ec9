#include "delegate/building/holdings.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/index.hpp"
#include "runtime/run/weights.hpp"

namespace clgpu::delegate {

void HeldBytes::add(const plan::Plan& plan, const std::vector<std::string>& keys,
                    const void* weights, const void* pool) {
  using Place = plan::Buffer::Place;
  const auto peak = [&](std::int64_t more) {
    totals_.peak_bytes = std::max(totals_.peak_bytes, now() + more);
  };
  totals_.weights_bytes += plan.inner_bytes;  // built before
  std::vector<bool> there(plan.buffers.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    there[i] = !keys[i].empty() && shared_.count({weights, keys[i]}) > 0;
  peak(runtime::bytes_while_loading(plan, there));
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers[i];
    const bool is_new = buffer.place == Place::kWeights && !there[i];
    if (is_new || buffer.place == Place::kKept) totals_.weights_bytes += buffer.bytes;
  }
  for (const std::string& key : keys) {
    if (!key.empty()) shared_.emplace(weights, key);
  }
  for (const plan::Carry& c : plan.carries) {
    const bool is_new = carried_.emplace(weights, plan.buffers[uz(c.buffer)].carried).second;
    if (is_new) totals_.carried_bytes += static_cast<std::int64_t>(c.form.bytes());
  }
  std::vector<std::int64_t> objects = plan.objects;
  std::sort(objects.begin(), objects.end(), std::greater<>());
  std::vector<std::int64_t>& slots = slots_[pool];
  slots.resize(std::max(slots.size(), objects.size()));
  for (std::size_t i = 0; i < objects.size(); ++i) slots[i] = std::max(slots[i], objects[i]);
  totals_.arena_bytes = 0;
  for (const auto& [owner, bytes] : slots_)
    totals_.arena_bytes = std::accumulate(bytes.begin(), bytes.end(), totals_.arena_bytes);
  peak(0);
}

void Holdings::enter(Holder& holder) {
  leave(holder);
  built_.push_back(&holder);
}

void Holdings::leave(const Holder& holder) {
  built_.erase(std::remove(built_.begin(), built_.end(), &holder), built_.end());
}

std::vector<Holder*> Holdings::without(const Holder& holder) const {
  std::vector<Holder*> others = built_;
  others.erase(std::remove(others.begin(), others.end(), &holder), others.end());
  return others;
}

bool Holdings::has_other_graphs(const Holder& holder) const {
  return std::any_of(built_.begin(), built_.end(),
                     [&](const Holder* other) { return other->graph() != holder.graph(); });
}

void Holdings::remember_peak() { earlier_peak_ = std::max(earlier_peak_, sum().peak_bytes); }

void Holdings::add_to(HeldBytes& held) const {
  for (const Holder* holder : built_) holder->add_to(held);
}

MemoryTotals Holdings::sum() const {
  HeldBytes held;
  add_to(held);
  return held.totals();
}

std::optional<MemoryTotals> Holdings::totals() const {
  MemoryTotals totals = sum();
  const bool is_one = std::all_of(built_.begin(), built_.end(), [&](const Holder* holder) {
    return holder->graph() == built_.front()->graph();
  });
  if (is_one && totals.carried_bytes == 0) return std::nullopt;
  totals.peak_bytes = std::max(totals.peak_bytes, earlier_peak_);
  return totals;
}

// An interpreter may have the address of one that is gone.
std::shared_ptr<Holdings> HoldingSets::of(const TfLiteContext* main) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = known_.begin(); entry != known_.end();)
    entry = entry->second.expired() ? known_.erase(entry) : std::next(entry);
  std::weak_ptr<Holdings>& known = known_[main];
  std::shared_ptr<Holdings> holdings = known.lock();
  if (holdings == nullptr) known = holdings = std::make_shared<Holdings>();
  return holdings;
}

}  // namespace clgpu::delegate
