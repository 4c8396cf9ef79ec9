#include "delegate/verify/evaluator.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/index.hpp"
#include "delegate/int_array.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Bytes. A larger result is left to the CPU: in a plan it would be a constant.
constexpr std::size_t kLargestResult = 64 << 20;

void set_dims(TfLiteTensor& tensor, const std::vector<int>& dims) {
  TfLiteIntArray* const copy = new_array(dims);
  std::free(tensor.dims);
  tensor.dims = copy;
}

}  // namespace

Evaluator::Evaluator(const TfLiteContext& context) : sandbox_(context) {
  sandbox_.largest = kLargestResult;
}

void Evaluator::forget(int id) {
  sandbox_.release(id);
  TfLiteTensor& tensor = sandbox_.at(id);
  if (uz(id) < held_.size() && held_[uz(id)] != nullptr) {
    tensor.allocation_type = kTfLiteArenaRw;
    held_[uz(id)] = nullptr;
  }
  if (tensor.allocation_type == kTfLiteMmapRo) return;  // belongs to the model
  tensor.allocation_type = kTfLiteArenaRw;
  tensor.data = nullptr;
}

void Evaluator::set_shape(int id, const std::vector<int>& dims) {
  forget(id);
  TfLiteTensor& tensor = sandbox_.at(id);
  if (tensor.allocation_type == kTfLiteMmapRo) return;
  set_dims(tensor, dims);
  if (const auto dtype = tfl::dtype_of(tensor.type))
    tensor.bytes = static_cast<std::size_t>(ir::Shape(dims).elements()) * size_of(*dtype);
}

void Evaluator::set_value(int id, const Known& known) {
  set_shape(id, known.dims);
  TfLiteTensor& tensor = sandbox_.at(id);
  if (tensor.allocation_type == kTfLiteMmapRo) return;
  if (held_.size() <= uz(id)) held_.resize(uz(id) + 1);
  held_[uz(id)] = known.constant;
  tensor.allocation_type = kTfLiteMmapRo;
  tensor.data = const_cast<void*>(known.constant->data);  // kernels do not write their inputs
  tensor.bytes = known.constant->bytes;
}

std::vector<Known> Evaluator::run(const CpuNode& node) {
  std::vector<TfLiteType> types;
  for (const int id : node.outputs) {
    forget(id);
    types.push_back(sandbox_.at(id).type);
  }
  std::vector<Known> results;
  {
    CpuKernel kernel(sandbox_, node);
    kernel.init();
    kernel.prepare();
    kernel.invoke();
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      TfLiteTensor& tensor = sandbox_.at(node.outputs[i]);
      const TfLiteType given = std::exchange(tensor.type, types[i]);
      const auto dtype = tfl::dtype_of(given);
      if (given != types[i]) kernel.fail("gives its result another type than the model");
      if (!dtype || (tensor.data == nullptr && tensor.bytes != 0))
        kernel.fail("gives a result that cannot be kept");
      // One byte for a result without elements: constants have an address.
      auto bytes = std::make_shared<std::vector<std::uint8_t>>(tensor.bytes + 1);
      const auto* const data = static_cast<const std::uint8_t*>(tensor.data);
      std::copy(data, data + tensor.bytes, bytes->begin());
      auto constant = std::make_shared<ir::Constant>();
      constant->data = bytes->data();
      constant->bytes = tensor.bytes;
      constant->dtype = *dtype;
      constant->owner = std::move(bytes);
      results.push_back({std::move(constant), to_vector(tensor.dims)});
    }
    for (const int id : kernel.temporaries()) {
      if (id >= 0) sandbox_.release(id);
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) set_value(node.outputs[i], results[i]);
  return results;
}

}  // namespace clgpu::delegate
