// How work-items share the outputs of a reduction.
#include "ops/shared/sharing.hpp"

#include <algorithm>

#include "ops/shared/mobile.hpp"

namespace clgpu::ops {

std::size_t group_of(std::size_t most, const DeviceInfo& device) {
  const std::size_t limit =
      std::min({most, device.max_work_group_size, device.max_work_item_sizes[0]});
  std::size_t group = 1;
  while (group * 2 <= limit) group *= 2;
  return group;
}

std::vector<Sharing> sharings(std::int64_t outputs, std::int64_t count, bool adjacent,
                              const DeviceInfo& device) {
  const Sharing naive{"naive", group_of(kElementwiseGroup, device), 1, kernel::Form::kReference};
  // Few distinct sizes, since each is a program of its own.
  Sharing tree{"tree", 1, 64};
  if (device.is_cpu()) {
    // A CPU runs the items of a group as a loop, eight or sixteen at once; more items only add
    // cost.
    tree = adjacent ? Sharing{"tree", 1, 16} : Sharing{"tree", 16, 4};
  } else if (!adjacent) {
    tree = {"tree", 16, 16};
  } else if (count < 128) {
    tree = {"tree", 4, 16};
  } else if (count > 4096 || (count > 256 && outputs < device.compute_units)) {
    tree = {"tree", 1, 256};  // fewer groups than the device can run: short groups end sooner
  }
  const std::size_t limit = group_of(tree.group(), device);
  while (tree.group() > limit && tree.items > 1) tree.items /= 2;
  while (tree.group() > limit) tree.outputs /= 2;

  // This many outputs keep the device busy with one item each. A CPU reads adjacent elements well
  // in any order; a GPU does not.
  bool tree_first = count >= 16;
  if (device.is_cpu()) {
    tree_first = tree_first && outputs < (adjacent ? 256 : 32);
  } else if (!adjacent) {
    tree_first = tree_first && outputs < 1024LL * device.compute_units;
  }
  // There, the data that items share goes through memory, so sharing pays only if few items would
  // work without it.
  if (device.is_mobile() && !has_local_memory(device))
    tree_first = tree_first && outputs < items_to_fill(device) / 2;
  if (tree_first) return {tree, naive};
  return {naive, tree};
}

}  // namespace clgpu::ops
