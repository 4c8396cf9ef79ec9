#include "delegate/verify/evaluator.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "delegate/int_array.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Bytes of all results. What exceeds them is left to the CPU: in a plan it would be constants.
constexpr std::size_t kLargestResults = 64 << 20;

void set_dims(TfLiteTensor& tensor, const std::vector<int>& dims) {
  TfLiteIntArray* const copy = new_array(dims);
  std::free(tensor.dims);
  tensor.dims = copy;
}

}  // namespace

Known known_value(const TfLiteTensor& tensor) {
  const auto dtype = tfl::dtype_of(tensor.type);
  if (!dtype)
    throw Error(std::string("there are no values of type ") + tfl::type_name(tensor.type));
  // One byte for a value without elements: constants have an address.
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(tensor.bytes + 1);
  const auto* const data = static_cast<const std::uint8_t*>(tensor.data);
  std::copy(data, data + tensor.bytes, bytes->begin());
  auto constant = std::make_shared<ir::Constant>();
  constant->data = bytes->data();
  constant->bytes = tensor.bytes;
  constant->dtype = *dtype;
  constant->owner = std::move(bytes);
  return {std::move(constant), to_vector(tensor.dims)};
}

Evaluator::Evaluator(const TfLiteContext& context, const InnerTensors* inner)
    : sandbox_(context, inner), tensors_(sandbox_.tensors_size), held_(tensors_) {
  sandbox_.largest = kLargestResults;
  for (std::size_t i = 0; i < tensors_; ++i) types_.push_back(sandbox_.tensors[i].type);
}

void Evaluator::append(const TfLiteTensor& tensor) {
  sandbox_.append(tensor);
  types_.push_back(tensor.type);
  held_.push_back(nullptr);
  ++tensors_;
}

void Evaluator::forget(int id) {
  sandbox_.release(id);
  TfLiteTensor& tensor = sandbox_.at(id);
  tensor.type = types_[uz(id)];
  if (held_[uz(id)] != nullptr) {
    tensor.allocation_type = kTfLiteArenaRw;
    held_bytes_ -= held_[uz(id)]->bytes;
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
  held_[uz(id)] = known.constant;
  held_bytes_ += known.constant->bytes;
  tensor.allocation_type = kTfLiteMmapRo;
  tensor.data = const_cast<void*>(known.constant->data);  // kernels do not write their inputs
  tensor.bytes = known.constant->bytes;
}

void Evaluator::check_inputs(const CpuNode& node) {
  const ops::Operation* const operation =
      ops::find_handler(node.registration.builtin_code, nullptr).operation;
  if (operation != nullptr && operation->by_shape) return;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) continue;
    const tfl::TensorView input(&sandbox_.at(node.inputs[i]), node.inputs[i]);
    const std::string what = "input " + std::to_string(i) + " of node " +
                             std::to_string(node.index) + " (" + node.op + ") ";
    if (!input.has_data()) throw ShadowError(what + "is computed at run time");
    if (operation == nullptr || operation->divisor != static_cast<int>(i)) continue;
    const auto values = input.ints();
    if (values && std::count(values->begin(), values->end(), -1) > 0)
      throw ShadowError(what + "is -1: the runtime's kernels may end the process");
  }
}

std::vector<Known> Evaluator::take_results(const CpuKernel& kernel) {
  std::vector<Known> results;
  std::size_t sum = held_bytes_;
  for (const int id : kernel.recipe().outputs) {
    const TfLiteTensor& tensor = sandbox_.at(id);
    if (tensor.type != types_[uz(id)]) kernel.fail("gives its result another type than the model");
    if (!tfl::dtype_of(tensor.type) || (tensor.data == nullptr && tensor.bytes != 0))
      kernel.fail("gives a result that cannot be kept");
    sum += tensor.bytes;
    if (sum > kLargestResults)
      kernel.fail("gives more results than planning may keep (64 MiB in all)");
    results.push_back(known_value(tensor));
  }
  return results;
}

std::vector<Known> Evaluator::run(const CpuNode& node) {
  check_inputs(node);
  for (const int id : node.outputs) forget(id);
  // Also if the kernel fails: it may have added tensors.
  struct Cleaned {
    Sandbox& sandbox;
    std::size_t size;
    ~Cleaned() { sandbox.truncate(size); }
  } const cleaned{sandbox_, tensors_};
  std::vector<Known> results;
  {
    CpuKernel kernel(sandbox_, node);
    kernel.init();
    kernel.prepare();
    kernel.invoke();
    results = take_results(kernel);
  }
  for (std::size_t i = 0; i < results.size(); ++i) set_value(node.outputs[i], results[i]);
  return results;
}

}  // namespace clgpu::delegate
