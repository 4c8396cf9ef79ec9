// One of the runtime's own CPU kernels, run outside of the interpreter.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/error.hpp"
#include "delegate/verify/sandbox.hpp"
#include "ops/family.hpp"

namespace clgpu::delegate {

/// The data to run a node again, read in Prepare, because only there the runtime provides them.
/// They point to data of the interpreter, which outlives its kernels.
struct CpuNode {
  CpuNode(int node, std::string operation, const TfLiteNode& tflite, const TfLiteRegistration& by);

  int index;  ///< of the node in the model
  std::string op;
  const ops::Family* family;  ///< of a builtin operation; otherwise null
  TfLiteRegistration registration{};
  std::vector<int> inputs, outputs, intermediates;
  void* builtin_data;
  const void* custom_data;
  int custom_bytes;
};

/// A node with the index of another one that copies a tensor.
CpuNode copy_node(const CpuNode& like, int from, int to);

/// The CPU kernels cannot compute something; the message says why.
class ShadowError : public Error {
 public:
  using Error::Error;
};

/// A node of the runtime's type for a CpuNode, with lists of tensors of its own.
class NodeInstance {
 public:
  explicit NodeInstance(const CpuNode& recipe);
  ~NodeInstance();
  NodeInstance(const NodeInstance&) = delete;
  NodeInstance& operator=(const NodeInstance&) = delete;

  TfLiteNode node{};
};

/// A kernel and its state in a sandbox, which it does not outlive.
class CpuKernel {
 public:
  CpuKernel(Sandbox& sandbox, CpuNode recipe) : sandbox_(sandbox), recipe_(std::move(recipe)) {}
  ~CpuKernel();
  CpuKernel(const CpuKernel&) = delete;
  CpuKernel& operator=(const CpuKernel&) = delete;

  const CpuNode& recipe() const { return recipe_; }
  /// Adds an input; to be called before init().
  void add_input(int slot, int id);
  bool is_prepared() const { return prepared_; }
  /// False if the kernel gives its outputs shapes and memory only when it runs.
  bool knows_shapes() const { return knows_shapes_; }
  std::vector<int> temporaries() const;

  // In this order; each throws ShadowError if the kernel refuses.
  void init();
  void prepare();
  /// Allocates memory for the outputs and for temporary tensors first.
  void invoke();

  /// Throws ShadowError: "the CPU kernel of node 3 (ADD) `what`: " and what the kernel has
  /// reported.
  [[noreturn]] void fail(const char* what) const;

 private:
  Sandbox& sandbox_;
  CpuNode recipe_;
  std::unique_ptr<NodeInstance> instance_;
  bool prepared_ = false, knows_shapes_ = true;
};

}  // namespace clgpu::delegate
