// A partition computed by the runtime's own CPU kernels, beside the interpreter.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/error.hpp"
#include "ops/family.hpp"

namespace clgpu::delegate {

/// What it takes to run a node again: read in Prepare, where alone the runtime shows it. The data
/// pointed to are the interpreter's, which outlives its kernels.
struct CpuNode {
  CpuNode(int node, std::string operation, const TfLiteNode& tflite, const TfLiteRegistration& by);

  int index;  ///< of the node in the model
  std::string op;
  const ops::Family* family;  ///< of a builtin operation; else null
  TfLiteRegistration registration{};
  std::vector<int> inputs, outputs, intermediates;
  void* builtin_data;
  const void* custom_data;
  int custom_bytes;
};

/// The CPU kernels cannot compute a partition; the message says why.
class ShadowError : public Error {
 public:
  using Error::Error;
};

/// Kernels get node instances and a context of our own with copies of all tensors, so nothing that
/// they do (resize, add temporaries, allocate) touches the interpreter. For the shapes that the
/// inputs have when it is made.
class Shadow {
 public:
  /// `dequantize`: 8-bit weights of float operations are replaced by the floats that they stand
  /// for, as our kernels read them, for the stock kernels would quantise the activations.
  Shadow(const TfLiteContext& context, std::vector<CpuNode> nodes, bool dequantize);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Prepares the kernels as far as shapes alone decide. Throws ShadowError where one does not take
  /// the shapes of its inputs.
  void prepare();

  /// What prepare() or run() has made of a tensor's shape; none where values decide and have not
  /// been seen yet.
  std::optional<std::vector<int>> shape(int id) const;

  /// One inference on what the interpreter's tensors hold. Afterwards tensor() has the values of
  /// `wanted`, or, with `keep`, of all tensors. Throws ShadowError.
  void run(const TfLiteContext& context, const std::set<int>& wanted, bool keep);

  /// By the interpreter's index; its data are null where they are not kept.
  const TfLiteTensor& tensor(int id) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The CPU's side of a partition, for who verifies it and for shapes that no kernel of ours takes.
struct Standby {
  std::vector<CpuNode> nodes;      ///< those of the model that compute the partition
  std::unique_ptr<Shadow> shadow;  ///< for the shapes of the moment; null while nobody needs it
  /// Why the CPU computes the partition with the shapes of the moment; empty: it does not.
  std::string reason;
};

}  // namespace clgpu::delegate
