// Tensors of the graphs that loops and branches run, as tensors of the graph around them.
#pragma once

#include <cstdlib>
#include <utility>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/index.hpp"
#include "delegate/int_array.hpp"

namespace clgpu::delegate {

/// Their ids follow those that the tensors of the main graph had when it was read; the runtime may
/// add tensors to that graph later, which have the same ids and no meaning here.
class InnerTensors {
 public:
  explicit InnerTensors(std::size_t first) : first_(first) {}
  ~InnerTensors() {
    for (TfLiteTensor& tensor : list_) std::free(tensor.dims);
  }
  InnerTensors(const InnerTensors&) = delete;
  InnerTensors& operator=(const InnerTensors&) = delete;

  /// The id of a new tensor that is like this one.
  int add(const TfLiteTensor& like) {
    list_.push_back(like);
    list_.back().dims = nullptr;  // not its owner, if the copy fails
    list_.back().dims = copy_of(like.dims);
    list_.back().dims_signature = nullptr;  // an open size in a loop is no input of the model
    return static_cast<int>(first_ + list_.size()) - 1;
  }

  std::size_t first() const { return first_; }
  const std::vector<TfLiteTensor>& list() const { return list_; }

 private:
  std::size_t first_;
  std::vector<TfLiteTensor> list_;
};

}  // namespace clgpu::delegate
