#include "plan/arena/tenant.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/index.hpp"

namespace clgpu::plan {
namespace {

class Cutter {
 public:
  Cutter(Plan& plan, std::vector<bool>& is_static) : plan_(plan), is_static_(is_static) {
    for (const Step& step : plan.load) loading_.insert(step.buffers.begin(), step.buffers.end());
  }

  void cut(const Tenant& tenant) {
    const int slot = add_slot(tenant);
    int now = tenant.buffer;
    for (std::size_t i = 0; i < tenant.uses.size(); ++i) {
      const Gap& gap = tenant.gaps[i];
      const int step = tenant.uses[i].step;
      if (gap.cut) {
        if (i > 0 && tenant.is_dirty(i)) {
          const int start = tenant.uses[i - 1].step + 1;
          plan_.moves.push_back(
              {Move::Kind::kOut, now, slot, tenant.bytes, start, start + gap.lead_out});
        }
        now = add_copy(tenant.buffer);
        plan_.moves.push_back({Move::Kind::kIn, now, slot, tenant.bytes, step - gap.lead_in, step});
      }
      refer(step, tenant.buffer, now);
    }
  }

  // Of moves that may start at the same step, first those that free memory, then those that are
  // needed first.
  void sort_moves() {
    const auto key = [](const Move& m) { return std::make_tuple(m.start, m.kind, m.finish); };
    std::stable_sort(plan_.moves.begin(), plan_.moves.end(),
                     [&](const Move& a, const Move& b) { return key(a) < key(b); });
  }

 private:
  int add_slot(const Tenant& tenant) {
    Buffer& buffer = plan_.buffers[uz(tenant.buffer)];
    HostSlot slot{tenant.bytes, buffer.storage, nullptr, -1};
    if (tenant.is_weight) {
      slot.constant = buffer.upload;
      if (buffer.upload == nullptr) slot.loaded_from = tenant.buffer;
      const bool loads = loading_.count(tenant.buffer) != 0;
      buffer.place = loads ? Buffer::Place::kLoad : Buffer::Place::kNowhere;
      plan_.weights_bytes -= tenant.bytes;
    }
    plan_.slots.push_back(std::move(slot));
    return static_cast<int>(plan_.slots.size()) - 1;
  }

  int add_copy(int original) {
    Buffer buffer = plan_.buffers[uz(original)];
    buffer.place = Buffer::Place::kArena;
    buffer.upload = nullptr;
    plan_.buffers.push_back(std::move(buffer));
    is_static_.push_back(false);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void refer(int step, int from, int to) {
    if (step == static_cast<int>(plan_.run.size())) {
      for (Transfer& t : plan_.downloads) {
        if (t.buffer == from) t.buffer = to;
      }
      for (Carry& c : plan_.carries) {
        if (c.result == from) c.result = to;
      }
    } else if (step >= 0) {
      std::vector<int>& buffers = plan_.run[uz(step)].buffers;
      std::replace(buffers.begin(), buffers.end(), from, to);
    }
  }

  Plan& plan_;
  std::vector<bool>& is_static_;
  std::set<int> loading_;  // buffers of load-time launches
};

}  // namespace

bool Tenant::moves() const {
  return std::any_of(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.cut; });
}

bool Tenant::is_dirty(std::size_t i) const {
  if (is_weight) return false;
  while (i-- > 0) {
    if (uses[i].writes) return true;
    if (gaps[i].cut) return false;
  }
  return true;
}

std::int64_t Tenant::cost(std::int64_t overhead) const {
  std::int64_t count = 0;
  bool dirty = !is_weight;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].cut) count += std::exchange(dirty, false) ? 2 : 1;
    dirty = dirty || (uses[i].writes && !is_weight);
  }
  return count * (bytes + overhead);
}

int Tenant::gap_at(int step) const {
  const auto next = std::lower_bound(uses.begin(), uses.end(), step,
                                     [](const Use& use, int s) { return use.step < s; });
  if (next != uses.end() && next->step == step) return -1;
  if (next == uses.begin() || next == uses.end()) return is_weight && !gaps[0].cut ? 0 : -1;
  const auto i = static_cast<std::size_t>(next - uses.begin());
  return gaps[i].cut ? -1 : static_cast<int>(i);
}

std::vector<Tenant> find_tenants(const Plan& plan, const std::vector<bool>& is_static,
                                 const PlanOptions& options) {
  std::vector<std::map<int, bool>> uses(plan.buffers.size());  // step -> whether it writes
  for (int step = 0; step < static_cast<int>(plan.run.size()); ++step) {
    std::size_t next = 0;
    for (const kernel::Arg& arg : plan.run[uz(step)].launch.args) {
      const auto* operand = std::get_if<kernel::Operand>(&arg);
      if (operand == nullptr) continue;
      bool& writes = uses[uz(plan.run[uz(step)].buffers[next++])][step];
      writes = writes || operand->writes;
    }
  }
  for (const Transfer& t : plan.uploads) uses[uz(t.buffer)][-1] = true;
  for (const Transfer& t : plan.downloads)
    uses[uz(t.buffer)].try_emplace(static_cast<int>(plan.run.size()), false);
  for (const Carry& c : plan.carries)
    uses[uz(c.result)].try_emplace(static_cast<int>(plan.run.size()), false);

  std::vector<Tenant> tenants;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer::Place place = plan.buffers[i].place;
    if (uses[i].empty() || place == Buffer::Place::kHost || place == Buffer::Place::kCarried ||
        place == Buffer::Place::kKept)
      continue;
    Tenant tenant{static_cast<int>(i), plan.buffers[i].bytes, is_static[i], false, {}, {}};
    tenant.is_fixed = !(is_static[i] ? options.stream_weights : options.swap) || tenant.bytes == 0;
    for (const auto& [step, writes] : uses[i]) {
      tenant.uses.push_back({step, writes});
      // Data that an inference leaves for the next one, such as counters.
      if (is_static[i] && writes) tenant.is_fixed = true;
    }
    tenant.gaps.resize(tenant.uses.size());
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

void cut_plan(Plan& plan, std::vector<bool>& is_static, const std::vector<Tenant>& tenants) {
  Cutter cutter(plan, is_static);
  for (const Tenant& tenant : tenants) {
    if (tenant.moves()) cutter.cut(tenant);
  }
  cutter.sort_moves();
}

}  // namespace clgpu::plan
