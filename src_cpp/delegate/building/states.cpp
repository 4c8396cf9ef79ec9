#include "delegate/building/states.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "delegate/int_array.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

void check_fits(const TfLiteTensor& value, const ir::Tensor& tensor) {
  const auto has = tfl::dtype_of(value.type);
  if (has == tensor.dtype && to_vector(value.dims) == tensor.shape.dims() && value.data != nullptr)
    return;
  throw ShadowError("the variable '" + tensor.name + "' is " + tfl::type_name(value.type) +
                    ir::Shape(to_vector(value.dims)).str() + "; the model says " +
                    name_of(tensor.dtype) + tensor.shape.str());
}

}  // namespace

States::States(const TfLiteContext& context, std::vector<StateSource> sources,
               std::vector<CpuNode> once)
    : sources_(std::move(sources)), once_nodes_(std::move(once)), values_(sources_.size()) {
  const bool any_resource = std::any_of(sources_.begin(), sources_.end(),
                                        [](const StateSource& s) { return s.tensor < 0; });
  if (any_resource) make_kernels(context);
}

States::~States() = default;

void States::make_kernels(const TfLiteContext& context) {
  sandbox_ = std::make_unique<Sandbox>(context);
  const auto make = [&](const std::optional<CpuNode>& node) -> std::unique_ptr<CpuKernel> {
    return node ? std::make_unique<CpuKernel>(*sandbox_, *node) : nullptr;
  };
  for (const CpuNode& node : once_nodes_)
    once_.push_back(std::make_unique<CpuKernel>(*sandbox_, node));
  for (const StateSource& source : sources_)
    kernels_.push_back({make(source.handle), make(source.read), make(source.assign)});
  const auto prepare = [](CpuKernel* kernel) {
    if (kernel == nullptr) return;
    kernel->init();
    kernel->prepare();
  };
  for (const auto& kernel : once_) prepare(kernel.get());
  for (const Kernels& kernels : kernels_) {
    prepare(kernels.handle.get());
    if (kernels.handle != nullptr) kernels.handle->invoke();
    prepare(kernels.read.get());
    prepare(kernels.assign.get());
  }
}

void States::fetch(const TfLiteContext& context, const ir::Graph& graph) {
  for (Value& value : values_) value.is_new = false;
  for (const auto& kernel : once_) kernel->invoke();
  for (const int id : graph.inputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.state < 0) continue;
    const std::size_t state = uz(tensor.state);
    const TfLiteTensor* value = nullptr;
    if (sources_[state].tensor >= 0) {
      value = &context.tensors[sources_[state].tensor];
    } else {
      CpuKernel& kernel = *kernels_[state].read;
      kernel.invoke();
      value = &sandbox_->at(kernel.recipe().outputs.at(0));
    }
    check_fits(*value, tensor);
    const auto* bytes = static_cast<const std::uint8_t*>(value->data);
    values_[state].before.assign(bytes, bytes + value->bytes);
  }
}

void* States::after(int state, std::size_t bytes) {
  Value& value = values_[uz(state)];
  value.after.resize(bytes);
  value.is_new = true;
  return value.after.data();
}

void States::give(TfLiteContext& context, const ir::Tensor& tensor,
                  std::vector<std::uint8_t>& bytes) {
  const StateSource& source = sources_[uz(tensor.state)];
  if (source.tensor >= 0) {
    TfLiteTensor& to = context.tensors[source.tensor];
    if (to.bytes != bytes.size() || to.data == nullptr)
      throw ShadowError("the variable tensor '" + source.name + "' has " +
                        std::to_string(to.bytes) + " bytes; its new value has " +
                        std::to_string(bytes.size()));
    std::memcpy(to.data, bytes.data(), bytes.size());
    return;
  }
  CpuKernel& kernel = *kernels_[uz(tensor.state)].assign;
  TfLiteTensor& value = sandbox_->at(kernel.recipe().inputs.at(1));
  // It may be the result of another kernel here, or a constant of the model.
  const TfLiteTensor kept = value;
  const auto restore = [&] {
    std::free(value.dims);
    value = kept;
  };
  value.dims = new_array(tensor.shape.dims());
  value.bytes = bytes.size();
  value.data = bytes.data();  // the kernel copies it
  try {
    kernel.invoke();
  } catch (...) {
    restore();
    throw;
  }
  restore();
}

void States::deliver(TfLiteContext& context, const ir::Graph& graph) {
  for (const int id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.state >= 0 && values_[uz(tensor.state)].is_new)
      give(context, tensor, values_[uz(tensor.state)].after);
  }
}

void States::take_back(TfLiteContext& context, const ir::Graph& graph) {
  for (const int id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.state >= 0 && !values_[uz(tensor.state)].before.empty())
      give(context, tensor, values_[uz(tensor.state)].before);
  }
}

}  // namespace clgpu::delegate
