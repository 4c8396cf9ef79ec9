#include "plan/arena/swap.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "plan/arena/tenant.hpp"

namespace clgpu::plan {
namespace {

// A copy over the bus is hidden behind steps that read and write this many times its bytes: about
// the ratio between the bandwidths of a discrete device's memory and its bus. Arithmetic adds some
// reserve.
constexpr std::int64_t kHidden = 16;
constexpr int kLeads[] = {0, 1, 4, 16};         // maximum number of steps for a copy
constexpr std::int64_t kOverhead = 256 * 1024;  // bytes copied in the time of starting a move
constexpr std::size_t kMany = 2000;  // buffers; from here on layout is slow: fewer are tried
constexpr int kRounds = 12;  // lower goals to try, since a layout needs more than its worst step
// Lower goals help where few blocks do not fit; else all steps get them.
constexpr std::size_t kFew = 30;
constexpr std::int64_t kShare = 4;  // goals are lower by a block's bytes over this

class Swapper {
 public:
  Swapper(Plan& plan, std::vector<bool>& is_static, const PlanOptions& options,
          const PeakOf& peak_of)
      : plan_(plan),
        is_static_(is_static),
        budget_(options.memory_budget),
        peak_of_(peak_of),
        end_(static_cast<int>(plan.run.size())),
        tenants_(find_tenants(plan, is_static, options)) {
    for (const Step& step : plan.run) {
      std::int64_t& sum = traffic_.emplace_back(0);
      for (const int buffer : step.buffers) sum += plan.buffers[uz(buffer)].bytes;
    }
  }

  std::int64_t run() {
    const std::vector<Tenant> whole = tenants_;
    Solution best{tenants_, INT64_MAX, 0};
    std::int64_t most = INT64_MAX;  // maximum cost of a solution
    for (const int lead : kLeads) {
      most_lead_ = lead;
      Solution found = search(whole);
      if (found.peak > budget_ ? found.peak < best.peak : found.cost <= most) best = found;
      if (best.peak > budget_ || tenants_.size() > kMany) break;
      // Time to hide the copies is worth moving somewhat more.
      if (most == INT64_MAX) most = best.cost + best.cost / 4;
    }
    tenants_ = std::move(best.tenants);
    if (best.peak <= budget_) best.peak = improve(best.peak);
    cut_plan(plan_, is_static_, tenants_);
    return best.peak;
  }

 private:
  struct Solution {
    std::vector<Tenant> tenants;
    std::int64_t peak, cost;
  };

  // The first solution that fits, or the smallest, with most_lead_ steps for copies.
  Solution search(const std::vector<Tenant>& whole) {
    Solution best{whole, INT64_MAX, 0};
    find_least();
    const std::int64_t least = *std::max_element(least_.begin(), least_.end());
    auto goal = static_cast<double>(budget_);
    goals_.assign(uz(end_) + 2, budget_);
    int lowered = 0;
    for (int round = 0; round < kRounds && best.peak > budget_; ++round) {
      tenants_ = whole;
      const bool reached = cut();
      const Peak peak = measure();
      if (peak.bytes < best.peak) best = {tenants_, peak.bytes, 0};
      if (!reached) break;
      if (peak.over.size() <= kFew && lowered < kRounds / 2 && lower(peak.over)) {
        ++lowered;
        continue;
      }
      if (goal <= static_cast<double>(least)) break;
      goal = std::min(0.97 * goal, goal - static_cast<double>(peak.bytes - budget_) / 2);
      for (std::int64_t& bytes : goals_) bytes = std::min(bytes, static_cast<std::int64_t>(goal));
    }
    for (const Tenant& tenant : best.tenants) best.cost += tenant.cost(kOverhead);
    return best;
  }

  // Lowers the goals of the fullest steps of these blocks; false if they are as low as possible.
  bool lower(const std::vector<Block>& over) {
    bool changed = false;
    for (const Block& block : over) {
      std::int64_t fullest = 0;
      for (int step = block.first; step <= block.last; ++step)
        fullest = std::max(fullest, live(step));
      const std::int64_t goal = fullest - block.bytes / kShare;
      for (int step = block.first; step <= block.last; ++step) {
        std::int64_t& now = goals_[uz(step + 1)];
        const std::int64_t next = std::max(goal, least_[uz(step + 1)]);
        changed = changed || next < now;
        now = std::min(now, next);
      }
    }
    return changed;
  }

  std::int64_t& live(int step) { return live_[uz(step + 1)]; }

  void add_stays(const Tenant& tenant, int sign) {
    tenant.for_stays(end_, [&](int first, int last) {
      for (int step = first; step <= last; ++step) live(step) += sign * tenant.bytes;
    });
  }

