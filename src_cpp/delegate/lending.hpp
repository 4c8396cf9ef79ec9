// Memory of tensors that the runtime keeps apart from TfLiteTensor::data.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "cl/context.hpp"

namespace clgpu::delegate {

/// Buffers of tensors during one inference of a partition; the destructor returns them.
class Loan {
 public:
  Loan() = default;
  virtual ~Loan() = default;
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// The OpenCL buffer of a tensor; null if it has none, or is mapped.
  virtual cl::cl_mem buffer(int tensor) const = 0;
  /// Makes host memory the tensor's data until the loan ends; does nothing for tensors that are not
  /// lent. Throws Error.
  virtual void map(int tensor) = 0;
  /// Events of this context that must be done before commands use the buffers that are not mapped.
  /// Waits for those that the context does not know. Throws Error.
  virtual std::vector<cl::cl_event> ready() = 0;
  /// Whether the runtime can wait for the outputs later.
  virtual bool may_fly() const = 0;
  /// The outputs are written when `done` is. Waits if the runtime does not take the event. Throws
  /// Error.
  virtual void deliver(cl::EventHandle done) = 0;
  /// Whether the executor may hold references to the buffers after the loan.
  virtual bool may_be_kept() const = 0;
  /// To be called when the inference has succeeded and the executor holds what it may: the lender
  /// gets the outputs. Throws Error.
  virtual void end() {}
};

/// A runtime with such memory. Thread-safe.
class Lender {
 public:
  Lender() = default;
  virtual ~Lender() = default;
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  /// A graph that is about to get partitions. Each of them keeps what this returns; null if the
  /// graph borrows nothing.
  virtual std::shared_ptr<void> enter(TfLiteContext& context, bool is_main) = 0;
  /// Whether what is announced first decides on the sizes of buffers.
  virtual bool fixes_sizes() const = 0;
  /// Tells the runtime, while a partition prepares, that it may lend `bytes` bytes for a tensor,
  /// an input or output of the partition.
  virtual void announce(TfLiteContext& context, int tensor, std::size_t bytes, bool is_input) = 0;
  /// Null if nothing is lent. Throws Error.
  virtual std::unique_ptr<Loan> borrow(TfLiteContext& context,
                                       const std::shared_ptr<cl::Context>& device,
                                       const std::vector<int>& inputs,
                                       const std::vector<int>& outputs) = 0;
};

}  // namespace clgpu::delegate
