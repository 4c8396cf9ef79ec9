// The uses of a buffer by steps, and the gaps between them, in which it need not be on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

struct Use {
  int step;  ///< -1: uploaded; the number of run steps: downloaded
  bool writes;
};

/// The time between a use and the one before; for a weight's first use, all time outside of its
/// uses.
struct Gap {
  bool cut = false;  ///< the buffer is not on the device
  int lead_out = 0,
      lead_in = 0;  ///< steps after its begin and before its end that are reserved for copies
};

struct Tenant {
  int buffer;
  std::int64_t bytes;
  bool is_weight;  ///< static: its contents do not change
  bool is_fixed;   ///< never leaves the device
  std::vector<Use> uses;
  std::vector<Gap> gaps;  ///< gaps[i] lies before uses[i]

  /// A weight that is uploaded for each use or group of uses.
  bool streams() const { return is_weight && gaps[0].cut; }
  bool moves() const;
  /// Whether the host has no copy of its contents before use i.
  bool is_dirty(std::size_t i) const;
  /// Bytes that it moves in an inference, plus `overhead` for each move.
  std::int64_t cost(std::int64_t overhead) const;
  /// The gap around a step without a use, if it is not cut yet; else -1.
  int gap_at(int step) const;

  /// Calls visit(first, last), both included, for each time that it is on the device, in order; a
  /// plan has `steps` run steps.
  template <class F>
  void for_stays(int steps, F visit) const {
    int first = is_weight ? -1 : uses[0].step;
    if (streams()) first = uses[0].step - gaps[0].lead_in;
    for (std::size_t i = 1; i < uses.size(); ++i) {
      if (!gaps[i].cut) continue;
      visit(first, uses[i - 1].step + gaps[i].lead_out);
      first = uses[i].step - gaps[i].lead_in;
    }
    visit(first, is_weight && !streams() ? steps : uses.back().step);
  }
};

/// One for each buffer that steps or transfers of a plan use, with nothing cut.
std::vector<Tenant> find_tenants(const Plan& plan, const std::vector<bool>& is_static,
                                 const PlanOptions& options);

/// Writes the cuts into the plan: slots, moves, buffers for returning contents, and the steps that
/// refer to them.
void cut_plan(Plan& plan, std::vector<bool>& is_static, const std::vector<Tenant>& tenants);

}  // namespace clgpu::plan
