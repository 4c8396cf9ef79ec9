// Memory of the application that takes the place of tensors' memory.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl/imported.hpp"
#include "delegate/lending.hpp"
#include "runtime/run/pixels.hpp"
#include "store/store.hpp"

namespace clgpu::delegate {

/// The lender of interpreters whose application binds memory, for the main graph of one
/// interpreter. Thread-safe.
class Bindings : public Lender {
 public:
  /// Of images: element = scale * channel + offset.
  struct Scaling {
    float scale = 1, offset = 0;
  };

  Bindings(std::shared_ptr<cl::Context> context, std::shared_ptr<store::Store> store)
      : context_(std::move(context)), store_(std::move(store)) {}

  /// From the next inference on, `memory` holds the tensor's value. Throws Error if it does not fit
  /// the tensor; then what was bound before stays.
  void bind(int tensor, std::shared_ptr<const cl::Imported> memory, const Scaling& scaling);
  /// The tensor has the runtime's memory again. Throws Error if it cannot be bound.
  void unbind(int tensor);

  std::shared_ptr<void> enter(TfLiteContext& context, bool is_main) override;
  bool fixes_sizes() const override { return false; }
  void announce(TfLiteContext& context, int tensor, std::size_t bytes, bool is_input) override;
  std::unique_ptr<Loan> borrow(TfLiteContext& context, const std::shared_ptr<cl::Context>& device,
                               const std::vector<int>& inputs,
                               const std::vector<int>& outputs) override;

  struct Tensor;
  struct Binding;

 private:
  struct Graph;
  /// The graph of the only interpreter. Throws Error if there is none, or another one.
  std::shared_ptr<Graph> only_graph();
  static Tensor& find(Graph& graph, int tensor);
  std::shared_ptr<Binding> make(Graph& graph, const Tensor& tensor,
                                std::shared_ptr<const cl::Imported> memory, const Scaling& scaling);

  const std::shared_ptr<cl::Context> context_;
  const std::shared_ptr<store::Store> store_;
  std::atomic<bool> is_used_{false};  // something has been bound
  std::mutex mutex_;
  std::map<const TfLiteContext*, std::weak_ptr<Graph>> graphs_;
  cl::QueueHandle queue_;  // of conversions and of what OpenGL shares; made when first needed
};

}  // namespace clgpu::delegate
