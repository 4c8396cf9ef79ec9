// Where tensors lie in device memory: the data behind Delegate.memory_map().
#include "delegate/state.hpp"

namespace clgpu::delegate {
namespace {

PartitionMemory memory_of(const plan::Plan& plan) {
  using plan::Buffer;
  PartitionMemory memory{static_cast<int>(plan.run.size()), plan.layout, {}};
  for (const std::int64_t bytes : plan.objects) memory.objects.push_back({"arena", bytes, {}});
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place == Buffer::Place::kArena) {
      memory.objects.at(static_cast<std::size_t>(buffer.object))
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
  std::vector<std::shared_ptr<runtime::Executor>> live;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Live& partition : live_) {
      if (auto executor = partition.executor.lock()) live.push_back(std::move(executor));
    }
  }
  std::vector<PartitionMemory> map;
  for (const auto& executor : live) map.push_back(memory_of(executor->plan()));
  return map;
}

}  // namespace clgpu::delegate
