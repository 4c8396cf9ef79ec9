#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/index.hpp"
#include "passes/concatenations.hpp"
#include "passes/pass.hpp"
#include "passes/small_tensors.hpp"

namespace clgpu::passes {
namespace {

// Small constants (biases, scales, epsilons) and small tensors (pooled features, gates, logits)
// cost almost nothing in float, and rounding does the most harm to them.
constexpr std::int64_t kSmallConstant = 1024;
constexpr std::int64_t kSmallTensor = 4096;

std::atomic<bool> none_is_small{false};

// The first node that writes each tensor, or else reads it, as the model counts nodes.
std::vector<int> nodes_of(const ir::Graph& graph) {
  std::vector<int> found(graph.tensors.size(), -1);
  for (const bool writes : {true, false}) {
    for (const ir::Node& node : graph.nodes) {
      for (const int id : writes ? node.outputs : node.inputs) {
        if (id >= 0 && found[uz(id)] < 0) found[uz(id)] = node.tflite_index;
      }
    }
  }
  return found;
}

// Tells of the tensors that a plan lists and that stay float, and why; `reasons` are those of other
// tensors than small ones.
void tell_floats(ir::Graph& graph, const PrecisionPlan& plan,
                 const std::vector<const char*>& reasons) {
  const std::vector<int> nodes = nodes_of(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[i];
    const int id = tensor.tflite_id;
    const bool listed = plan.half.count(id) != 0 || plan.bfloat.count(id) != 0;
    if (!listed || nodes[i] < 0 || tensor.dtype != DType::kF32 || tensor.storage != DType::kF32)
      continue;
    const char* why = reasons[i] != nullptr ? reasons[i] : is_small(tensor) ? "small tensor" : "";
    if (*why == '\0') continue;
    declined(graph, "choose_storage", nodes[i], why, id);
  }
}

}  // namespace

bool is_small(const ir::Tensor& tensor) {
  return tensor.shape.elements() <= (tensor.is_constant() ? kSmallConstant : kSmallTensor) &&
         !none_is_small;
}

void pretend_no_small_tensors(bool is_on) { none_is_small = is_on; }

void allow_tf32(ir::Graph& graph, const PrecisionPlan& plan) {
  for (ir::Node& node : graph.nodes) {
    const bool reads_half = !node.inputs.empty() && node.inputs[0] >= 0 &&
                            plan.half.count(graph.tensor(node.inputs[0]).tflite_id) != 0;
    node.allows_tf32 = reads_half || plan.tf32.count(node.tflite_index) != 0;
    node.bf16_pairs = !node.allows_tf32 && plan.bf16_pairs.count(node.tflite_index) != 0;
  }
}

void choose_storage(ir::Graph& graph, Precision precision, bool half_io, bool half_weights,
                    bool half_carried, const PrecisionPlan* plan) {
  // A view shares memory with its source, so both must have the same storage: decide per root.
  std::vector<int> root(graph.tensors.size());
  std::iota(root.begin(), root.end(), 0);
  for (const ir::Node& node : graph.nodes) {
    if (node.kind->is_view) {
      root[uz(node.outputs[0])] = root[uz(node.inputs[0])];
    }
  }
  // Uploaded, downloaded or carried: with the model's type.
  std::vector<bool> outside(graph.tensors.size(), false);
  // A plan does not list them: the option alone makes them half.
  std::vector<bool> halved(graph.tensors.size(), false);
  const bool halves_plan = half_io && precision == Precision::kMixed && plan != nullptr;
  std::vector<bool> carried(graph.tensors.size(), false);
  for (const auto* ids : {&graph.inputs, &graph.outputs}) {
    for (const int id : *ids) {
      const bool stays = graph.tensor(id).carried >= 0;
      if (stays) carried[uz(root[uz(id)])] = true;
      if (stays ? !half_carried : !half_io) outside[uz(root[uz(id)])] = true;
      // The sum of many elements may be no half, and they are few.
      if (graph.tensor(id).largest_of >= 0) outside[uz(root[uz(id)])] = true;
      if (!stays && halves_plan) halved[uz(root[uz(id)])] = true;
    }
  }
  // The host copies them as they are from and to the states of a loop, or those of a branch.
  for (const ir::Node& node : graph.nodes) {
    if (node.graphs.empty()) continue;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const int id : *ids) outside[uz(root[uz(id)])] = true;
    }
  }
  // Of a large tensor that is stored in 16 bits; float if it is not.
  const auto wanted = [&](const ir::Tensor& tensor) {
    if (precision == Precision::kFp16 || halved[uz(root[uz(&tensor - graph.tensors.data())])])
      return DType::kF16;
    if (precision != Precision::kMixed || plan == nullptr) return DType::kF32;
    if (plan->bfloat.count(tensor.tflite_id) != 0) return DType::kBF16;
    return plan->half.count(tensor.tflite_id) != 0 ? DType::kF16 : DType::kF32;
  };
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    ir::Tensor& tensor = graph.tensors[i];
    tensor.storage = tensor.dtype;
    if (static_cast<std::size_t>(root[i]) != i || outside[i] || tensor.dtype != DType::kF32)
      continue;
    if (!tensor.is_constant()) {
      const bool large = half_io || !is_small(tensor);
      const DType storage = !carried[i] ? wanted(tensor) : half_carried ? DType::kF16 : DType::kF32;
      if (large) tensor.storage = storage;
      continue;
    }
    const DType stored = tensor.constant->dtype;
    if (stored == DType::kF16) tensor.storage = DType::kF16;  // as precise as the file
    if (stored == DType::kF16 || is_small(tensor)) continue;
    // Biases of bfloat16, too, stay floats, as kernels for tensor cores read them.
    const bool own = stored == DType::kBF16 && tensor.shape.rank() > 1;
    const DType storage = wanted(tensor);
    const bool half = storage == DType::kF16 || (half_weights && storage == DType::kF32 && !own);
    if (half && tensor.constant->fits_half()) {
      tensor.storage = DType::kF16;
    } else if (storage == DType::kBF16 || own) {
      tensor.storage = DType::kBF16;
    }
  }
  // A whole of nothing but constants is as they are: it must not be wider than the file, nor half
  // where one of them is beyond half.
  for (const ir::Node& node : graph.nodes) {
    if (concatenation_of(node) == nullptr) continue;
    ir::Tensor& whole = graph.tensor(node.outputs[0]);
    const auto constant = [&](int id) { return graph.tensor(id).is_constant(); };
    const auto half = [&](int id) { return graph.tensor(id).storage == DType::kF16; };
    const std::vector<int>& parts = node.inputs;
    if (whole.dtype != DType::kF32 || outside[uz(root[uz(node.outputs[0])])] ||
        root[uz(node.outputs[0])] != node.outputs[0] ||
        !std::all_of(parts.begin(), parts.end(), constant))
      continue;
    whole.storage = std::all_of(parts.begin(), parts.end(), half) ? DType::kF16 : DType::kF32;
  }
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    graph.tensors[i].storage = graph.tensors[uz(root[i])].storage;
  }
  if (precision != Precision::kMixed || plan == nullptr) return;
  std::vector<const char*> reasons(graph.tensors.size(), nullptr);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[i];
    if (outside[uz(root[i])]) {
      reasons[i] = "input or output of the model, a loop or a branch";
    } else if (carried[uz(root[i])]) {
      reasons[i] = "carried from one inference to the next";
    } else if (static_cast<std::size_t>(root[i]) != i) {
      reasons[i] = "shares the memory of a tensor that is float";
    } else if (tensor.is_constant() && !is_small(tensor) && !tensor.constant->fits_half()) {
      reasons[i] = "constant beyond half";
    }
  }
  tell_floats(graph, *plan, reasons);
}

}  // namespace clgpu::passes
