// Values that a partition keeps from one inference to the next.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/dtype.hpp"
#include "base/index.hpp"
#include "delegate/verify/cpu_kernel.hpp"
#include "delegate/verify/sandbox.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

/// Where the runtime has a state: in a variable tensor, or in a resource.
struct StateSource {
  std::string name;
  int tensor = -1;  ///< the variable tensor; -1: it is a resource
  // Of a resource: nodes that name it, read it and assign it. The last two may be absent.
  std::optional<CpuNode> handle, read, assign;
};

/// The runtime has the truth: fetch() takes the values from it before an inference, deliver()
/// returns the new ones. Thus a value that the runtime resets, or that another graph of the
/// interpreter or a kernel of the CPU changes, is seen, and nothing is lost if a device fails.
class States {
 public:
  /// `once`: nodes that set resources in the first inference only. The index in `sources` is
  /// ir::Tensor::state.
  States(const TfLiteContext& context, std::vector<StateSource> sources, std::vector<CpuNode> once);
  ~States();
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  /// Takes the values before an inference, which must fit the inputs of `graph`. Throws ShadowError
  /// if the runtime cannot provide them.
  void fetch(const TfLiteContext& context, const ir::Graph& graph);

  /// After fetch(): the value before the inference.
  const void* before(int state) const { return values_[uz(state)].before.data(); }
  /// Memory for the value after it, of `bytes` bytes, valid until the next call for this state.
  void* after(int state, std::size_t bytes);

  /// Gives the runtime the values that after() has memory for since fetch(). Throws ShadowError if
  /// it refuses.
  void deliver(TfLiteContext& context, const ir::Graph& graph);

  /// Gives the runtime the values of the last fetch(), as if there had been no inference since.
  void take_back(TfLiteContext& context, const ir::Graph& graph);

 private:
  struct Value {
    std::vector<std::uint8_t> before, after;
    bool is_new = false;
  };
  struct Kernels {
    std::unique_ptr<CpuKernel> handle, read, assign;
  };

  void make_kernels(const TfLiteContext& context);
  void give(TfLiteContext& context, const ir::Tensor& tensor, std::vector<std::uint8_t>& bytes);

  std::vector<StateSource> sources_;
  std::vector<CpuNode> once_nodes_;
  std::vector<Value> values_;
  std::unique_ptr<Sandbox> sandbox_;  // of the resources' kernels; null while there are none
  std::vector<Kernels> kernels_;      // by state
  std::vector<std::unique_ptr<CpuKernel>> once_;
};

}  // namespace clgpu::delegate
