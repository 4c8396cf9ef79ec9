// Transfers of an executor's inputs and outputs between the runtime's tensors and the device.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "runtime/run/allocation.hpp"
#include "runtime/run/pinned.hpp"
#include "runtime/run/recorder.hpp"

namespace clgpu::runtime {

/// The transfer method of an input or output.
struct RoadTaken {
  std::string name;
  bool is_input = true;
  std::int64_t bytes = 0;  ///< on the device
  plan::Road road = plan::Road::kCopy;
  std::string reason;      ///< why not a better one
  bool is_lent = false;    ///< in the application's buffer, instead of `road`
  bool is_pinned = false;  ///< the driver copies from or to memory that is locked in place
};

/// Whether the host converts between float and half.
inline bool converts(const plan::Transfer& t) { return t.bytes != t.host_bytes; }
/// Between the host's floats and the device's halves, of a transfer that converts.
void to_device_form(const plan::Transfer& t, const void* from, void* to);
void to_host_form(const plan::Transfer& t, const void* from, void* to);

/// OpenCL lets the host touch an object in its own memory only while it is mapped, so those with
/// kHostPointer are mapped except during a run. Not thread-safe, except roads().
class Transfers {
 public:
  /// The memory of a buffer; must return object(buffer) if that is not null.
  using Memory = std::function<cl::cl_mem(int buffer)>;
  /// Called before each of its objects is released.
  using Parting = std::function<void(cl::cl_mem object)>;

  /// `plan` and `queue` must outlive it. `stale` is set before object() changes for any buffer:
  /// then the kernel arguments must be set again.
  Transfers(cl::Context& context, const cl::QueueHandle& queue, const plan::Plan& plan,
            Memory memory, Parting parting, bool& stale);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Whether its own objects may replace this buffer, so that arguments change.
  bool has_own(int buffer) const { return find(buffer) != nullptr; }
  /// Whether object() may be another one in the next inference: the buffer is the runtime's memory
  /// or may be lent.
  bool may_replace(int buffer) const;
  /// The object that replaces the plan's; null if there is none at the moment.
  cl::cl_mem object(int buffer) const;

  /// Whether lent buffers have changed since given(), and for which buffers of the plan. Then the
  /// arguments of their kernels must be set again, even if `stale` is not set.
  bool has_changed() const;
  bool has_changed(int buffer) const;
  /// All arguments are set.
  void given();

  /// Whether lend() takes a buffer for input or output `index` (inputs first).
  bool takes(std::size_t index, cl::cl_mem buffer) const;
  /// To be called before attach(), for each inference: buffers of the application that hold inputs
  /// and receive outputs, in the form of the runtime's tensors; null where attach() gets the
  /// tensor's memory. Kernels work on these buffers, unless the plan gives the memory another use:
  /// then the device copies. A buffer is kept until another call, stand_in() or forget(). Throws
  /// cl::OpenCLError.
  void lend(const std::vector<cl::cl_mem>& buffers);

  /// Makes the objects for the runtime's tensors, unless they are the same as before. Throws
  /// cl::OpenCLError.
  void attach(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);
  /// Replaces the runtime's memory, which we must not use between runs, by our own. Throws
  /// cl::OpenCLError.
  void stand_in();
  /// Releases the runtime's memory, and all that up() and down() have mapped, even if they failed
  /// halfway. The queue must not use it any more.
  void forget() noexcept;

  /// Between attach() and the launches.
  void up(const std::vector<const void*>& inputs, Recording* recording = nullptr);
  /// After the launches; returns when they are done and the outputs are written. `waits`: false if
  /// all inputs and outputs are lent and the caller waits itself.
  void down(const std::vector<void*>& outputs, Recording* recording = nullptr, bool waits = true);

  /// Inputs first. Before the first run, the methods of the plan. Thread-safe.
  std::vector<RoadTaken> roads() const;

 private:
  struct AlignedDelete {
    void operator()(void* memory) const;
  };
  struct Way {
    const plan::Transfer* planned;
    bool is_input;
    bool may_bind;      // whether kernels may work on a lent buffer
    plan::Road road{};  // of the moment; it and `reason` change under roads_mutex_
    std::string reason{};
    std::string failure{};  // what a driver answered; the road that failed is not tried again
    const void* pointer = nullptr;  // the runtime's memory that `road` is for
    bool is_mapped = false;         // `wrapped` is
    cl::MemHandle wrapped{};        // the runtime's memory
    cl::MemHandle pinned{};         // the same, only to lock it; changes under roads_mutex_
    // What `pointer` lies in, if the application has it of us; changes under roads_mutex_.
    std::shared_ptr<const Allocation> allocation{};
    cl::Memory fallback{};  // of a buffer that the plan gives no memory
    // Both empty but between stand_in() and attach(); `stand_in` goes first.
    std::unique_ptr<void, AlignedDelete> block{};
    cl::MemHandle stand_in{};
    std::vector<std::uint16_t> staged{};  // halves, if the driver copies them
    void* landing = nullptr;              // in block_: where the driver copies it to, if not null
    void* mapped = nullptr;               // of the road kMapped, during up() and down()
    cl::MemHandle lent{};                 // the application's buffer; changes under roads_mutex_
    bool is_bound = false;                // kernels work on `lent`
    bool has_changed = false;             // what they work on, by lend() or unlend()
  };

  const Way* find(int buffer) const;
  bool binds(const Way& way, cl::cl_mem buffer) const;
  void unlend(Way& way) noexcept;
  void copy(const Way& way, cl::cl_mem from, cl::cl_mem to);
  void attach(Way& way, const void* pointer);
  bool wrap(Way& way, const void* pointer);
  void attach_copied(Way& way, const void* pointer);
  void pin(Way& way, const void* pointer);
  void set_pinned(Way& way, cl::MemHandle object) noexcept;
  void set_allocation(Way& way, std::shared_ptr<const Allocation> allocation) noexcept;
  void make_stand_in(Way& way, const plan::Buffer& buffer);
  void release(Way& way) noexcept;
  template <class Object>
  void drop(Object& object) noexcept;
  void set_lent(Way& way, cl::MemHandle buffer) noexcept;
  void take(Way& way, plan::Road road, const std::string& reason);
  void* map(Way& way, cl::cl_bitfield flags, bool blocking);
  void unmap(const Way& way, const void* pointer);
  void unmap_own(Way& way);
  void write(std::size_t index, const void* data, Recording* recording);
  void read(std::size_t index, void* data, bool blocking, Recording* recording);
  void make_block();
  void* source_of(Way& way);

  cl::Context& context_;
  const cl::QueueHandle& queue_;
  const plan::Plan& plan_;
  Memory memory_;
  Parting parting_;
  bool& stale_;
  std::vector<Way> ways_;  // inputs, then outputs
  Pinned block_;           // of outputs with few bytes
  mutable std::mutex roads_mutex_;
};

}  // namespace clgpu::runtime
