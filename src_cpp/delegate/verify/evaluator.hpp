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
};

/// Copies of an interpreter's tensors. In these a tensor whose value is known is a constant, so
/// code that reads constants of a model reads known values, too.
class Evaluator {
 public:
  explicit Evaluator(const TfLiteContext& context);

  const TfLiteContext& context() const { return sandbox_; }

  /// Constants of the model keep their values and shapes.
  void set_shape(int id, const std::vector<int>& dims);
  void set_value(int id, const Known& known);

  /// Computes the outputs of a node, which are known afterwards. Its inputs are known, or its
  /// kernel reads only their shapes. Throws ShadowError.
  std::vector<Known> run(const CpuNode& node);

 private:
  /// Makes a tensor one whose value is unknown.
  void forget(int id);

  Sandbox sandbox_;
  std::vector<std::shared_ptr<const ir::Constant>> held_;  // by tensor: of set_value() and run()
};

}  // namespace clgpu::delegate
