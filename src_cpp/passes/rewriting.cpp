#include "passes/rewriting.hpp"

#include <algorithm>
#include <cstring>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/index.hpp"

namespace clgpu::passes {

std::optional<float> number_of(const ir::Tensor& tensor) {
  if (!tensor.is_constant() || tensor.shape.elements() != 1) return {};
  const ir::Constant& constant = *tensor.constant;
  if (constant.dtype == DType::kF16 || constant.dtype == DType::kBF16) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, constant.data, sizeof bits);
    return constant.dtype == DType::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
  }
  if (constant.dtype != DType::kF32) return {};
  float value = 0;
  std::memcpy(&value, constant.data, sizeof value);
  return value;
}

Rewriting::Rewriting(ir::Graph& graph, const char* pass)
    : graph_(graph),
      pass_(pass),
      writers_(ir::writers_of(graph)),
      reads_(graph.tensors.size(), 0),
      is_output_(ir::output_mask(graph)),
      removed_(graph.nodes.size(), false) {
  for (const ir::Node& node : graph.nodes) count_reads(node, 1);
}

void Rewriting::count_reads(const ir::Node& node, int by) {
  for (const int id : node.inputs) {
    if (id >= 0) reads_[uz(id)] += by;
  }
}

int Rewriting::only_reader(int tensor) const {
  if (reads_[uz(tensor)] != 1 || is_output_[uz(tensor)]) return -1;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::vector<int>& inputs = graph_.nodes[i].inputs;
    if (!removed_[i] && std::find(inputs.begin(), inputs.end(), tensor) != inputs.end())
      return static_cast<int>(i);
  }
  return -1;
}

int Rewriting::add_tensor(const ir::Shape& shape) {
  ir::Tensor tensor;
  tensor.shape = shape;
  tensor.model_rank = shape.rank();
  graph_.tensors.push_back(std::move(tensor));
  writers_.push_back(-1);
  reads_.push_back(0);
  is_output_.push_back(false);
  return static_cast<int>(graph_.tensors.size()) - 1;
}

void Rewriting::insert(std::size_t before, ir::Node node) {
  count_reads(node, 1);
  inserted_.emplace_back(before, std::move(node));
}

void Rewriting::replace(std::size_t index, ir::Node node, std::vector<std::size_t> parts) {
  const int into = node.tflite_index, replaced = graph_.nodes[index].tflite_index;
  count_reads(graph_.nodes[index], -1);
  count_reads(node, 1);
  graph_.nodes[index] = std::move(node);
  // Readers come after what they read.
  std::sort(parts.rbegin(), parts.rend());
  for (const std::size_t part : parts) {
    if (part == index || removed_[part]) continue;
    const ir::Node& old = graph_.nodes[part];
    const bool needed = std::any_of(old.outputs.begin(), old.outputs.end(), [&](int id) {
      return reads_[uz(id)] > 0 || is_output_[uz(id)];
    });
    if (needed) continue;
    count_reads(old, -1);
    removed_[part] = true;
    // A node that has the number of a part takes in the one that it replaces.
    ir::applied(graph_, pass_, old.tflite_index == into ? replaced : old.tflite_index, into);
  }
}

void Rewriting::finish() {
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ir::Node> nodes;
  auto next = inserted_.begin();
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (; next != inserted_.end() && next->first == i; ++next)
      nodes.push_back(std::move(next->second));
    if (!removed_[i]) nodes.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(nodes);
}

}  // namespace clgpu::passes
