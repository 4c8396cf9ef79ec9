#include "passes/split_weights.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/index.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/gather.hpp"
#include "ops/families/transpose.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

using Constant = std::shared_ptr<const ir::Constant>;

// The part of a constant for output channels `first` to `first + channels`, out of `all`.
Constant part_of(const ir::Constant& whole, int all, int first, int channels) {
  const std::size_t bytes = whole.bytes / uz(all);
  ir::Constant part = whole;
  part.data = static_cast<const std::uint8_t*>(whole.data) + bytes * uz(first);
  part.bytes = bytes * uz(channels);
  return std::make_shared<const ir::Constant>(std::move(part));
}

// The scales of these output channels.
std::shared_ptr<const ir::Quantization> part_of(
    const std::shared_ptr<const ir::Quantization>& whole, int all, int first, int channels) {
  if (whole == nullptr || !whole->per_axis()) return whole;
  const int each = static_cast<int>(whole->scales.size()) / all;  // several blocks of a row
  first *= each;
  channels *= each;
  ir::Quantization part = *whole;
  const auto begin = whole->scales.begin() + first;
  part.scales.assign(begin, begin + channels);
  const auto zero = whole->zero_points.begin() + first;
  part.zero_points.assign(zero, zero + channels);
  return std::make_shared<const ir::Quantization>(std::move(part));
}

Constant transposed(const ir::Constant& matrix, int rows, int cols) {
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(matrix.bytes);
  const auto copy = [&](auto element) {
    constexpr std::size_t kSize = sizeof element;
    constexpr int kBlock = 32;  // both sides of a block stay in the cache
    const auto* from = static_cast<const std::uint8_t*>(matrix.data);
    for (int row = 0; row < rows; row += kBlock) {
      for (int col = 0; col < cols; col += kBlock) {
        for (int c = col; c < std::min(col + kBlock, cols); ++c) {
          for (int r = row; r < std::min(row + kBlock, rows); ++r)
            std::memcpy(bytes->data() + (uz(c) * uz(rows) + uz(r)) * kSize,
                        from + (uz(r) * uz(cols) + uz(c)) * kSize, kSize);
        }
      }
    }
  };
  if (size_of(matrix.dtype) == sizeof(std::uint8_t)) {
    copy(std::uint8_t{});
  } else if (size_of(matrix.dtype) == sizeof(std::uint16_t)) {
    copy(std::uint16_t{});
  } else {
    copy(std::uint32_t{});
  }
  return std::make_shared<const ir::Constant>(
      ir::Constant{bytes->data(), bytes->size(), matrix.dtype, bytes});
}

class Splitter {
 public:
  Splitter(ir::Graph& graph, std::int64_t limit)
      : graph_(graph), limit_(limit), writers_(ir::writers_of(graph)) {}

  bool split() {
    std::vector<ir::Node> nodes;
    for (const ir::Node& node : graph_.nodes) {
      if (is_too_large(node)) {
        split(node, nodes);
      } else if (has_large_table(node)) {
        split_table(node, nodes);
      } else {
        nodes.push_back(node);
      }
    }
    const bool changed = nodes.size() != graph_.nodes.size();
    graph_.nodes = std::move(nodes);
    if (changed) remove_dead(graph_);  // a TRANSPOSE without readers
    return changed;
  }

 private:
  bool is_too_large(const ir::Node& node) const {
    if (!node.kind->weights.divisible) return false;
    if (ir::input_of(node, ops::kRowFactors) >= 0) return false;
    const ir::Tensor& weights = graph_.tensor(weights_id(node));
    if (weights.storage_bytes() <= limit_ || weights.shape[0] < 2) return false;
    if (graph_.tensor(node.outputs[0]).placement) return false;
    if (ops::is_grouped(graph_, node)) return false;
    if (has_bias(node) && !graph_.tensor(bias_id(node)).is_constant()) return false;
    return weights.is_constant() || transposed_constant(weights_id(node)) != nullptr;
  }

  static int weights_id(const ir::Node& node) { return node.inputs[uz(node.kind->weights.slot)]; }
  static int bias_id(const ir::Node& node) { return node.inputs[uz(node.kind->weights.bias)]; }
  static bool has_bias(const ir::Node& node) {
    return node.inputs.size() > uz(node.kind->weights.bias) && bias_id(node) >= 0;
  }

  // The matrix that a TRANSPOSE turns into this tensor; null if there is none.
  const ir::Tensor* transposed_constant(int id) const {
    const int writer = writers_[uz(id)];
    if (writer < 0 || !ops::transposes_matrix(graph_.nodes[uz(writer)])) return nullptr;
    const ir::Tensor& source = graph_.tensor(graph_.nodes[uz(writer)].inputs[0]);
    return source.is_constant() ? &source : nullptr;
  }

  Constant weights_of(int id) const {
    if (graph_.tensor(id).is_constant()) return graph_.tensor(id).constant;
    const ir::Tensor& source = *transposed_constant(id);
    return transposed(*source.constant, source.shape[0], source.shape[1]);
  }

