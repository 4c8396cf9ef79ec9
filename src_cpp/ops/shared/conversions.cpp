#include "ops/shared/conversions.hpp"

#include <algorithm>

namespace clgpu::ops {
namespace {

using kernel::Operand;

/// The type of a tensor in arithmetic.
DType natural(const ir::Tensor& tensor) {
  return is_float(tensor.dtype) ? DType::kF32 : tensor.dtype;
}

bool is_steps(DType type) {
  return type == DType::kI8 || type == DType::kU8 || type == DType::kI16;
}

/// Whether kernels/common/stored_types.cl has a type for both.
bool has_type(DType arithmetic, DType storage) {
  return (arithmetic == DType::kF32 && is_steps(storage)) ||
         (is_steps(arithmetic) && (storage == DType::kF32 || storage == DType::kF16));
}

bool applies(const ir::Node& node) {
  const auto condition = family_of(node).types.applies;
  return condition == nullptr || condition(node);
}

/// A tensor of a node that is converted.
struct Converted {
  const char* macro;
  const ir::Tensor& tensor;
  Operand::Kind kind;
  int index;

  bool is_argument_of(const kernel::Launch& launch, bool as_image) const {
    return std::any_of(launch.args.begin(), launch.args.end(), [&](const kernel::Arg& arg) {
      const auto* operand = std::get_if<Operand>(&arg);
      return operand != nullptr && operand->kind == kind && operand->index == index &&
             operand->image.has_value() == as_image;
    });
  }

  /// Changes a launch; false if its kernel cannot convert.
  bool convert(kernel::Launch& launch) const {
    if (is_argument_of(launch, true)) return false;
    if (!is_argument_of(launch, false)) return true;
    const std::string type = cl_name(natural(tensor));
    const auto found = std::find_if(launch.macros.begin(), launch.macros.end(),
                                    [&](const auto& entry) { return entry.first == macro; });
    if (found == launch.macros.end() || found->second != type) return false;
    found->second = type + "_as_" + cl_name(tensor.storage);
    if (kind == Operand::Kind::kOutput) {
      launch.convert_result(tensor.scale(), tensor.zero_point());
    } else {
      launch.convert_input(tensor.scale(), tensor.zero_point());
    }
    return true;
  }
};

/// Whether a node only moves numbers that others convert: a concatenation of parts of a result.
bool moves(const NodeContext& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i) && node.input(i).is_converted() == node.output(0).is_converted() &&
        node.input(i).storage == node.output(0).storage)
      continue;
    return false;
  }
  return family_of(node.node()).types.result == nullptr;
}

/// The tensors of a node that are converted, the result first.
std::vector<Converted> converted_of(const NodeContext& node) {
  const TypeMacros& types = family_of(node.node()).types;
  std::vector<Converted> result;
  if (node.output_count() == 0 || moves(node)) return result;
  if (node.output(0).is_converted())
    result.push_back({types.result, node.output(0), Operand::Kind::kOutput, 0});
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i) || node.input(i).is_constant() || !node.input(i).is_converted())
      continue;
    CLGPU_CHECK(uz(i) < types.inputs.size());
    result.push_back({types.inputs[uz(i)], node.input(i), Operand::Kind::kInput, i});
  }
  for (const Converted& converted : result) CLGPU_CHECK(converted.macro != nullptr);
  return result;
}

}  // namespace

bool can_convert_result(const ir::Graph& graph, const ir::Node& node, DType storage) {
  return applies(node) && family_of(node).types.result != nullptr && node.outputs.size() == 1 &&
         has_type(natural(graph.tensor(node.outputs[0])), storage);
}

bool can_convert_input(const ir::Graph& graph, const ir::Node& node, int slot, DType storage) {
  const auto& macros = family_of(node).types.inputs;
  if (!applies(node) || uz(slot) >= macros.size() || macros[uz(slot)] == nullptr) return false;
  const ir::Tensor& input = graph.tensor(node.inputs[uz(slot)]);
  return is_float(input.dtype) && has_type(DType::kF32, storage) &&
         std::none_of(node.inputs.begin(), node.inputs.end(), [&](int id) {
           return id >= 0 && !graph.tensor(id).is_constant() && graph.tensor(id).is_converted();
         });
}

void store_as_computed(ir::Tensor& tensor) {
  tensor.storage = natural(tensor);
  if (is_float(tensor.dtype)) tensor.quantization = nullptr;
}

std::vector<kernel::Candidate> candidates_of(const NodeContext& node, const DeviceInfo& device) {
  const Family& family = family_of(node.node());
  const std::vector<Converted> converted = converted_of(node);
  if (converted.empty()) return family.candidates(node, device);
  ir::Graph graph;
  graph.tensors = node.graph().tensors;
  graph.allows_tf32 = node.graph().allows_tf32;
  graph.allows_half = node.graph().allows_half;
  for (const Converted& one : converted) {
    const bool is_result = one.kind == Operand::Kind::kOutput;
    const auto& ids = is_result ? node.node().outputs : node.node().inputs;
    ir::Tensor& tensor = graph.tensor(ids[uz(one.index)]);
    store_as_computed(tensor);
  }
  auto candidates = family.candidates(NodeContext(graph, node.node()), device);
  for (kernel::Candidate& candidate : candidates) {
    // An element may be wider than the one that it would replace.
    candidate.in_place.clear();
    candidate.over_input.reset();
    for (kernel::Launch& launch : candidate.launches) {
      for (const Converted& one : converted) {
        if (candidate.refusal.empty() && !one.convert(launch))
          candidate.refusal = "its kernels cannot convert between floats and integers";
      }
    }
    if (!candidate.refusal.empty()) candidate.launches.clear();
  }
  return candidates;
}

}  // namespace clgpu::ops
