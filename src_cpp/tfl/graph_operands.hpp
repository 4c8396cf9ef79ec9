// Which tensors are the inputs and outputs of a graph, and in which order: a fact that a runtime
// does not tell a delegate, read from the model's file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Finds the file by the names of tensors, which lie in it. Files are written from the end: what
/// describes a graph lies before the names of the tensors of the first graphs.
class ModelInMemory {
 public:
  /// `graphs`: of one model. Nothing is found if none of their tensors is a constant of a file.
  explicit ModelInMemory(const std::vector<const TfLiteContext*>& graphs);

  bool is_found() const { return data_ != nullptr; }

  /// Of the graph with this index; none if the file was not found, or if the part of it that
  /// describes the graph lies behind these names.
  std::optional<GraphOperands> graph(int index) const;

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;  ///< bytes up to the end of the last name: the file is longer
};

}  // namespace clgpu::tfl
