// The TfLiteContext for CPU kernels that run outside of the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/index.hpp"
#include "delegate/verify/inner_tensors.hpp"

namespace clgpu::delegate {

constexpr TfLiteAllocationType kTfLitePersistentRo = 5;  ///< computed once

/// A copy of an interpreter's context and of all its tensors with the same indices, in separate
/// memory; constants stay those of the model. Kernels pass only the pointer to the context back, so
/// the context is the base class, and a Sandbox must not move.
class Sandbox : public TfLiteContext {
 public:
  /// `inner`: further tensors, whose ids are as there; null: there are none.
  explicit Sandbox(const TfLiteContext& context, const InnerTensors* inner = nullptr);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  TfLiteTensor& at(int id) { return copies_[uz(id)]; }

  /// Adds a copy of a tensor; the id is the next one.
  void append(const TfLiteTensor& tensor);

  /// Allocates memory for a tensor, unless it has memory or its kernel allocates it.
  void provide(int id);
  /// Frees memory that provide() or a kernel has allocated.
  void release(int id);
  /// Whether provide() has allocated its memory.
  bool owns(int id) const { return owned_[uz(id)]; }

  /// Removes the tensors from this index on, which kernels have added.
  void truncate(std::size_t size);

  /// To be called before each kernel, which may add tensors while it has pointers to others.
  void make_room();

  std::string error;                  ///< what kernels have reported
  std::size_t largest = PTRDIFF_MAX;  ///< bytes of a tensor; kernels get an error beyond

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
  void adopt(TfLiteTensor& copy);
  void publish();

  std::vector<TfLiteTensor> copies_;
  std::vector<bool> owned_;
};

}  // namespace clgpu::delegate
