// The TfLiteContext that CPU kernels see when they run beside the interpreter.
#pragma once

#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/index.hpp"

namespace clgpu::delegate {

constexpr TfLiteAllocationType kTfLitePersistentRo = 5;  ///< computed once

/// A copy of an interpreter's context, and of all its tensors under the same numbers, in memory of
/// its own; constants stay the model's. Kernels hand back the pointer to the context alone, so it
/// is the base, and no Sandbox may move.
class Sandbox : public TfLiteContext {
 public:
  explicit Sandbox(const TfLiteContext& context);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  TfLiteTensor& at(int id) { return copies_[uz(id)]; }

  /// Gives a tensor memory, unless it has some or its kernel provides.
  void provide(int id);
  /// Frees what provide() or a kernel has allocated.
  void release(int id);
  /// Whether provide() has allocated its memory.
  bool owns(int id) const { return owned_[uz(id)]; }

  /// Before each call of a kernel, which may add tensors while it holds pointers to others.
  void make_room();

  std::string error;  ///< what kernels have reported

 private:
  static Sandbox& of(TfLiteContext* context) { return *static_cast<Sandbox*>(context); }
  static TfLiteStatus resize_tensor(TfLiteContext* context, TfLiteTensor* tensor,
                                    TfLiteIntArray* dims);
  static TfLiteStatus resize_explicit(TfLiteContext* context, TfLiteTensor* tensor, int rank,
                                      const int* shape);
  static TfLiteStatus add_tensors(TfLiteContext* context, int count, int* first);
  static void report_error(TfLiteContext* context, const char* format, ...);
  TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims);
  TfLiteStatus add(int count, int* first);
  void publish();

  std::vector<TfLiteTensor> copies_;
  std::vector<bool> owned_;
};

}  // namespace clgpu::delegate
