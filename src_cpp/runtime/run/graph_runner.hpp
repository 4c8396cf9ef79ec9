// What an executor calls where a node runs graphs (ir::Node::graphs).
#pragma once

#include <vector>

#include "cl/context.hpp"

namespace clgpu::runtime {

class GraphRunner {
 public:
  GraphRunner() = default;
  virtual ~GraphRunner() = default;
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  /// `inputs` and `outputs` are those of the node, which commands of `queue` write and read.
  /// Returns when the outputs are written. Throws cl::OpenCLError.
  virtual void run(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& inputs,
                   const std::vector<cl::cl_mem>& outputs) = 0;
};

}  // namespace clgpu::runtime