  void find_live() {
    live_.assign(uz(end_) + 2, 0);
    for (const Tenant& tenant : tenants_) add_stays(tenant, 1);
  }

  Peak measure() const {
    std::vector<Block> blocks;
    std::vector<bool> resident(plan_.buffers.size(), false);
    for (const Tenant& tenant : tenants_) {
      const bool stays = tenant.is_weight && !tenant.streams();
      resident[uz(tenant.buffer)] = stays;
      if (stays) continue;
      tenant.for_stays(end_, [&](int first, int last) {
        Block block{};
        block.bytes = tenant.bytes, block.first = first, block.last = last;
        blocks.push_back(block);
      });
    }
    return peak_of_(blocks, resident);
  }

  // Number of steps, from `from` on in one direction, that hide a copy of `bytes` bytes.
  int lead(std::int64_t bytes, int from, int direction) const {
    std::int64_t hidden = 0;
    int steps = 0;
    for (int step = from; step >= 0 && step < end_ && steps < most_lead_; step += direction) {
      if (hidden >= kHidden * bytes) break;
      hidden += traffic_[uz(step)];
      ++steps;
    }
    return steps;
  }

  // Gap i, cut so that the tenant is not on the device at `step`.
  Gap cut_gap(const Tenant& tenant, std::size_t i, int step) const {
    const int until = tenant.uses[i].step;
    Gap gap{true, 0, std::min(lead(tenant.bytes, until - 1, -1), until)};
    if (step < until) gap.lead_in = std::min(gap.lead_in, until - step - 1);
    if (i == 0) return gap;
    const int from = tenant.uses[i - 1].step;
    gap.lead_out = tenant.is_dirty(i) ? lead(tenant.bytes, from + 1, 1) : 0;
    gap.lead_out = std::min(gap.lead_out, step - from - 1);
    return gap;
  }

  void take_off(Tenant& tenant, int step) const {
    const std::size_t i = uz(tenant.gap_at(step));
    // A weight that leaves the device is not there when an inference begins.
    if (tenant.is_weight && !tenant.gaps[0].cut) tenant.gaps[0] = cut_gap(tenant, 0, step);
    tenant.gaps[i] = cut_gap(tenant, i, step);
  }

  // How much take_off() reduces the excess of all steps, per byte that it moves.
  double score(const Tenant& tenant, int step) const {
    const std::size_t i = uz(tenant.gap_at(step));
    double relief = 0;
    std::int64_t copies = 0;
    if (tenant.is_weight && !tenant.gaps[0].cut) {
      const Gap gap = cut_gap(tenant, 0, step);
      relief += excess(tenant.bytes, -1, tenant.uses[0].step - gap.lead_in - 1);
      relief += excess(tenant.bytes, tenant.uses.back().step + 1, end_);
      ++copies;
    }
    if (i > 0) {
      const Gap gap = cut_gap(tenant, i, step);
      relief += excess(tenant.bytes, tenant.uses[i - 1].step + gap.lead_out + 1,
                       tenant.uses[i].step - gap.lead_in - 1);
      copies += tenant.is_dirty(i) ? 2 : 1;
    }
    return relief / static_cast<double>(copies * (tenant.bytes + kOverhead));
  }

  // The minimum that each step needs, whatever is moved.
  void find_least() {
    live_.assign(uz(end_) + 2, 0);
    for (const Tenant& tenant : tenants_) {
      if (tenant.is_fixed) {
        add_stays(tenant, 1);
      } else {
        for (const Use& use : tenant.uses) live(use.step) += tenant.bytes;
      }
    }
    least_ = live_;
  }

  // Bytes by which a step exceeds its goal.
  std::int64_t excess_at(int step) const {
    return live_[uz(step + 1)] - std::max(goals_[uz(step + 1)], least_[uz(step + 1)]);
  }

  // Selects the steps that excess() counts.
  void find_crowded() {
    constexpr std::size_t kMost = 256;
    std::vector<int> all;
    for (int step = -1; step <= end_; ++step) {
      if (excess_at(step) > 0) all.push_back(step);
    }
    crowded_.clear();
    const std::size_t stride = all.size() / kMost + 1;
    for (std::size_t i = 0; i < all.size(); i += stride) crowded_.push_back(all[i]);
  }

  // The excess over the goal that removing `bytes` from step `first` to `last` saves, summed
  // over the steps: all, or an evenly spaced selection.
  double excess(std::int64_t bytes, int first, int last) const {
    double sum = 0;
    for (auto step = std::lower_bound(crowded_.begin(), crowded_.end(), first);
         step != crowded_.end() && *step <= last; ++step)
      sum += static_cast<double>(std::min(excess_at(*step), bytes));
    return sum;
  }

