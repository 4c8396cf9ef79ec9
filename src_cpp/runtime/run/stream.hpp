// Several inferences of one executor in flight: while one computes, the inputs of the next are
// uploaded and the outputs of the previous one are downloaded.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/run/executor.hpp"
#include "runtime/run/host_memory.hpp"

namespace clgpu::runtime {

class Stream;

/// One inference of a Stream. Keeps the stream alive; its destructor waits. Not thread-safe.
class Flight {
 public:
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Waits until the outputs are on the host. Throws cl::OpenCLError.
  void wait();

  /// After wait(): the block that holds an output in the host's form, which the caller keeps. Null
  /// if the output must be converted or is in the memory passed to start(), or if too many blocks
  /// are in use.
  std::shared_ptr<HostBlock> block(std::size_t output) const;
  /// After wait(): writes an output to `to`, unless it is there already.
  void read(std::size_t output, void* to) const;
  /// Of an output.
  std::int64_t host_bytes(std::size_t output) const;

 private:
  friend class Stream;
  struct Result {
    std::shared_ptr<HostBlock> block;
    void* in_place = nullptr;  // the caller's memory
  };
  explicit Flight(std::shared_ptr<Stream> stream);
  void land();

  const std::shared_ptr<Stream> stream_;
  std::vector<std::shared_ptr<HostBlock>> inputs_;
  std::vector<Result> outputs_;
  std::shared_ptr<const cl::EventHandle> done_;  // null when there is nothing to wait for
  bool under_way_ = true;
};

/// Separate queues copy inputs and outputs between pinned memory and buffers of the device. Each
/// inference in flight (a lane) has a set of these buffers, because other tensors may reuse the
/// memory of the plan's own. If device and host share memory, there is nothing to overlap: the
/// executor runs within start(), on blocks that it can use without a copy. If there is little to
/// copy, more queues cost more than they save, and lanes have no memory. Thread-safe.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// Runs zeros through each lane, so that late allocations of a driver fail here. Throws
  /// cl::OpenCLError. Create it with std::make_shared.
  static std::shared_ptr<Stream> make(std::shared_ptr<cl::Context> context,
                                      std::shared_ptr<Executor> executor, int lanes);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Whether device and host share memory as far as this plan is concerned.
  static bool is_direct(const plan::Plan& plan);
  /// Device memory of one lane; 0 if all transfers use the executor's queue.
  static std::int64_t lane_bytes(const plan::Plan& plan);

  const plan::Plan& plan() const { return executor_->plan(); }
  bool is_direct() const { return lanes_.empty(); }
  int lanes() const { return static_cast<int>(lanes_.size()); }

  /// Memory that start() takes without a copy.
  std::shared_ptr<HostBlock> block(std::size_t bytes) { return host_->take(bytes); }

  bool has(const void* data, std::size_t bytes) const {
    return host_->find(data, bytes) != nullptr;
  }

  /// Begins an inference; inferences run in the order of calls. `inputs[i]` holds the host's bytes
  /// of plan().uploads[i]; unless it is a block, it may change once this returns. `outputs[i]`,
  /// which may be null, is the destination of plan().downloads[i]. Waits while all lanes are
  /// taken. `now`: the caller will wait at once, so a single inference takes the shorter way,
  /// without a lane. Throws cl::OpenCLError.
  std::shared_ptr<Flight> start(const std::vector<const void*>& inputs,
                                const std::vector<void*>& outputs, bool now = false);

 private:
  struct Lane {
    std::vector<cl::Memory> inputs, outputs;
    std::shared_ptr<const cl::EventHandle> done;  // of the inference that last took it
  };

  Stream(std::shared_ptr<cl::Context> context, std::shared_ptr<Executor> executor, int lanes);
  void stage(Flight& flight, const std::vector<const void*>& inputs,
             const std::vector<void*>& outputs);
  void run(Flight& flight, const std::vector<const void*>& inputs);
  void launch(Flight& flight);
  void fly(Flight& flight, Lane& lane);
  void hop(Flight& flight, Lane& lane);
  void wait(const std::shared_ptr<const cl::EventHandle>& event) const;

  friend class Flight;
  const std::shared_ptr<cl::Context> context_;
  const std::shared_ptr<Executor> executor_;
  const std::shared_ptr<HostPool> host_;
  const cl::QueueHandle up_, down_;
  std::mutex order_;
  std::vector<Lane> lanes_;      // none if device and host share memory
  bool may_do_without_ = false;  // the executor moves the bytes as we do
  std::size_t next_ = 0;
  std::atomic<int> under_way_{0};  // flights
  std::size_t most_lent_ = 0;      // bytes of blocks in use, above which none is given away
};

}  // namespace clgpu::runtime
