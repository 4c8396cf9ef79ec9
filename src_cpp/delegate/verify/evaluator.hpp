// Values that are known while planning, computed on the host by the runtime's own CPU kernels.
#pragma once

#include <memory>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/verify/cpu_kernel.hpp"
#include "delegate/verify/sandbox.hpp"
#include "ir/tensor.hpp"

namespace clgpu::delegate {

/// A value and its shape.
struct Known {
  std::shared_ptr<const ir::Constant> constant;
  std::vector<int> dims;
  /// It may change with every inference: only partitions that wait for it may plan with it.
  bool is_awaited = false;
};

/// A copy of a tensor's value. Throws Error if its type has no kernels.
Known known_value(const TfLiteTensor& tensor);

/// Copies of an interpreter's tensors. In these a tensor whose value is known is a constant, so
/// code that reads constants of a model reads known values, too.
class Evaluator {
 public:
  /// `inner`: see Sandbox.
  explicit Evaluator(const TfLiteContext& context, const InnerTensors* inner = nullptr);

  const TfLiteContext& context() const { return sandbox_; }

  /// Adds a tensor; its id is the next one.
  void append(const TfLiteTensor& tensor);

  /// Constants of the model keep their values and shapes.
  void set_shape(int id, const std::vector<int>& dims);
  void set_value(int id, const Known& known);

  /// Computes the outputs of a node, which are known afterwards. Throws ShadowError, also if an
  /// input is unknown whose values the operation reads.
  std::vector<Known> run(const CpuNode& node);

 private:
  /// Makes a tensor one whose value is unknown.
  void forget(int id);
  void check_inputs(const CpuNode& node);
  /// The outputs of a kernel that has run.
  std::vector<Known> take_results(const CpuKernel& kernel);

  Sandbox sandbox_;
  std::size_t tensors_;                                    // of the model
  std::vector<TfLiteType> types_;                          // of these
  std::vector<std::shared_ptr<const ir::Constant>> held_;  // by tensor: of set_value() and run()
  std::size_t held_bytes_ = 0;
};

}  // namespace clgpu::delegate
