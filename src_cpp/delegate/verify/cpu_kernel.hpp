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

struct CpuGraphs;

/// Newer runtimes' TfLiteKernelInitFailed().
inline void* const kInitFailed = reinterpret_cast<void*>(-1);

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
  std::shared_ptr<const CpuGraphs> graphs{};  ///< of a loop or branch that the sandbox runs
};

/// A graph that a loop or a branch runs, with tensors of the graph around it.
struct CpuGraph {
  std::vector<CpuNode> nodes;
  std::vector<int> results;
};

/// What a loop or a branch runs if an inference computes its condition.
struct CpuGraphs {
  bool is_loop = false;
  /// Of a loop: the condition, and a round with the condition of the next one as its last result.
  /// Of a branch: the one for true and the one for false.
  CpuGraph first, second;
  /// Tensors that have the node's inputs, those of a branch behind its condition, while it runs;
  /// those that are constants have their values already.
  std::vector<int> values;
};

/// A node with the index of another one that runs these graphs.
CpuNode graphs_node(const CpuNode& like, std::shared_ptr<const CpuGraphs> graphs,
                    std::vector<int> inputs, std::vector<int> outputs);

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