  // Cuts gaps until no step needs more than its goal; false if nothing is left to cut.
  bool cut() {
    find_live();
    while (true) {
      int worst = -1;
      for (int step = -1; step <= end_; ++step) {
        if (excess_at(step) > excess_at(worst)) worst = step;
      }
      if (excess_at(worst) <= 0) return true;
      find_crowded();
      if (!cut_at(worst)) return false;
    }
  }

  // The same for a single step.
  bool cut_at(int step) {
    std::vector<std::pair<double, std::size_t>> candidates;
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      const Tenant& tenant = tenants_[i];
      if (tenant.is_fixed || tenant.gap_at(step) < 0) continue;
      candidates.emplace_back(score(tenant, step), i);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
    for (const auto& candidate : candidates) {
      if (excess_at(step) <= 0) return true;
      Tenant& tenant = tenants_[candidate.second];
      add_stays(tenant, -1);
      take_off(tenant, step);
      add_stays(tenant, 1);
    }
    return excess_at(step) <= 0;
  }

  // Moves fewer tenants and gives copies more time, as far as that fits; returns the resulting
  // peak.
  std::int64_t improve(std::int64_t peak) {
    const std::vector<Tenant> before = tenants_;
    for (const double share : {1.0, 0.95, 0.9}) {
      const auto limit = static_cast<std::int64_t>(share * static_cast<double>(budget_));
      find_live();
      join(limit);
      widen(limit);
      const std::int64_t now = measure().bytes;
      if (now <= budget_) return now;
      tenants_ = before;
    }
    return peak;
  }

  // Keeps tenants on the device that did not have to leave, the most expensive first.
  void join(std::int64_t limit) {
    std::vector<std::size_t> order(tenants_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tenants_[a].cost(kOverhead) > tenants_[b].cost(kOverhead);
    });
    for (const std::size_t i : order) {
      if (!tenants_[i].moves()) break;
      const Tenant moving = tenants_[i];
      tenants_[i].gaps.assign(moving.gaps.size(), Gap{});
      add_stays(moving, -1);
      add_stays(tenants_[i], 1);
      if (*std::max_element(live_.begin(), live_.end()) <= limit) continue;
      add_stays(tenants_[i], -1);
      add_stays(moving, 1);
      tenants_[i] = moving;
    }
  }

  // Gives copies as many steps to hide behind as fit.
  void widen(std::int64_t limit) {
    most_lead_ = std::end(kLeads)[-1];
    for (Tenant& tenant : tenants_) {
      for (std::size_t i = 0; i < tenant.gaps.size(); ++i) {
        if (tenant.gaps[i].cut) widen(tenant, i, limit);
      }
    }
  }

  void widen(Tenant& tenant, std::size_t i, std::int64_t limit) {
    Gap& gap = tenant.gaps[i];
    const int until = tenant.uses[i].step;
    const int from = i > 0 ? tenant.uses[i - 1].step : -2;
    const auto grow = [&](int& length, int want, int next, int direction) {
      while (length < want && from + gap.lead_out + 2 < until - gap.lead_in &&
             live(next) + tenant.bytes <= limit) {
        live(next) += tenant.bytes;
        next += direction;
        ++length;
      }
    };
    grow(gap.lead_in, lead(tenant.bytes, until - 1, -1), until - gap.lead_in - 1, -1);
    if (i > 0 && tenant.is_dirty(i))
      grow(gap.lead_out, lead(tenant.bytes, from + 1, 1), from + gap.lead_out + 1, 1);
  }

  Plan& plan_;
  std::vector<bool>& is_static_;
  const std::int64_t budget_;
  const PeakOf& peak_of_;
  const int end_;
  std::vector<Tenant> tenants_;
  int most_lead_ = 0;                  // one of kLeads
  std::vector<std::int64_t> traffic_;  // bytes of the operands of each step
  std::vector<std::int64_t> live_;     // bytes on the device at each step, from -1 on
  std::vector<std::int64_t> goals_;    // ... at most
  std::vector<std::int64_t> least_;  // ... of which the operands of the step, and what never moves
  std::vector<int> crowded_;
};

}  // namespace

std::int64_t swap_to_fit(Plan& plan, std::vector<bool>& is_static, const PlanOptions& options,
                         const PeakOf& peak_of) {
  return Swapper(plan, is_static, options, peak_of).run();
}

}  // namespace clgpu::plan
