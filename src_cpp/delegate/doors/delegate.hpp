// The TfLiteDelegate that runtimes use, and its lifetime.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/stages.hpp"
#include "delegate/building/state.hpp"

namespace clgpu::delegate {

/// Runtimes do not promise to destroy interpreters before delegates: a live numpy view of a tensor
/// keeps an interpreter, and so our kernels and the runtime's pointer to `tflite`, beyond the life
/// of the Python objects. Hence a struct that was passed to a runtime is never freed (some hundred
/// bytes); its last user releases `state`, which it owns.
class Delegate {
 public:
  /// With `gl`, it shares objects with that OpenGL context. Throws OptionError and DeviceError.
  explicit Delegate(const std::map<std::string, std::string>& options,
                    const cl::GlContext* gl = nullptr);

  /// A delegate that refuses each graph with this reason.
  struct Problem {
    std::string sentence;
  };
  explicit Delegate(Problem problem);

  TfLiteDelegate* tflite() { return &tflite_; }
  std::shared_ptr<State> state() const { return state_; }

  /// Ends the owner's use; frees the object unless it was passed to a runtime. Any address may be
  /// given: returns false and does nothing if it is not a delegate of this library, or was released
  /// before. Does nothing in a process that was forked after OpenCL was used.
  static bool release(const TfLiteDelegate* tflite);

  /// Null if release() would return false. Throws DeviceError in a process that was forked after
  /// OpenCL was used.
  static std::shared_ptr<State> state_of(const TfLiteDelegate* tflite);

  static Delegate& of(TfLiteDelegate* tflite) { return *static_cast<Delegate*>(tflite->data_); }

  /// Called by the runtime for each subgraph: claims nodes.
  void prepare(TfLiteContext& context);

  /// The partition that prepare() built for these nodes; null if there is none. Allocates nothing,
  /// because a failure cannot be reported to the runtime here.
  std::unique_ptr<Stages> take(TfLiteContext& context, const TfLiteIntArray& nodes);

 private:
  void enlist();
  void prepare(TfLiteContext& context, const std::shared_ptr<State>& state);
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  TfLiteDelegate tflite_{};
  std::shared_ptr<State> state_;
  const std::string problem_;
  std::mutex mutex_;
  bool seen_ = false;
  std::map<TfLiteContext*, std::vector<std::unique_ptr<Stages>>> pending_;
  /// Graphs that are part of claimed nodes, so that the runtime does not run them.
  std::set<const TfLiteContext*> inlined_;
};

/// Delegate::release for C callers: accepts null, and logs other pointers that are not delegates.
void destroy(const TfLiteDelegate* tflite) noexcept;

/// Registration of the kernel that runs a partition.
TfLiteRegistration kernel_registration();

}  // namespace clgpu::delegate
