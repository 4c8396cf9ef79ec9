// Tensors that the stages of a partition hand on to each other within an inference.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "cl/context.hpp"
#include "delegate/lending.hpp"

namespace clgpu::delegate {

/// The runtime's tensors have their shapes. Their elements are in buffers on the device, which grow
/// where they have to, or in the runtime's memory where the host needs them. The stages of a
/// partition share this object and run one after the other.
class StageTensors {
 public:
  /// TFLite's ids. `on_host`: tensors whose values planning needs.
  StageTensors(std::shared_ptr<cl::Context> device, std::set<int> on_device, std::set<int> on_host);
  ~StageTensors();
  StageTensors(const StageTensors&) = delete;
  StageTensors& operator=(const StageTensors&) = delete;

  bool has(int tensor) const { return is_on_device(tensor) || on_host_.count(tensor) != 0; }
  bool is_on_device(int tensor) const { return on_device_.count(tensor) != 0; }

  /// Gives a tensor its shape for this inference. Throws Error if the runtime refuses.
  void give_shape(TfLiteContext& context, int tensor, const std::vector<int>& dims) const;

  /// Those of the tensors that have buffers; null if none has. The others have the memory of the
  /// runtime, as have those for which the device lacks memory. Throws Error.
  std::unique_ptr<Loan> borrow(TfLiteContext& context, const std::vector<int>& inputs,
                               const std::vector<int>& outputs);

 private:
  class StageLoan;

  struct Held {
    cl::Memory memory;
    std::size_t bytes = 0;
    bool is_mapped = false;  ///< the runtime's memory has the elements
  };

  /// Gives a buffer at least this many bytes; its contents are lost if it has to grow.
  void provide(int tensor, std::size_t bytes);
  void read(int tensor, void* to, std::size_t bytes);

  const std::shared_ptr<cl::Context> device_;
  const cl::QueueHandle queue_;
  const std::set<int> on_device_, on_host_;
  std::map<int, Held> held_;
};

}  // namespace clgpu::delegate
