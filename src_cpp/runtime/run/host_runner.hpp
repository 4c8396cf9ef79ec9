// Runs the graphs of a node (ir::Node::graphs) in the middle of an inference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cl/context.hpp"
#include "ir/node.hpp"
#include "runtime/run/carried.hpp"
#include "runtime/run/executor.hpp"
#include "runtime/run/graph_runner.hpp"

namespace clgpu::runtime {

/// The states of a loop, or the inputs and results of a branch, stay on the device. The host reads
/// one bool for each round, or for each branch.
class HostRunner : public GraphRunner {
 public:
  /// `graphs`: in the order of ir::Node::graphs, with the tensors of `carried`.
  HostRunner(std::shared_ptr<cl::Context> context, ir::Runs runs,
             std::shared_ptr<CarriedSet> carried, std::vector<std::shared_ptr<Executor>> graphs);

  void run(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& inputs,
           const std::vector<cl::cl_mem>& outputs) override;

 private:
  void copy(const cl::QueueHandle& queue, cl::cl_mem from, cl::cl_mem to, int number);
  void take(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& inputs, std::size_t first);
  void give(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& outputs, int first);
  void finish(const cl::QueueHandle& queue);
  bool more(Executor& graph);

  const std::shared_ptr<cl::Context> context_;
  const ir::Runs runs_;
  const std::shared_ptr<CarriedSet> carried_;
  std::uint8_t flag_ = 0;  // the graphs may write it in place, so it outlives them
  const std::vector<std::shared_ptr<Executor>> graphs_;
};

}  // namespace clgpu::runtime
