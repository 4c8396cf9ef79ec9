#include "plan/arena/in_place.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"

namespace clgpu::plan {
namespace {

// The run steps that use each buffer, in order; an upload is step -1, a download the one after the
// last. Tensors that are carried are there before the first step, and needed after the last.
std::vector<std::vector<int>> touches(const Plan& plan) {
  std::vector<std::vector<int>> steps(plan.buffers.size());
  for (const Transfer& t : plan.uploads) steps[uz(t.buffer)].push_back(-1);
  for (const Carry& c : plan.carries) steps[uz(c.buffer)].push_back(-1);
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    for (const int buffer : plan.run[i].buffers) steps[uz(buffer)].push_back(static_cast<int>(i));
  }
  for (const Transfer& t : plan.downloads)
    steps[uz(t.buffer)].push_back(static_cast<int>(plan.run.size()));
  for (const Carry& c : plan.carries)
    steps[uz(c.result)].push_back(static_cast<int>(plan.run.size()));
  return steps;
}

}  // namespace

std::int64_t write_in_place(Plan& plan, const std::vector<bool>& is_static,
                            const std::vector<InPlace>& chances) {
  std::vector<std::vector<int>> steps = touches(plan);
  // Bands of one node are separate nodes that share an input and an output.
  std::map<std::pair<int, int>, std::vector<const InPlace*>> chances_of;
  for (const InPlace& chance : chances)
    chances_of[{chance.input, chance.output}].push_back(&chance);

  std::vector<int> stands_for(plan.buffers.size());  // buffer -> the one that replaces it
  for (std::size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<int>(i);
  const auto root = [&](int buffer) {
    while (stands_for[uz(buffer)] != buffer) buffer = stands_for[uz(buffer)];
    return buffer;
  };
  std::vector<bool> carried(plan.buffers.size());
  for (const Carry& c : plan.carries) carried[uz(c.buffer)] = true;
  std::int64_t saved = 0;
  for (const InPlace& next : chances) {
    const int input = root(next.input), output = root(next.output);
    const Buffer &from = plan.buffers[uz(input)], &to = plan.buffers[uz(output)];
    std::vector<int>&before = steps[uz(input)], &after = steps[uz(output)];
    if (input == output || from.bytes != to.bytes || before.empty() || after.empty()) continue;
    if (is_static[uz(input)] || is_static[uz(output)]) continue;
    if (carried[uz(output)] || (carried[uz(input)] && !next.update)) continue;
    if (from.place != Buffer::Place::kArena || to.place != Buffer::Place::kArena) continue;
    const auto& allowed = chances_of[{next.input, next.output}];
    const auto conflicts = [&](int step) {
      return step >= after.front() && step <= before.back() &&
             std::none_of(allowed.begin(), allowed.end(),
                          [&](const InPlace* c) { return c->begin <= step && step < c->end; });
    };
    if (before.front() >= after.front() || std::any_of(before.begin(), before.end(), conflicts) ||
        std::any_of(after.begin(), after.end(), conflicts))
      continue;
    stands_for[uz(output)] = input;
    saved += to.bytes;
    plan.buffers[uz(input)].name += ", " + to.name;
    before.insert(before.end(), after.begin(), after.end());
    std::sort(before.begin(), before.end());
  }
  for (const InPlace& chance : chances) {
    if (chance.update && root(chance.input) == root(chance.output))
      plan.run[uz(chance.begin)] = *chance.update;
  }
  for (Step& step : plan.run) {
    for (int& buffer : step.buffers) buffer = root(buffer);
  }
  for (Carry& c : plan.carries) c.result = root(c.result);
  for (Transfer& t : plan.uploads) t.buffer = root(t.buffer);
  for (Transfer& t : plan.downloads) t.buffer = root(t.buffer);
  return saved;
}

}  // namespace clgpu::plan
