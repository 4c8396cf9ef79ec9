#include "plan/conflicts.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace clgpu::plan {
namespace {

bool share_memory(const Plan& plan, int a, int b) {
  if (a == b) return true;
  const Buffer &x = plan.buffers[uz(a)], &y = plan.buffers[uz(b)];
  // The runtime may give an input and an output the same memory.
  if (x.place == Buffer::Place::kHost && y.place == Buffer::Place::kHost) return true;
  if (x.place != Buffer::Place::kArena || y.place != Buffer::Place::kArena) return false;
  return x.object == y.object && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

}  // namespace

std::vector<Access> accesses_of(const Step& step) {
  std::vector<Access> uses;
  for_operands(step, [&](int buffer, const kernel::Operand& operand) {
    uses.push_back({buffer, operand.writes});
  });
  return uses;
}

bool conflict(const Plan& plan, const std::vector<Access>& earlier,
              const std::vector<Access>& later) {
  return std::any_of(later.begin(), later.end(), [&](const Access& now) {
    return std::any_of(earlier.begin(), earlier.end(), [&](const Access& before) {
      return (now.writes || before.writes) && share_memory(plan, now.buffer, before.buffer);
    });
  });
}

int number_of(int buffer, std::vector<int>& buffers) {
  const auto known = std::find(buffers.begin(), buffers.end(), buffer);
  const auto number = static_cast<int>(known - buffers.begin());
  if (known == buffers.end()) buffers.push_back(buffer);
  return number;
}

}  // namespace clgpu::plan
