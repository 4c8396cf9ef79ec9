// The delegate object of the Python module; its methods are distributed over several files.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cl/fork.hpp"
#include "delegate/doors/delegate.hpp"
#include "python/bind.hpp"

namespace clgpu::python {

/// Owns one delegate for Python; Delegate says what outlives it. The Python object is created empty
/// and gets its delegate afterwards, for the same reason as in `hold`. In a process that was forked
/// after OpenCL was used, reading the state throws DeviceError.
class NativeDelegate {
 public:
  NativeDelegate() = default;
  ~NativeDelegate() {
    if (delegate_ != nullptr) delegate::Delegate::release(delegate_->tflite());
  }
  NativeDelegate(NativeDelegate&& other) noexcept
      : delegate_(std::exchange(other.delegate_, nullptr)),
        tflite_(other.tflite_),
        state_(std::move(other.state_)) {}
  NativeDelegate(const NativeDelegate&) = delete;
  NativeDelegate& operator=(const NativeDelegate&) = delete;

  /// Must be called once, before all other methods. Throws OptionError and DeviceError.
  void open(const std::map<std::string, std::string>& options) {
    delegate_ = new delegate::Delegate(options);
    tflite_ = delegate_->tflite();
    state_ = delegate_->state();
  }

  /// Instead of open(): a delegate with another owner. False if it no longer exists.
  bool borrow(const TfLiteDelegate* tflite) {
    state_ = delegate::Delegate::state_of(tflite);
    tflite_ = tflite;
    return state_ != nullptr;
  }

  std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(tflite_); }
  const delegate::State& state() const { return *shared_state(); }
  delegate::State& state() { return *shared_state(); }
  const std::shared_ptr<delegate::State>& shared_state() const {
    cl::refuse_forked_child();
    return state_;
  }

 private:
  delegate::Delegate* delegate_ = nullptr;  ///< the delegate that it owns, if any
  const TfLiteDelegate* tflite_ = nullptr;
  std::shared_ptr<delegate::State> state_;
};

// bind_placement.cpp
/// The decision for this thread's next interpreter with placement="measured": a verdict or None,
/// and the reason.
void set_verdict(NativeDelegate& self, const pybind11::object& verdict, const std::string& note);
/// The estimate of the cost model for each existing partition.
pybind11::list estimates(const NativeDelegate& self, int threads);
pybind11::list loads(const NativeDelegate& self);
/// File, entry and build options of the programs on the device.
pybind11::list programs(const NativeDelegate& self);

// bind_carried.cpp
/// Adds its methods for carried tensors.
void bind_carried(pybind11::class_<NativeDelegate>& native);

// bind_ir.cpp
/// The text of each partition's graph "before" or "after" the passes; empty for a partition that no
/// longer exists, or that the CPU computes.
pybind11::list ir_texts(const NativeDelegate& self, const std::string& when, bool complete);

}  // namespace clgpu::python
