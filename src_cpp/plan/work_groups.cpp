#include "plan/work_groups.hpp"

#include <algorithm>

#include "kernel/sources.hpp"
#include "ops/shared/conversions.hpp"

namespace clgpu::plan {
namespace {

using kernel::Candidate;

std::vector<Candidate> for_device(const ops::NodeContext& node, const DeviceInfo& device) {
  std::vector<Candidate> candidates = ops::candidates_of(node, device);
  const auto fit = [&](kernel::Launch& launch) {
    if (!group_exceeded(launch, device).empty() &&
        kernel::any_work_group(launch.file, launch.entry))
      kernel::divide_groups(launch, device.max_work_group_size, device.max_work_item_sizes);
  };
  for (Candidate& candidate : candidates) {
    for (kernel::Launch& launch : candidate.launches) fit(launch);
    if (candidate.over_input) fit(*candidate.over_input);
  }
  return candidates;
}

}  // namespace

std::string group_exceeded(const kernel::Launch& launch, const DeviceInfo& device) {
  const std::size_t items = kernel::group_items(launch);
  if (items > device.max_work_group_size) {
    return "needs work-groups of " + std::to_string(items) + " work-items; the device allows " +
           std::to_string(device.max_work_group_size);
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.local[axis] > device.max_work_item_sizes[axis]) {
      return "needs work-groups of " + std::to_string(launch.local[axis]) +
             " work-items along an axis; the device allows " +
             std::to_string(device.max_work_item_sizes[axis]);
    }
  }
  return {};
}

std::size_t demanded_items(const Candidate& candidate) {
  std::size_t items = 1;
  for (const kernel::Launch& launch : candidate.launches) {
    if (kernel::group_items(launch) > items && !kernel::any_work_group(launch.file, launch.entry))
      items = kernel::group_items(launch);
  }
  return items;
}

std::vector<Candidate> offered(const ops::Family& family, const ops::NodeContext& node,
                               const DeviceInfo& device, const Broken& broken) {
  std::vector<Candidate> candidates = for_device(node, device);
  if (broken.empty()) return candidates;
  for (Candidate& candidate : candidates) {
    const auto found = broken.find({family.name, candidate.name});
    if (found == broken.end() || found->second.group == 0 ||
        demanded_items(candidate) <= found->second.group)
      continue;
    DeviceInfo small = device;
    small.max_work_group_size = found->second.group;
    std::vector<Candidate> others = for_device(node, small);
    const auto same = std::find_if(others.begin(), others.end(), [&](const Candidate& other) {
      return other.name == candidate.name && other.refusal.empty();
    });
    if (same != others.end()) candidate = std::move(*same);
  }
  return candidates;
}

bool learn(Broken& broken, const std::string& family, const std::string& candidate, Fault fault) {
  const auto [known, is_new] = broken.emplace(std::pair(family, candidate), fault);
  if (is_new) return true;
  if (known->second.group <= fault.group) return false;
  known->second = std::move(fault);
  return true;
}

}  // namespace clgpu::plan
