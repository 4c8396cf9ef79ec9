// Which tensors are the inputs and outputs of a graph, and in which order: a fact that a runtime
// does not tell a delegate, read from the model's file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "abi/tflite_abi.hpp"

namespace clgpu::tfl {

struct NodeOperands {
  std::vector<int> inputs, outputs;
};

struct GraphOperands {
  std::vector<int> inputs, outputs;
  std::vector<NodeOperands> nodes;  ///< as in the file
};

/// Finds the file by its constants and the names of its tensors, which lie in it. Memory is read by
/// a system call that fails where none is mapped, so a wrong guess does no harm.
class ModelInMemory {
 public:
  /// `graphs`: of one model. Nothing is found if none of their tensors is a constant of a file or
  /// has a name that lies in one.
  explicit ModelInMemory(const std::vector<const TfLiteContext*>& graphs);

  bool is_found() const { return !files_.empty(); }

  /// Of the graph with this index; none if no file was found, or if `is_it` denies that it is the
  /// graph: memory may hold files of other models, too.
  std::optional<GraphOperands> graph(int index,
                                     const std::function<bool(const GraphOperands&)>& is_it) const;

 private:
  std::vector<const std::uint8_t*> files_;  ///< the likeliest first
};

}  // namespace clgpu::tfl
