#include "delegate/verify/cpu_kernel.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/index.hpp"
#include "delegate/guard.hpp"
#include "delegate/int_array.hpp"

namespace clgpu::delegate {
namespace {

struct Free {
  void operator()(TfLiteIntArray* array) const { std::free(array); }
};
using Array = std::unique_ptr<TfLiteIntArray, Free>;

TfLiteStatus prepare_copy(TfLiteContext* context, TfLiteNode* node) {
  return guarded(
      kTfLiteError, [](const char*) {},
      [&] {
        const TfLiteTensor& from = context->tensors[node->inputs->data[0]];
        TfLiteTensor& to = context->tensors[node->outputs->data[0]];
        return context->ResizeTensor(context, &to, copy_of(from.dims));
      });
}

TfLiteStatus copy(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& from = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& to = context->tensors[node->outputs->data[0]];
  if (from.bytes != to.bytes) return kTfLiteError;
  if (from.bytes > 0) std::memcpy(to.data, from.data, from.bytes);
  return kTfLiteOk;
}

}  // namespace

CpuNode::CpuNode(int node, std::string operation, const TfLiteNode& tflite,
                 const TfLiteRegistration& by)
    : index(node),
      op(std::move(operation)),
      family(ops::find_handler(by.builtin_code, nullptr).family),
      inputs(to_vector(tflite.inputs)),
      outputs(to_vector(tflite.outputs)),
      intermediates(to_vector(tflite.intermediates)),
      builtin_data(tflite.builtin_data),
      custom_data(tflite.custom_initial_data),
      custom_bytes(tflite.custom_initial_data_size) {
  // Copies the fields that the runtime's struct has; our reserved ones come after them.
  std::memcpy(&registration, &by, offsetof(TfLiteRegistration, inplace_operator) + 8);
}

CpuNode copy_node(const CpuNode& like, int from, int to) {
  CpuNode copied = like;
  copied.family = nullptr;
  copied.registration = {};
  copied.registration.prepare = prepare_copy;
  copied.registration.invoke = copy;
  copied.inputs = {from};
  copied.outputs = {to};
  copied.intermediates = {};
  copied.builtin_data = nullptr;
  return copied;
}

NodeInstance::NodeInstance(const CpuNode& recipe) {
  // If one of them fails, those before it are freed.
  Array inputs(new_array(recipe.inputs)), outputs(new_array(recipe.outputs)),
      intermediates(new_array(recipe.intermediates)), temporaries(new_array({}));
  node.inputs = inputs.release();
  node.outputs = outputs.release();
  node.intermediates = intermediates.release();
  node.temporaries = temporaries.release();
  node.builtin_data = recipe.builtin_data;
  node.custom_initial_data = recipe.custom_data;
  node.custom_initial_data_size = recipe.custom_bytes;
}

NodeInstance::~NodeInstance() {
  for (TfLiteIntArray* array : {node.inputs, node.outputs, node.intermediates, node.temporaries})
    std::free(array);
}

CpuKernel::~CpuKernel() {
  if (instance_ == nullptr) return;
  const TfLiteRegistration& by = recipe_.registration;
  void* const state = instance_->node.user_data;
  if (by.free != nullptr && state != nullptr) by.free(&sandbox_, state);
}

void CpuKernel::add_input(int slot, int id) {
  recipe_.inputs.resize(uz(slot), -1);
  recipe_.inputs.push_back(id);
}

std::vector<int> CpuKernel::temporaries() const { return to_vector(instance_->node.temporaries); }

void CpuKernel::fail(const char* what) const {
  std::string text = sandbox_.error;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  throw ShadowError("the CPU kernel of node " + std::to_string(recipe_.index) + " (" + recipe_.op +
                    ") " + what + (text.empty() ? "" : ": " + text));
}

void CpuKernel::init() {
  sandbox_.error.clear();
  const TfLiteRegistration& by = recipe_.registration;
  const bool runs_graphs = recipe_.family != nullptr && recipe_.family->runs_graphs;
  if (by.invoke == nullptr || by.registration_external != nullptr || runs_graphs)
    fail("can be run only by the interpreter");
  instance_ = std::make_unique<NodeInstance>(recipe_);
  if (by.init == nullptr) return;
  sandbox_.make_room();
  const bool custom = recipe_.custom_data != nullptr;
  const void* data = custom ? recipe_.custom_data : recipe_.builtin_data;
  void* const state = by.init(&sandbox_, static_cast<const char*>(data),
                              custom ? static_cast<std::size_t>(recipe_.custom_bytes) : 0);
  if (state == kInitFailed) fail("cannot be made");
  instance_->node.user_data = state;
}

void CpuKernel::prepare() {
  const TfLiteRegistration& by = recipe_.registration;
  sandbox_.error.clear();
  sandbox_.make_room();
  const TfLiteStatus status =
      by.prepare == nullptr ? kTfLiteOk : by.prepare(&sandbox_, &instance_->node);
  if (status != kTfLiteOk && status != kTfLiteOutputShapeNotKnown) fail("does not take its inputs");
  knows_shapes_ = status == kTfLiteOk;
  prepared_ = true;
}

void CpuKernel::invoke() {
  sandbox_.error.clear();
  const auto provide = [&](const std::vector<int>& ids) {
    for (const int id : ids) {
      if (id >= 0) sandbox_.provide(id);
    }
  };
  if (knows_shapes_) provide(recipe_.outputs);
  provide(temporaries());
  sandbox_.make_room();
  if (recipe_.registration.invoke(&sandbox_, &instance_->node) != kTfLiteOk) fail("has failed");
}

}  // namespace clgpu::delegate
