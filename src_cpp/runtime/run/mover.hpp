// Copies between device and host in the middle of an inference: the moves of a plan.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "runtime/run/recorder.hpp"

namespace clgpu::runtime {

/// Moves run on a separate queue, in the order of Plan::moves. Markers tie it to the queue of
/// the launches: a move begins when the steps before its start are done, and its finish step waits
/// for it. In steady state, only events are created and released.
class Mover {
 public:
  using MemoryOf = std::function<cl::cl_mem(int buffer)>;

  /// Allocates the host slots and fills those of constants. The slots are pinned if possible, so
  /// that copies overlap with launches. The plan must outlive it. `record`: moves may be recorded.
  /// Throws cl::OpenCLError.
  Mover(cl::Context& context, const plan::Plan& plan, bool record, MemoryOf memory);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// The queue for recorded moves, or the usual one.
  const cl::QueueHandle& queue(const Recording* recording = nullptr) const {
    return recording == nullptr ? queue_ : recording_queue_;
  }

  /// Reads the result of a load-time launch from its buffer into its slot, if it has one.
  void keep(int buffer, const cl::QueueHandle& launches);

  /// Before a step is enqueued in `launches`, from 0 to the number of steps: enqueues the moves
  /// that may begin now in `moves`, and has `launches` wait for those that this step needs.
  void before(int step, const cl::QueueHandle& launches, const cl::QueueHandle& moves,
              Recording* recording = nullptr);

  /// Events of the moves of the last pass over the steps, by move.
  const std::vector<cl::EventHandle>& events() const { return events_; }
  /// To the recording, if there is one.
  void release_events(Recording* recording = nullptr);

  /// Waits for all moves, failed ones included.
  void finish() noexcept;

 private:
  struct Slot {
    cl::MemHandle object;             // pinned memory, mapped
    std::vector<std::uint8_t> bytes;  // if there is none
    const void* data = nullptr;       // contents
    void* writable = nullptr;         // null for a constant's own memory
    int filled_by = -1;               // move of the pass under way; -1: none
  };

  void make_slot(const plan::HostSlot& planned);
  void wait_for(int move, const cl::QueueHandle& moves);
  void drop_slots() noexcept;
  void allocate(Slot& slot, std::size_t bytes);
  void enqueue(std::size_t index, const cl::QueueHandle& moves, cl::cl_event after,
               Recording* recording);

  cl::Context& context_;
  const plan::Plan& plan_;
  const MemoryOf memory_;
  cl::QueueHandle queue_, recording_queue_;
  std::vector<Slot> slots_;
  std::vector<std::vector<std::size_t>> needed_;  // moves that each step waits for
  std::size_t next_ = 0;                          // first move that is not enqueued
  std::vector<cl::EventHandle> events_;           // of the moves enqueued
  std::vector<cl::cl_event> waits_;
};

}  // namespace clgpu::runtime
