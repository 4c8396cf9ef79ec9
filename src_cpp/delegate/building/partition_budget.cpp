// A memory budget is that of all graphs of an interpreter: what they hold together stays within it.
#include <algorithm>
#include <memory>

#include "base/byte_size.hpp"
#include "delegate/building/partition.hpp"
#include "runtime/run/weights.hpp"

namespace clgpu::delegate {
namespace {

constexpr int kHalvings = 6;  // of the range in which the graphs' part of a budget is searched

}  // namespace

void Partition::add_to(HeldBytes& held) const {
  if (executor_ == nullptr) return;
  add_to(held, executor_->plan(), executor_->shared_keys());
}

void Partition::add_to(HeldBytes& held, const plan::Plan& plan,
                       const std::vector<std::string>& keys) const {
  const void* const own = &plan;  // of no other
  const void* const weights = carriers_ == nullptr ? own : carriers_->weights().get();
  held.add(plan, keys, weights, plan.poison ? own : session_->pool.get());
}

void Partition::add_planned_to(HeldBytes& held, const plan::Plan& plan) const {
  add_to(held, plan,
         carriers_ == nullptr ? std::vector<std::string>() : runtime::weight_keys(plan));
}

std::int64_t Partition::excess(const plan::Plan& plan) const {
  HeldBytes held;
  for (const Holder* other : session_->holdings->without(*this)) other->add_to(held);
  held.forget_peak();
  add_planned_to(held, plan);
  return held.totals().peak_bytes - state_->target.options.plan.memory_budget;
}

Built Partition::build_within(std::int64_t budget, Level level, bool lasts) {
  const bool shares = budget > 0 && session_->holdings->has_other_graphs(*this);
  const auto build = [&](std::int64_t bytes) {
    return state_->build(
        graph_, bytes, session_->pool, level, lasts, carriers_.get(),
        [this] { return drop_aside(); },
        shares ? Excess([this](const plan::Plan& plan) { return excess(plan); }) : Excess());
  };
  if (!shares) return build(budget);
  try {
    return build(budget);
  } catch (const plan::BudgetError&) {
    return build(share_with_graphs());
  }
}

// All graphs get the same number of bytes, or the least that they need, so that none of them is
// slow because it was planned last.
std::int64_t Partition::share_with_graphs() {
  const std::int64_t budget = state_->target.options.plan.memory_budget;
  const std::vector<Holder*> others = session_->holdings->without(*this);
  std::vector<Holder*> all = others;
  all.push_back(this);
  std::vector<std::int64_t> least;
  for (const Holder* holder : all) least.push_back(holder->least_bytes());
  const auto peak = [&](std::int64_t each) {
    HeldBytes held;
    // Until the end, as it tells plans apart by their addresses.
    std::vector<std::unique_ptr<const plan::Plan>> plans;
    for (std::size_t i = 0; i < all.size(); ++i) {
      plans.push_back(
          std::make_unique<const plan::Plan>(all[i]->plan_within(std::max(each, least[i]))));
      all[i]->add_planned_to(held, *plans.back());
    }
    return held.totals().peak_bytes;
  };
  std::int64_t each = 1;
  if (const std::int64_t smallest = peak(each); smallest > budget) {
    throw plan::BudgetError(
        smallest,
        "no plans of the model's graphs, such as its signatures, fit together into the "
        "memory budget of " +
            byte_size(budget) + "; the smallest feasible budget is " + byte_size(smallest));
  }
  std::int64_t too_many = budget;
  for (int i = 0; i < kHalvings && too_many - each > 1; ++i) {
    const std::int64_t middle = each + (too_many - each) / 2;
    (peak(middle) <= budget ? each : too_many) = middle;
  }
  session_->holdings->remember_peak();
  for (Holder* other : others) other->release();
  for (std::size_t i = 0; i < others.size(); ++i)
    others[i]->build_again_within(std::max(each, least[i]));
  return std::max(each, least.back());
}

std::int64_t Partition::least_bytes() const { return state_->builder.smallest_budget(graph_); }

plan::Plan Partition::plan_within(std::int64_t bytes) const {
  return state_->builder.plan(graph_, bytes).plan;
}

void Partition::build_again_within(std::int64_t bytes) {
  rebuild(bytes);
  publish();
}

void Partition::release() {
  executor_.reset();
  session_->held.erase(index_);
  session_->holdings->leave(*this);
}

}  // namespace clgpu::delegate
