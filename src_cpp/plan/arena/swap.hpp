// The choice of buffers that leave device memory between their uses, and the times of their moves.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/arena/memory.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Device memory of a plan at its worst moment.
struct Peak {
  std::int64_t bytes = 0;
  std::vector<Block> over;  ///< blocks of the arena that end above the budget
};

/// The peak if the arena holds these blocks and the marked static buffers stay on the device.
using PeakOf =
    std::function<Peak(const std::vector<Block>& arena, const std::vector<bool>& resident)>;

/// Fills Plan::moves and Plan::slots until the plan fits PlanOptions::memory_budget: tensors wait
/// on the host between two uses (`swap`), weights come from it for each use (`stream_weights`).
/// If all possible moves are not sufficient, takes the solution with the least memory. Adds
/// buffers, also to `is_static`, and makes steps refer to them. Static buffers have memory already;
/// the arena is laid out afterwards. Returns the bytes that it will need, as computed by `peak_of`.
///
/// Greedy at the worst step: of the buffers not in use there, it moves the one that reduces the
/// excess of all steps the most per moved byte. If the arena does not fit with what is left, since
/// free bytes lie apart, fewer bytes may stay at the steps of the blocks that do not fit, then at
/// all steps. Copies get as many steps to overlap with as the memory allows.
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
