// Computes a partition with the runtime's own CPU kernels, outside of the interpreter.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/verify/cpu_kernel.hpp"

namespace clgpu::delegate {

/// Kernels get separate node instances, and a separate context with copies of all tensors, so their
/// actions (resizes, temporaries, allocations) do not affect the interpreter. Valid for the shapes
/// of the inputs at construction.
class Shadow {
 public:
  /// `dequantize`: replaces 8-bit weights of float operations by their float values, as our kernels
  /// read them, because the stock kernels would quantise the activations.
  /// `inner`: see Sandbox.
  Shadow(const TfLiteContext& context, const InnerTensors* inner, std::vector<CpuNode> nodes,
         bool dequantize);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Prepares the kernels as far as it depends on shapes only. Throws ShadowError if one does not
  /// support the shapes of its inputs.
  void prepare();

  /// A tensor's shape after prepare() or run(); none if it depends on values that are not known
  /// yet.
  std::optional<std::vector<int>> shape(int id) const;

  /// One inference with the values of the interpreter's tensors. Afterwards tensor() returns the
  /// values of `wanted`, or, with `keep`, of all tensors. Throws ShadowError.
  void run(const TfLiteContext& context, const std::set<int>& wanted, bool keep);

  /// By the interpreter's index; the data are null if they were not kept.
  const TfLiteTensor& tensor(int id) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The CPU's side of a partition, for verification, and for shapes that our kernels do not support.
struct Standby {
  std::vector<CpuNode> nodes;                 ///< those of the model that compute the partition
  std::shared_ptr<const InnerTensors> inner;  ///< tensors of theirs; may be null
  std::unique_ptr<Shadow> shadow;  ///< for the current shapes; null while it is not needed
  /// Why the CPU computes the partition with the current shapes; empty if it does not.
  std::string reason;
};

}  // namespace clgpu::delegate
