// Which buffers leave device memory between their uses, and when they move.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/arena/memory.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Device memory in bytes that a plan needs at its worst moment when the arena holds these blocks
/// and those of the static buffers that are marked stay on the device.
using PeakOf =
    std::function<std::int64_t(const std::vector<Block>& arena, const std::vector<bool>& resident)>;

/// Fills Plan::moves and Plan::slots until the plan fits PlanOptions::memory_budget: tensors wait
/// on the host between two uses (`swap`), weights come from it for each use (`stream_weights`).
/// Where nothing is left to move, what needs the least memory is taken. Adds buffers, also to
/// `is_static`, and lets steps refer to them; static buffers have their place already, the arena is
/// laid out afterwards. Returns the bytes that it will need, as `peak_of` says.
///
/// Greedy at the worst step: of all that is not in use there, what leaves takes the most off the
/// excess of all steps per byte that moves. Copies get as many steps as the memory allows to hide
/// behind.
std::int64_t swap_to_fit(Plan& plan, std::vector<bool>& is_static, const PlanOptions& options,
                         const PeakOf& peak_of);

/// First and last step at which the moves of a plan need a buffer, through `touch(buffer, step)`.
template <class F>
void for_moves(const Plan& plan, F touch) {
  for (const Move& move : plan.moves) {
    const bool in = move.kind == Move::Kind::kIn;
    touch(move.buffer, in ? move.start : move.finish - 1);
  }
}

}  // namespace clgpu::plan
