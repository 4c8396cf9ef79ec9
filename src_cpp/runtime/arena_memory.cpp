#include "runtime/arena_memory.hpp"

namespace clgpu::runtime {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ArenaMemory::ArenaMemory(cl::Context& context, const plan::Plan& plan)
    : of_buffer_(plan.buffers.size()) {
  for (const std::int64_t bytes : plan.objects) {
    objects_.push_back(
        context.create_buffer(static_cast<std::size_t>(bytes), "a buffer of the arena"));
  }
  try {
    divide(context, plan);
  } catch (...) {
    while (!parts_.empty()) parts_.pop_back();
    throw;
  }
}

// NVIDIA's driver 580 crashes when sub-buffers that kernels have used are released in the order in
// which they were created.
ArenaMemory::~ArenaMemory() {
  while (!parts_.empty()) parts_.pop_back();
}

// Where an object is divided, all its tensors are sub-buffers: a kernel must not have an object and
// a part of it as arguments if it writes one of them.
void ArenaMemory::divide(cl::Context& context, const plan::Plan& plan) {
  using plan::Buffer;
  std::vector<bool> divided(objects_.size());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place == Buffer::Place::kArena && buffer.offset > 0)
      divided[at(buffer.object)] = true;
  }
  std::map<std::tuple<int, std::int64_t, std::int64_t>, cl::cl_mem> known;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.place != Buffer::Place::kArena) continue;
    const cl::Memory& object = objects_[at(buffer.object)];
    if (!divided[at(buffer.object)]) {
      of_buffer_[i] = object.get();
      continue;
    }
    cl::cl_mem& part = known[{buffer.object, buffer.offset, buffer.bytes}];
    if (part == nullptr) {
      parts_.push_back(context.create_sub_buffer(object, static_cast<std::size_t>(buffer.offset),
                                                 static_cast<std::size_t>(buffer.bytes),
                                                 "'" + buffer.name + "'"));
      part = parts_.back().get();
    }
    of_buffer_[i] = part;
  }
}

}  // namespace clgpu::runtime
