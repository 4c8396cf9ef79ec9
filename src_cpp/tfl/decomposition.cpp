#include "tfl/decomposition.hpp"

#include <algorithm>

#include "tfl/subgraph.hpp"

namespace clgpu::tfl {
namespace {

constexpr std::int64_t kMostInts = 16;
constexpr std::int64_t kMostElements = 1 << 20;  // that are compared with each other

void read_tensor(Decomposition& result, const TensorView& tensor) {
  if (!result.shapes.emplace(tensor.id(), tensor.dims()).second || !tensor.has_data()) return;
  if (tensor.elements() > kMostElements) return;
  if (const auto floats = tensor.floats(); floats && !floats->empty()) {
    const bool equal = std::all_of(floats->begin(), floats->end(),
                                   [&](float value) { return value == floats->front(); });
    if (equal) result.uniform[tensor.id()] = static_cast<double>(floats->front());
  }
  if (tensor.elements() > kMostInts) return;
  if (auto ints = tensor.ints()) result.ints[tensor.id()] = std::move(*ints);
}

}  // namespace

std::optional<Decomposition> read_decomposition(const NodeView& node, int subgraph) {
  const Acquired graph(node.context(), subgraph);
  if (graph.context == nullptr || graph.is_own()) return std::nullopt;
  TfLiteContext& context = *graph.context;
  TfLiteIntArray* plan = nullptr;
  if (context.GetExecutionPlan(&context, &plan) != kTfLiteOk || plan == nullptr)
    return std::nullopt;
  const std::vector<int> order(plan->data, plan->data + plan->size);
  Decomposition result;
  for (const int index : order) {
    TfLiteNode* step = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context.GetNodeAndRegistration(&context, index, &step, &registration) != kTfLiteOk)
      return std::nullopt;
    result.steps.push_back({registration->builtin_code,
                            {step->inputs->data, step->inputs->data + step->inputs->size},
                            {step->outputs->data, step->outputs->data + step->outputs->size},
                            step->builtin_data});
    const NodeView view(context, *step, *registration, index);
    for (int i = 0; i < view.input_count(); ++i) {
      if (view.has_input(i)) read_tensor(result, view.input(i));
    }
    for (int i = 0; i < view.output_count(); ++i) {
      if (view.has_output(i)) read_tensor(result, view.output(i));
    }
  }
  return result;
}

}  // namespace clgpu::tfl
