// Device memory that the arenas of several executors share, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/index.hpp"
#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "runtime/run/images.hpp"

namespace clgpu::runtime {

class Lease;

/// The objects in which arenas take turns: the largest object of each arena in the first slot, the
/// second largest in the second, and so on; a slot is as large as the largest that it has to hold.
class Pool {
 public:
  explicit Pool(std::shared_ptr<cl::Context> context)
      : context_(std::move(context)), images_(*context_) {}
  ~Pool() { drop_parts(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The pool that all users of this device in this process share; its last user releases it.
  static std::shared_ptr<Pool> of_process(const std::shared_ptr<cl::Context>& context);

 private:
  friend class Lease;
  using Needs = std::vector<std::int64_t>;  // bytes by slot
  struct Slot {
    cl::Memory object;
    std::int64_t bytes = 0;
  };

  // The caller of the following functions must hold the turn.
  void join(const Lease* arena, Needs needs);
  void leave(const Lease* arena) noexcept;
  void provide(const Needs& needs);
  cl::cl_mem part(std::size_t slot, std::int64_t offset, std::int64_t bytes,
                  const std::string& what);
  void drop_parts() noexcept;
  std::int64_t needed(std::size_t slot) const;
  void settle() noexcept;

  std::mutex turn_;  // held while an inference uses the memory
  const std::shared_ptr<cl::Context> context_;
  std::vector<Slot> slots_;
  std::vector<cl::MemHandle> parts_;  // sub-buffers, in the order of their creation
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, cl::cl_mem> part_at_;
  Images images_;  // over parts and whole objects
  std::map<const Lease*, Needs> needs_;
  std::uint64_t generation_ = 1;  // incremented when objects are released that arenas may refer to
  const Lease* in_flight_ = nullptr;  // whose commands may still use the memory
  std::function<void()> wait_;        // until they do not
};

/// The memory of a plan's intermediate tensors.
class Lease {
 public:
  /// Allocates what the pool lacks. Throws cl::OpenCLError (out of memory).
  Lease(std::shared_ptr<Pool> pool, const plan::Plan& plan);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Waits until no other arena of the pool is in use; the memory is ours until the lock is
  /// released, and its previous contents are lost.
  std::unique_lock<std::mutex> take_turn() const;

  /// In our turn, before commands that use the memory and may run beyond the turn. Other users call
  /// `wait`, which must not throw, before they use the memory; our own commands run in order.
  void leave_in_flight(std::function<void()> wait);
  /// Waits for these commands; afterwards no caller uses `wait` any more.
  void settle();

  /// From now on, `parting` is called before objects that memory() has may be released, by whoever
  /// has the turn. It must not throw. The caller must not have the turn.
  void on_parting(std::function<void()> parting);

  /// In our turn: allocates the memory. Sets `stale` if memory() changes. Throws
  /// cl::OpenCLError (out of memory); memory() must not be used then before a call that succeeds.
  void refresh(bool& stale);

  /// The kernel argument for a buffer of the plan in the arena, after refresh().
  cl::cl_mem memory(int buffer) const { return of_buffer_[uz(buffer)]; }
  /// The image over it. In our turn; throws cl::OpenCLError.
  cl::cl_mem image(int buffer, DType texel) const {
    return pool_->images_.over(memory(buffer), plan_.buffers[uz(buffer)], texel);
  }
  /// Whole object by its index in the plan.
  cl::cl_mem object(std::size_t index) const { return pool_->slots_[slot_of_[index]].object.get(); }

 private:
  friend class Pool;
  const std::shared_ptr<Pool> pool_;
  const plan::Plan& plan_;
  std::function<void()> parting_;     // under the turn
  std::vector<std::size_t> slot_of_;  // by object of the plan
  Pool::Needs needs_;
  std::vector<cl::cl_mem> of_buffer_;
  std::uint64_t generation_ = 0;  // of the pool that memory() is of; 0: of none
};

}  // namespace clgpu::runtime
