// Carried tensors where the runtime's kernels need them: a partition on the CPU, and verification.
#include "delegate/building/largest.hpp"
#include "delegate/building/partition.hpp"
#include "plan/choose.hpp"

namespace clgpu::delegate {
namespace {

void* data_of(const TfLiteContext& context, const ir::Tensor& tensor,
              const plan::CarriedForm& form) {
  const TfLiteTensor& tflite = context.tensors[tensor.tflite_id];
  if (tflite.data != nullptr && tflite.bytes == form.host_bytes()) return tflite.data;
  throw Error("the carried tensor '" + tensor.name + "' has " + std::to_string(tflite.bytes) +
              " bytes in the runtime; " + std::to_string(form.host_bytes()) + " are needed");
}

}  // namespace

std::vector<ir::Tensor> Partition::carried_of(const std::vector<int>& ids) const {
  std::vector<ir::Tensor> tensors;
  for (const int id : ids) {
    if (graph_.tensor(id).carried >= 0) tensors.push_back(graph_.tensor(id));
  }
  return tensors;
}

void Partition::lower_carried(TfLiteContext& context, const std::vector<int>& ids) {
  for (const ir::Tensor& tensor : carried_of(ids)) {
    const plan::CarriedForm form{tensor.shape, tensor.dtype, tensor.storage};
    carried()->provide(tensor.carried, form);
    carried()->read(tensor.carried, data_of(context, tensor, form));
  }
}

void Partition::lift_carried(TfLiteContext& context, const std::vector<int>& ids) {
  for (const ir::Tensor& tensor : carried_of(ids)) {
    const plan::CarriedForm form{tensor.shape, tensor.dtype, tensor.storage};
    carried()->provide(tensor.carried, form);
    carried()->write(tensor.carried, data_of(context, tensor, form));
  }
}

void Partition::forget_found() const {
  if (session_->carriers == nullptr) return;
  for (const int id : graph_.outputs) session_->carriers->forget_found(graph_.tensor(id).carried);
}

// Where the device cannot find the largest elements of these shapes within the budget, inferences
// do without from now on.
void Partition::build() {
  if (!finds_largest(model_)) return build_as_it_is();
  try {
    return build_as_it_is();
  } catch (const plan::NoCandidate&) {
  } catch (const plan::BudgetError&) {
  } catch (const ShapeError&) {
  }
  remove_largest(model_);
  original_ = std::make_shared<const ir::Graph>(model_);
  if (specialization_ == nullptr) graph_ = pass_anew(Level::kAsAsked);
  build_as_it_is();
}

void Partition::tell_found() const {
  if (session_->carriers == nullptr) return;
  for (const int id : published_->outputs) {
    const int number = published_->tensor(id).largest_of;
    if (number >= 0) session_->carriers->tell_found(number);
  }
}

}  // namespace clgpu::delegate
