#include "plan/lasting.hpp"

#include <algorithm>
#include <cstdint>

#include "base/index.hpp"
#include "plan/operands.hpp"

namespace clgpu::plan {
namespace {

/// Bytes that a fast GPU writes in half the time of a launch.
constexpr std::int64_t kMostBytes = 8 << 20;

bool has(const std::vector<Transfer>& transfers, int buffer) {
  return std::any_of(transfers.begin(), transfers.end(),
                     [&](const Transfer& each) { return each.buffer == buffer; });
}

}  // namespace

bool is_lasting(const Plan& plan, int buffer) {
  return plan.moves.empty() && !has(plan.uploads, buffer) && !has(plan.downloads, buffer) &&
         !plan.buffers[uz(buffer)].is_part;
}

std::vector<int> lasting_arguments(const Plan& plan, const Step& step) {
  std::vector<int> numbers;
  bool small = true;
  std::size_t next = 0;
  for (std::size_t i = 0; i < step.launch.args.size(); ++i) {
    const auto* operand = std::get_if<kernel::Operand>(&step.launch.args[i]);
    if (operand == nullptr) continue;
    const int buffer = step.buffers[next++];
    const bool whole = operand->writes && !operand->reads;  // otherwise the change may be small
    small = small && (!whole || plan.buffers[uz(buffer)].bytes <= kMostBytes);
    if (!operand->image && is_lasting(plan, buffer)) numbers.push_back(static_cast<int>(i));
  }
  return small ? numbers : std::vector<int>();
}

}  // namespace clgpu::plan
