// A partition that the CPU's kernels compute: verification found it wrong on the device, or no
// kernel of ours takes its shapes.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/byte_size.hpp"
#include "base/utf8.hpp"
#include "delegate/building/partition.hpp"
#include "delegate/int_array.hpp"
#include "ops/family.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

std::string name_of(const TfLiteTensor& tensor) {
  return "tensor '" + (tensor.name == nullptr ? "" : printable(tensor.name)) + "'";
}

// A dynamic tensor may have memory but no elements. Python's get_tensor() refuses such a tensor.
void free_if_empty(TfLiteTensor& tensor) {
  if (tensor.allocation_type != kTfLiteDynamic || tensor.bytes != 0) return;
  std::free(tensor.data);  // as the runtime does before it allocates such a tensor anew
  tensor.data = nullptr;
}

// As the runtime's own kernels do if the shape of a result depends on values.
void make_dynamic(TfLiteTensor& tensor) {
  if (tensor.allocation_type == kTfLiteDynamic) return;
  tensor.allocation_type = kTfLiteDynamic;
  tensor.data = nullptr;  // it belonged to the runtime's arena
}

void resize(TfLiteContext& context, int id, const std::vector<int>& dims) {
  TfLiteTensor& tensor = context.tensors[id];
  // Allocates the memory of a dynamic tensor.
  if (tensor.allocation_type != kTfLiteDynamic && to_vector(tensor.dims) == dims) return;
  const std::string what = name_of(tensor);
  if (context.ResizeTensor(&context, &tensor, new_array(dims)) != kTfLiteOk)
    throw Error("the runtime refuses to resize " + what + " to " + ir::Shape(dims).str());
}

}  // namespace

void Partition::keep_memory_of_all_but(const std::set<int>& others, const TfLiteContext& context) {
  for (const int id : output_ids()) {
    if (others.count(id) == 0) kept_[id].shape = to_vector(context.tensors[id].dims);
  }
}

void Partition::open_shape(TfLiteContext& context, int id) {
  if (stages_ != nullptr && stages_->has(id)) return;  // the stages tell each other
  TfLiteTensor& tensor = context.tensors[id];
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) return make_dynamic(tensor);
  if (tensor.allocation_type == kTfLiteDynamic) return;
  resize(context, id, kept->second.shape);
  kept->second.bytes = tensor.bytes;
}

void Partition::give_shape(TfLiteContext& context, int id, const std::vector<int>& dims) {
  if (stages_ != nullptr && stages_->has(id)) return stages_->give_shape(context, id, dims);
  TfLiteTensor& tensor = context.tensors[id];
  if (const auto kept = kept_.find(id); kept != kept_.end()) {
    const std::size_t bytes =
        static_cast<std::size_t>(ir::Shape(dims).elements()) * size_of(*tfl::dtype_of(tensor.type));
    if (tensor.allocation_type == kTfLiteCustom && bytes > kept->second.bytes) {
      throw Error(name_of(tensor) + " now has the shape " + ir::Shape(dims).str() + " and " +
                  byte_size(bytes) +
                  "; the application's memory for it may have no more than the " +
                  byte_size(kept->second.bytes) + " of the model's shape " +
                  ir::Shape(kept->second.shape).str() +
                  ". Run such a model with an interpreter, which allocates its results itself");
    }
    // The arena is planned already: it has memory for the file's shape.
    if (tensor.allocation_type == kTfLiteArenaRw && to_vector(tensor.dims) != dims)
      make_dynamic(tensor);
  }
  resize(context, id, dims);
}

std::set<int> Partition::output_ids() const {
  std::set<int> ids;
  for (const int id : model_.outputs) {
    const ir::Tensor& tensor = model_.tensor(id);
    if (tensor.state < 0 && tensor.largest_of < 0) ids.insert(tensor.tflite_id);
  }
  return ids;
}

Shadow& Partition::shadow(const TfLiteContext& context) {
  if (cpu_.shadow == nullptr) {
    cpu_.shadow = std::make_unique<Shadow>(
        context, cpu_.inner.get(), cpu_.nodes,
        state_->target.options.dynamic_range == passes::DynamicRange::kDequantize);
  }
  return *cpu_.shadow;
}

bool Partition::leave_to_cpu(const TfLiteContext& context, const std::string& reason) {
  const auto overruns = [&](const ir::Node& node) {
    const ops::Family& family = ops::family_of(node);
    return family.stock_overruns && !family.stock_mistake({*original_, node}).empty();
  };
  if (std::any_of(original_->nodes.begin(), original_->nodes.end(), overruns)) return false;
  try {
    shadow(context).prepare();
  } catch (const ShadowError&) {
    cpu_.shadow.reset();
    return false;
  }
  cpu_.reason = reason;
  return true;
}

bool Partition::leave_to_cpu_or_later(const TfLiteContext& context, const std::string& reason) {
  if (leave_to_cpu(context, reason)) return true;
  if (!is_dynamic(context)) return false;
  problem_ = reason;
  return true;
}

bool Partition::leave_stage_to_cpu(const TfLiteContext& context, const std::string& reason) {
  return awaits() && leave_to_cpu(context, reason);
}

void Partition::give_shapes_of_cpu(TfLiteContext& context) {
  for (const int id : output_ids()) {
    context.tensors[id].type = cpu_.shadow->tensor(id).type;
    if (const auto dims = cpu_.shadow->shape(id)) {
      give_shape(context, id, *dims);
    } else {
      open_shape(context, id);
    }
  }
}

void Partition::compute_on_cpu(TfLiteContext& context) {
  if (cpu_.reason.empty()) {
    // Verification needs results to compare with, and only correct ones: stock kernels that leave
    // out an activation give none.
    if (!run_shadow(context, false)) throw Error(trust_->verdict.reason);
    return take_from_shadow(context);
  }
  try {
    shadow(context).run(context, output_ids(), false);
    for (const int id : output_ids()) {
      if (context.tensors[id].allocation_type != kTfLiteDynamic && !awaits()) continue;
      context.tensors[id].type = cpu_.shadow->tensor(id).type;
      give_shape(context, id, to_vector(cpu_.shadow->tensor(id).dims));
      if (stages_ == nullptr || !stages_->has(id)) free_if_empty(context.tensors[id]);
    }
    take_from_shadow(context);
  } catch (const ShadowError&) {
    cpu_.shadow.reset();  // the next inference must not continue with partial results
    throw;
  }
}

void Partition::take_from_shadow(TfLiteContext& context) const {
  for (const int id : output_ids()) {
    const TfLiteTensor &from = cpu_.shadow->tensor(id), &to = context.tensors[id];
    if (from.bytes != to.bytes || from.type != to.type)
      throw ShadowError("the CPU's kernels give " + name_of(to) +
                        " another size than the delegate");
    if (from.bytes > 0) std::memcpy(to.data, from.data, from.bytes);
  }
}

}  // namespace clgpu::delegate