  // The table of passes::dynamic_range with the scales of some output channels.
  int part_of_scales(const ir::Tensor& weights, int table, int first, int channels,
                     const std::string& suffix) {
    const ir::Quantization& whole = *weights.quantization;
    if (!whole.per_axis()) return table;
    const std::vector<float> scales =
        part_of(weights.quantization, weights.shape[0], first, channels)->scales;
    constexpr std::size_t kVector = 16;  // kernels read whole vectors
    const std::size_t padded = (scales.size() + kVector - 1) / kVector * kVector;
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>(padded * sizeof(float));
    std::memcpy(bytes->data(), scales.data(), scales.size() * sizeof(float));
    ir::Tensor part = graph_.tensor(table);
    part.shape = ir::Shape({static_cast<int>(padded)});
    part.constant = std::make_shared<const ir::Constant>(
        ir::Constant{bytes->data(), bytes->size(), DType::kI32, bytes});
    return add(std::move(part), suffix);
  }

  bool has_large_table(const ir::Node& node) const {
    const int table = ops::table_of(node);
    if (table < 0 || graph_.tensor(node.outputs[0]).placement) return false;
    const ir::Tensor& tensor = graph_.tensor(table);
    return tensor.is_constant() && tensor.storage_bytes() > limit_ && tensor.shape[0] > 1;
  }

  // Each part adds its rows to those of the parts before it.
  void split_table(const ir::Node& node, std::vector<ir::Node>& nodes) {
    const ir::Tensor table = graph_.tensor(ops::table_of(node));
    const int all = table.shape[0];
    const int rows =
        static_cast<int>(std::max<std::int64_t>(limit_ / (table.storage_bytes() / all), 1));
    int before = -1;
    for (int first = 0; first < all; first += rows) {
      const int count = std::min(rows, all - first);
      const std::string suffix = " [" + std::to_string(first) + "...]";
      ir::Tensor part = table;
      part.shape[0] = count;
      part.constant = part_of(*table.constant, all, first, count);
      part.quantization = part_of(table.quantization, all, first, count);
      const int id = add(std::move(part), suffix);
      ir::Tensor so_far = graph_.tensor(node.outputs[0]);
      so_far.state = so_far.carried = -1;
      const bool is_last = first + count == all;
      const int result = is_last ? node.outputs[0] : add(std::move(so_far), suffix);
      nodes.push_back(ops::part_of_table(node, id, first, before, result));
      before = result;
    }
  }

  int add(ir::Tensor tensor, const std::string& suffix) {
    tensor.name += suffix;
    tensor.tflite_id = -1;
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  void split(const ir::Node& node, std::vector<ir::Node>& nodes) {
    const ir::Tensor weights = graph_.tensor(weights_id(node));
    const Constant bytes = weights_of(weights_id(node));
    const int whole = node.outputs[0];
    const int all = weights.shape[0];
    // Kernels are faster with multiples of their tiles.
    int channels =
        static_cast<int>(std::max<std::int64_t>(limit_ / (weights.storage_bytes() / all), 1));
    for (const int multiple : {64, 16, 4}) {
      if (channels >= multiple) {
        channels = channels / multiple * multiple;
        break;
      }
    }
    std::vector<int> parts;
    for (int first = 0; first < all; first += channels) {
      const int count = std::min(channels, all - first);
      const std::string suffix = " [" + std::to_string(first) + "...]";
      const auto slice = [&](ir::Tensor tensor, const ir::Constant& constant) {
        tensor.shape[0] = count;
        tensor.constant = part_of(constant, all, first, count);
        tensor.quantization = part_of(tensor.quantization, all, first, count);
        return add(std::move(tensor), suffix);
      };
      ir::Node part = node;
      part.inputs[uz(node.kind->weights.slot)] = slice(weights, *bytes);
      if (has_bias(node)) {
        const ir::Tensor bias = graph_.tensor(bias_id(node));
        part.inputs[uz(node.kind->weights.bias)] = slice(bias, *bias.constant);
      }
      if (const int id = ir::input_of(node, node.kind->slopes); id >= 0) {
        const ir::Tensor slopes = graph_.tensor(id);
        ir::set_input(part, node.kind->slopes, slice(slopes, *slopes.constant));
      }
      if (const int scales = ir::input_of(node, ops::kWeightScales); scales >= 0)
        ir::set_input(part, ops::kWeightScales,
                      part_of_scales(weights, scales, first, count, suffix));
      ir::Tensor result = graph_.tensor(whole);
      result.shape[result.shape.rank() - 1] = count;
      result.placement = ir::Placement{whole, all, first};
      part.outputs[0] = add(std::move(result), suffix);
      parts.push_back(part.outputs[0]);
      nodes.push_back(std::move(part));
    }
    nodes.push_back(ops::concatenation_of(parts, whole, graph_.tensor(whole).shape.rank() - 1));
  }

  ir::Graph& graph_;
  const std::int64_t limit_;
  const std::vector<int> writers_;
};

}  // namespace

bool split_weights(ir::Graph& graph, std::int64_t limit) { return Splitter(graph, limit).split(); }

}  // namespace clgpu::passes
