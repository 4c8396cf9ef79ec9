// What is on the device: where tensors lie in its memory, and the programs.
#include <set>

#include "base/index.hpp"
#include "delegate/build/state.hpp"

namespace clgpu::delegate {
namespace {

PartitionMemory memory_of(const plan::Plan& plan) {
  using plan::Buffer;
  PartitionMemory memory{static_cast<int>(plan.run.size()), plan.layout, {}};
  for (const std::int64_t bytes : plan.objects) memory.objects.push_back({"arena", bytes, {}});
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place == Buffer::Place::kArena) {
      memory.objects.at(uz(buffer.object))
          .blocks.push_back({buffer.name, buffer.offset, buffer.bytes, buffer.first, buffer.last,
                             buffer.scratch ? "scratch" : "arena"});
    } else if (buffer.place == Buffer::Place::kWeights) {
      memory.objects.push_back({"weights",
                                buffer.bytes,
                                {{buffer.name, 0, buffer.bytes, -1, memory.launches, "weights"}}});
    }
  }
  return memory;
}

}  // namespace

std::vector<PartitionMemory> State::memory_map() const {
  std::vector<PartitionMemory> map;
  for (const auto& executor : live_executors()) map.push_back(memory_of(executor->plan()));
  return map;
}

std::vector<runtime::ProgramUse> State::programs() const {
  std::set<runtime::ProgramUse> uses;
  for (const auto& executor : live_executors()) {
    for (runtime::ProgramUse& use : runtime::programs(executor->plan()))
      uses.insert(std::move(use));
  }
  return {uses.begin(), uses.end()};
}

}  // namespace clgpu::delegate
