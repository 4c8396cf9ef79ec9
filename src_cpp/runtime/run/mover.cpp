#include "runtime/run/mover.hpp"

#include <cstring>
#include <utility>

#include "base/index.hpp"
#include "runtime/run/constant_bytes.hpp"

namespace clgpu::runtime {
namespace {}  // namespace

Mover::Mover(cl::Context& context, const plan::Plan& plan, bool record, MemoryOf memory)
    : context_(context),
      plan_(plan),
      memory_(std::move(memory)),
      queue_(context.create_queue()),
      recording_queue_(record ? context.create_queue(/*profiling=*/true) : cl::QueueHandle{}),
      needed_(plan.run.size() + 1) {
  for (std::size_t i = 0; i < plan.moves.size(); ++i)
    needed_[uz(plan.moves[i].finish)].push_back(i);
  events_.reserve(plan.moves.size());
  waits_.reserve(plan.moves.size());
  slots_.reserve(plan.slots.size());
  try {
    for (const plan::HostSlot& planned : plan.slots) make_slot(planned);
  } catch (...) {
    drop_slots();  // the destructor will not run
    throw;
  }
}

Mover::~Mover() { drop_slots(); }

void Mover::drop_slots() noexcept {
  finish();
  for (const Slot& slot : slots_) {
    if (slot.object)
      context_.api().clEnqueueUnmapMemObject(queue_.get(), slot.object.get(), slot.writable, 0,
                                             nullptr, nullptr);
  }
  finish();
}

void Mover::make_slot(const plan::HostSlot& planned) {
  const auto bytes = static_cast<std::size_t>(planned.bytes);
  Slot& slot = slots_.emplace_back();
  const ir::Constant* constant = planned.constant.get();
  const bool converts = constant != nullptr && !is_stored_as(*constant, planned.storage);
  // Without a bus, a second copy of the model brings no gain.
  if (constant != nullptr && !converts && context_.device().info.unified_memory) {
    CLGPU_CHECK(constant->bytes >= bytes);
    slot.data = constant->data;
    return;
  }
  allocate(slot, bytes);
  if (constant == nullptr) return;
  if (converts) {
    store(*constant, planned.storage, 0, bytes / size_of(planned.storage),
          static_cast<std::uint8_t*>(slot.writable));
    return;
  }
  CLGPU_CHECK(constant->bytes >= bytes);
  std::memcpy(slot.writable, constant->data, bytes);
}

void Mover::allocate(Slot& slot, std::size_t bytes) {
  const cl::Api& api = context_.api();
  slot.object = context_.create_pinned(bytes);
  if (slot.object) {
    cl::cl_int code = cl::CL_SUCCESS;
    slot.writable = api.clEnqueueMapBuffer(queue_.get(), slot.object.get(), cl::CL_TRUE,
                                           cl::CL_MAP_READ | cl::CL_MAP_WRITE, 0, bytes, 0, nullptr,
                                           nullptr, &code);
    if (code != cl::CL_SUCCESS) slot.object = {};
  }
  if (!slot.object) {
    slot.bytes.resize(bytes);
    slot.writable = slot.bytes.data();
  }
  slot.data = slot.writable;
}

void Mover::keep(int buffer, const cl::QueueHandle& launches) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const plan::HostSlot& planned = plan_.slots[i];
    if (planned.loaded_from != buffer) continue;
    cl::check(context_.api().clEnqueueReadBuffer(launches.get(), memory_(buffer), cl::CL_TRUE, 0,
                                                 static_cast<std::size_t>(planned.bytes),
                                                 slots_[i].writable, 0, nullptr, nullptr),
              "clEnqueueReadBuffer", plan_.buffers[uz(buffer)].name);
    cl::counters().bytes_down += static_cast<std::uint64_t>(planned.bytes);
  }
}

void Mover::before(int step, const cl::QueueHandle& launches, const cl::QueueHandle& moves,
                   Recording* recording) {
  const cl::Api& api = context_.api();
  if (step == 0) {
    release_events();
    next_ = 0;
    for (Slot& slot : slots_) slot.filled_by = -1;
  }
  if (next_ < plan_.moves.size() && plan_.moves[next_].start == step) {
    cl::cl_event done = nullptr;
    cl::check(api.clEnqueueMarkerWithWaitList(launches.get(), 0, nullptr, &done),
              "clEnqueueMarkerWithWaitList", "the queue of launches");
    const cl::EventHandle marker(api, done);
    // Another queue can wait only for commands that were flushed.
    cl::check(api.clFlush(launches.get()), "clFlush", "the queue of launches");
    for (; next_ < plan_.moves.size() && plan_.moves[next_].start == step; ++next_)
      enqueue(next_, moves, done, recording);
    cl::check(api.clFlush(moves.get()), "clFlush", "the queue of moves");
  }
  if (needed_[uz(step)].empty()) return;
  waits_.clear();
  for (const std::size_t index : needed_[uz(step)]) waits_.push_back(events_[index].get());
  cl::check(api.clEnqueueMarkerWithWaitList(launches.get(), static_cast<cl::cl_uint>(waits_.size()),
                                            waits_.data(), nullptr),
            "clEnqueueMarkerWithWaitList", "the queue of launches");
}

void Mover::enqueue(std::size_t index, const cl::QueueHandle& moves, cl::cl_event after,
                    Recording* recording) {
  const cl::Api& api = context_.api();
  const plan::Move& move = plan_.moves[index];
  Slot& slot = slots_[uz(move.slot)];
  const auto bytes = static_cast<std::size_t>(move.bytes);
  const std::string& name = plan_.buffers[uz(move.buffer)].name;
  cl::cl_event event = nullptr;
  if (recording != nullptr) recording->begin_move(index);
  if (move.kind == plan::Move::Kind::kOut) {
    cl::check(api.clEnqueueReadBuffer(moves.get(), memory_(move.buffer), cl::CL_FALSE, 0, bytes,
                                      slot.writable, 1, &after, &event),
              "clEnqueueReadBuffer", name);
    cl::counters().bytes_down += bytes;
    slot.filled_by = static_cast<int>(index);
  } else {
    if (!slot.object && slot.filled_by >= 0) wait_for(slot.filled_by, moves);
    cl::check(api.clEnqueueWriteBuffer(moves.get(), memory_(move.buffer), cl::CL_FALSE, 0, bytes,
                                       slot.data, 1, &after, &event),
              "clEnqueueWriteBuffer", name);
    cl::counters().bytes_up += bytes;
  }
  events_.emplace_back(api, event);
  if (recording != nullptr) recording->end(api);
}

// NVIDIA's driver reads memory that is not pinned when a command is enqueued, not when it runs:
// data that a device must first write there has to be there by then.
void Mover::wait_for(int move, const cl::QueueHandle& moves) {
  const cl::cl_event filled = events_[uz(move)].get();
  cl::check(context_.api().clFlush(moves.get()), "clFlush", "the queue of moves");
  cl::check(context_.api().clWaitForEvents(1, &filled), "clWaitForEvents", "a move");
}

void Mover::release_events(Recording* recording) {
  if (recording != nullptr) recording->adopt(events_);
  events_.clear();
}

void Mover::finish() noexcept {
  for (const cl::QueueHandle* queue : {&queue_, &recording_queue_}) {
    if (!*queue) continue;
    context_.api().clFlush(queue->get());
    context_.api().clFinish(queue->get());
  }
}

}  // namespace clgpu::runtime
