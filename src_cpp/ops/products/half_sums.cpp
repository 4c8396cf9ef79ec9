#include "ops/products/half_sums.hpp"

#include <utility>

namespace clgpu::ops {

bool takes_half_sums(const NodeContext& node, const DeviceInfo& device) {
  return node.node().half_sums && device.half_arithmetic;
}

kernel::Candidate half_form(kernel::Candidate candidate) {
  candidate.name += "_half";
  candidate.adds_halves = true;
  for (kernel::Launch& launch : candidate.launches) {
    for (auto& [name, value] : launch.macros) {
      if (name != "SUM_T" || value != "float") continue;
      value = "half";
      launch.macro("BLOCK", kHalfBlock);
      break;
    }
  }
  return candidate;
}

std::vector<kernel::Candidate> with_half_forms(const NodeContext& node, const DeviceInfo& device,
                                               std::vector<kernel::Candidate> candidates) {
  if (!takes_half_sums(node, device)) return candidates;
  std::vector<kernel::Candidate> result;
  for (const kernel::Candidate& candidate : candidates) result.push_back(half_form(candidate));
  result.insert(result.end(), std::make_move_iterator(candidates.begin()),
                std::make_move_iterator(candidates.end()));
  return result;
}

}  // namespace clgpu::ops
