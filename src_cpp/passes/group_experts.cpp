#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "ir/fields.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/expert_matmul.hpp"
#include "ops/families/expert_sum.hpp"
#include "ops/families/gather.hpp"
#include "ops/families/one_hot.hpp"
#include "ops/families/reduce.hpp"
#include "ops/families/reshape.hpp"
#include "ops/families/split.hpp"
#include "ops/families/unary.hpp"
#include "ops/family.hpp"
#include "ops/shared/binary_op.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "group_experts";

/// Samples up to which the products with gathered matrices were measured to be faster than those of
/// all experts on tensor cores.
constexpr std::int64_t kMostOnTensorCores = 8;

/// What decides on the gates of all experts: the gate of expert e of a sample is the sum of the
/// weights whose index is e.
struct Picks {
  int indices = -1, weights = -1;  ///< tensors of samples * chosen elements
  std::int64_t samples = 0, chosen = 0, experts = 0;
  std::vector<int> nodes;  ///< that compute the gates of these, the last one first
};

struct Links {
  explicit Links(const ir::Graph& graph)
      : readers(ir::readers_of(graph)),
        writers(ir::writers_of(graph)),
        is_output(ir::output_mask(graph)) {}
  std::vector<std::vector<int>> readers;
  std::vector<int> writers;
  std::vector<bool> is_output;
};

const ops::BinaryAttrs* binary_of(const ir::Node& node, ops::BinaryOp op) {
  const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return binary != nullptr && binary->op == op && !binary->quantized && node.epilogue.empty()
             ? binary
             : nullptr;
}

/// The node that writes a tensor, or that of which it is a view, and the views between them;
/// nothing if there is none.
std::vector<int> sources_of(const ir::Graph& graph, const Links& links, int id) {
  std::vector<int> nodes;
  while (id >= 0 && links.writers[uz(id)] >= 0) {
    nodes.push_back(links.writers[uz(id)]);
    const ir::Node& node = graph.nodes[uz(nodes.back())];
    if (!node.kind->is_view) return nodes;
    id = node.inputs[0];
  }
  return {};
}

/// The two factors of `gates` [samples, experts] if these are the sum over the chosen ones of
/// weights [.., chosen, 1] times elements that are 1 at indices [.., chosen] and 0 elsewhere. Only
/// with indices of the largest elements, which are all different.
std::optional<Picks> picks_of(const ir::Graph& graph, const Links& links, int gates) {
  std::vector<int> nodes = sources_of(graph, links, gates);
  if (nodes.empty()) return std::nullopt;
  const ir::Node& sum = graph.nodes[uz(nodes.back())];
  const int axis = ops::summed_axis(graph, sum);
  const int terms = sum.inputs[0];
  if (axis < 0 || links.writers[uz(terms)] < 0) return std::nullopt;
  nodes.push_back(links.writers[uz(terms)]);
  const ir::Node& product = graph.nodes[uz(nodes.back())];
  if (!sum.epilogue.empty() || binary_of(product, ops::BinaryOp::kMul) == nullptr ||
      product.inputs.size() != 2)
    return std::nullopt;
  for (const int slot : {0, 1}) {
    const int hot = product.inputs[uz(slot)], weights = product.inputs[uz(1 - slot)];
    if (links.writers[uz(hot)] < 0) continue;
    const auto elements = ops::hot_elements(graph, graph.nodes[uz(links.writers[uz(hot)])]);
    if (!elements) continue;
    const auto on = number_of(graph.tensor(elements->on));
    const auto off = number_of(graph.tensor(elements->off));
    if (!on || !off || *on != 1.0F || *off != 0.0F) continue;
    const std::vector<int> selects = sources_of(graph, links, elements->indices);
    if (selects.empty() || !ops::family_of(graph.nodes[uz(selects.back())]).selects) continue;
    const ir::Shape& shape = graph.tensor(terms).shape;
    ir::Shape factors = shape;  // of the weights
    if (shape.rank() < 2 || axis != shape.rank() - 2 || graph.tensor(hot).shape != shape) continue;
    factors[axis + 1] = 1;
    if (graph.tensor(weights).shape != factors || graph.tensor(weights).is_constant()) continue;
    if (shape.elements() == 0) continue;
    nodes.push_back(links.writers[uz(hot)]);
    return Picks{elements->indices, weights,         shape.elements(0, axis),
                 shape[axis],       shape[axis + 1], nodes};
  }
  return std::nullopt;
}

/// Experts whose gates are the parts of one tensor.
struct Group {
  int gates = -1;                         ///< the tensor
  std::vector<int> products;              ///< by expert: the node that multiplies it by its gate
  std::vector<std::vector<int>> members;  ///< by expert: the nodes that run only with this gate
  std::vector<int> sums;                  ///< the nodes that add the products
  std::vector<int> others;                ///< those of them that add something else
  int result = -1;                        ///< their sum

  /// Whether a tensor is a product with a gate, or a sum of some.
  bool is_sum(const ir::Graph& graph, int id) const {
    const auto writes = [&](int n) { return graph.nodes[uz(n)].outputs[0] == id; };
    return std::any_of(products.begin(), products.end(), writes) ||
           std::any_of(sums.begin(), sums.end(), writes);
  }

  /// All of them.
  std::vector<int> nodes() const {
    std::vector<int> all = products;
    all.insert(all.end(), sums.begin(), sums.end());
    for (const std::vector<int>& each : members) all.insert(all.end(), each.begin(), each.end());
    return all;
  }
};

/// Of each node that splits gates, the experts that it is for. Nothing where a gate has no expert
/// or several.
std::map<int, Group> groups_of(const ir::Graph& graph, const Links& links) {
  std::map<int, Group> groups;
  std::set<int> broken;
  std::map<int, std::vector<int>> members;  // by gate
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const ir::Node& node = graph.nodes[uz(n)];
    if (node.predicate >= 0 && node.predicate_element < 0) members[node.predicate].push_back(n);
    if (binary_of(node, ops::BinaryOp::kGated) == nullptr) continue;
    const int gate = node.inputs[1], writer = links.writers[uz(gate)];
    if (writer < 0) continue;
    const ir::Node& split = graph.nodes[uz(writer)];
    const int gates = ops::split_into_elements(graph, split);
    if (gates < 0) continue;
    Group& group = groups[writer];
    group.gates = gates;
    group.products.resize(split.outputs.size(), -1);
    const auto at = std::find(split.outputs.begin(), split.outputs.end(), gate);
    int& product = group.products[uz(at - split.outputs.begin())];
    if (product >= 0 || node.predicate >= 0) broken.insert(writer);
    product = n;
  }
  for (auto& [writer, group] : groups) {
    for (const int product : group.products) {
      if (product < 0) {
        broken.insert(writer);
        break;
      }
      group.members.push_back(members[graph.nodes[uz(product)].inputs[1]]);
    }
  }
  for (const int writer : broken) groups.erase(writer);
  return groups;
}

/// Finds the additions of the products; false if something else is done with them. Between them,
/// other tensors may be added, zeros with which a loop has begun, for example.
bool find_sum(const ir::Graph& graph, const Links& links, Group& group) {
  std::set<int> open;  // tensors that are to be added
  for (const int product : group.products) open.insert(graph.nodes[uz(product)].outputs[0]);
  const ir::Shape shape = graph.tensor(*open.begin()).shape;
  const auto is_part = [&](int id) {
    return open.count(id) > 0 && links.readers[uz(id)].size() == 1 && !links.is_output[uz(id)] &&
           graph.tensor(id).shape == shape;
  };
  for (int n = 0; n < static_cast<int>(graph.nodes.size()) && open.size() > 1; ++n) {
    const ir::Node& node = graph.nodes[uz(n)];
    const std::set<int> inputs(node.inputs.begin(), node.inputs.end());
    const auto parts = std::count_if(node.inputs.begin(), node.inputs.end(), is_part);
    if (parts == 0 || binary_of(node, ops::BinaryOp::kAdd) == nullptr || node.predicate >= 0 ||
        inputs.size() != node.inputs.size())
      continue;
    const bool is_other = parts < static_cast<std::ptrdiff_t>(node.inputs.size());
    // What else is added has no part in the products, as each of these has one reader.
    const auto is_open = [&](int id) { return open.count(id) > 0; };
    if (is_other && (node.inputs.size() != 2 ||
                     std::count_if(node.inputs.begin(), node.inputs.end(), is_open) != 1))
      continue;
    for (const int id : node.inputs) open.erase(id);
    open.insert(node.outputs[0]);
    group.sums.push_back(n);
    if (is_other) group.others.push_back(n);
  }
  group.result = *open.begin();
  return open.size() == 1 && !group.sums.empty();
}

/// Whether an expert's nodes compute what those of the first one do, with other constants.
class Comparison {
 public:
  Comparison(const ir::Graph& graph, const std::vector<int>& first, const std::vector<int>& other)
      : graph_(graph) {
    same_ = first.size() == other.size();
    for (std::size_t i = 0; same_ && i < first.size(); ++i)
      same_ = match(graph.nodes[uz(first[i])], graph.nodes[uz(other[i])]);
  }

  /// ... and the tensor of the other one is what that of the first one is to it.
  bool same(int first, int other) const {
    if (!same_) return false;
    const auto known = of_.find(first);
    return known != of_.end() ? known->second == other : first == other;
  }

 private:
  bool match(const ir::Node& a, const ir::Node& b) {
    const auto attrs = [](const ir::Node& node) {
      return node.kind->attrs != nullptr && node.attrs != nullptr
                 ? ir::value_of(*node.kind->attrs, *node.attrs)
                 : std::nullopt;
    };
    if (a.kind != b.kind || a.inputs.size() != b.inputs.size() || !(attrs(a) == attrs(b)) ||
        a.outputs.size() != b.outputs.size() || !a.graphs.empty() || !b.graphs.empty() ||
        a.epilogue.activation != b.epilogue.activation || a.epilogue.alpha != b.epilogue.alpha ||
        a.epilogue.residual_after != b.epilogue.residual_after || a.tail != nullptr ||
        b.tail != nullptr)
      return false;
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (!same_input(a.inputs[i], b.inputs[i])) return false;
    }
    for (std::size_t i = 0; i < a.outputs.size(); ++i) {
      if (graph_.tensor(a.outputs[i]).shape != graph_.tensor(b.outputs[i]).shape) return false;
      of_[a.outputs[i]] = b.outputs[i];
    }
    return true;
  }

  bool same_input(int a, int b) const {
    if (a < 0 || b < 0) return a == b;
    const ir::Tensor &x = graph_.tensor(a), &y = graph_.tensor(b);
    if (x.is_constant() && y.is_constant())
      return x.shape == y.shape && x.dtype == y.dtype && x.constant->dtype == y.constant->dtype &&
             !x.is_quantized() && !y.is_quantized();
    const auto known = of_.find(a);
    return known != of_.end() ? known->second == b : a == b;
  }

  const ir::Graph& graph_;
  bool same_ = false;
  std::map<int, int> of_;  // tensors that the first one computes, and those of the other one
};

/// Builds the nodes of a group. Each tensor of an expert, [samples.., n], becomes one of all that
/// are chosen, [samples, chosen, 1, n].
class Grouping {
 public:
  Grouping(ir::Graph& graph, const Group& group, const Picks& picks)
      : graph_(graph), group_(group), picks_(picks) {}

  /// Why there are no such nodes; empty if there are.
  std::string build(const DeviceInfo& device) {
    const int tensors = static_cast<int>(graph_.tensors.size());
    std::string reason = try_build(device);
    if (!reason.empty()) graph_.tensors.resize(uz(tensors));
    return reason;
  }

  std::vector<ir::Node> made;

 private:
  std::string try_build(const DeviceInfo& device) {
    const auto samples = static_cast<int>(picks_.samples), chosen = static_cast<int>(picks_.chosen);
    const ir::Node& first = graph_.nodes[uz(group_.products[0])];
    const ir::Node last = graph_.nodes[uz(group_.sums.back())];
    int indices = picks_.indices;
    if (graph_.tensor(indices).shape != ir::Shape{samples, chosen})
      indices = view(first, indices, {samples, chosen});
    for (std::size_t i = 0; i < group_.members[0].size(); ++i) {
      const ir::Node node = graph_.nodes[uz(group_.members[0][i])];
      const std::string where = node.op + " at node " + std::to_string(node.tflite_index);
      if (!add(node, static_cast<int>(i), indices, device)) return where + unsuitable_;
    }
    const auto y = of_.find(first.inputs[0]);
    if (y == of_.end()) return "what the gates multiply is not computed by the experts";
    const ir::Shape& result = graph_.tensor(group_.result).shape;
    const int cols = graph_.tensor(y->second).shape.back(0);
    const ir::Shape own = {samples, cols};
    if (result.elements() != own.elements() || result.back(0) != cols)
      return "the gates broadcast the results of the experts";
    int sum = group_.others.empty() ? group_.result : add_tensor(last, result);
    const int rows = result == own ? sum : add_tensor(last, own);
    made.push_back(ops::expert_sum(last, y->second, picks_.weights, rows));
    if (rows != sum) made.push_back(ops::reshape_of(last, rows, sum, result));
    for (const int n : group_.others) {
      ir::Node addition = graph_.nodes[uz(n)];
      for (int& id : addition.inputs) {
        if (group_.is_sum(graph_, id)) id = sum;
      }
      sum = n == group_.others.back() ? group_.result : add_tensor(last, result);
      addition.outputs = {sum};
      made.push_back(std::move(addition));
    }
    return {};
  }

  /// Adds what a node of the first expert, number `member` of its nodes, becomes.
  bool add(const ir::Node& node, int member, int indices, const DeviceInfo& device) {
    unsuitable_ = " has no form for several experts";
    const int result = node.outputs[0];
    const ir::Shape shape = graph_.tensor(result).shape;
    if (node.outputs.size() != 1 || shape.elements() != picks_.samples * shape.back(0) ||
        graph_.tensor(result).dtype != DType::kF32)
      return false;
    if (ops::is_expert_product(graph_, node)) return multiply(node, member, indices, device);
    // All others take each number by itself, with those at its place in other tensors, or with one
    // number for all.
    if (node.kind->is_view) {
      const auto source = of_.find(node.inputs[0]);
      if (source == of_.end() || graph_.tensor(source->first).shape.back(0) != shape.back(0))
        return false;
      of_[result] = source->second;
      return true;
    }
    const bool is_binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get()) != nullptr;
    if (!is_binary && !ops::as_epilogue(node) && !ops::unary_op(node)) return false;
    ir::Node grouped = node;
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const int id = node.inputs[slot];
      if (const auto own = of_.find(id); own != of_.end()) {
        if (graph_.tensor(id).shape != shape) return false;
        grouped.inputs[slot] = own->second;
      } else if (!is_number_of_all(member, slot)) {
        return false;
      }
    }
    grouped.outputs = {of_[result] = add_result(node, shape.back(0))};
    grouped.predicate = -1;
    made.push_back(std::move(grouped));
    return true;
  }

  /// Whether an input of a node is the same number for all experts.
  bool is_number_of_all(int member, std::size_t slot) const {
    std::optional<float> first;
    for (const std::vector<int>& members : group_.members) {
      const int id = graph_.nodes[uz(members[uz(member)])].inputs[slot];
      const auto number = id >= 0 ? number_of(graph_.tensor(id)) : std::nullopt;
      if (!number || (first && *first != *number)) return false;
      first = number;
    }
    return first.has_value();
  }

  bool multiply(const ir::Node& node, int member, int indices, const DeviceInfo& device) {
    const int x = node.inputs[0];
    const ir::Shape matrix = graph_.tensor(node.inputs[1]).shape, from = graph_.tensor(x).shape;
    if (from.elements() != picks_.samples * matrix[1]) return false;
    const auto experts = static_cast<int>(picks_.experts);
    const auto samples = static_cast<int>(picks_.samples), chosen = static_cast<int>(picks_.chosen);
    const ir::Shape all = {experts, matrix[0], matrix[1]};
    const auto bytes = static_cast<std::uint64_t>(all.elements()) * sizeof(float);
    if (device.max_object_bytes > 0 && bytes > device.max_object_bytes) {
      unsuitable_ = ": the matrices of all experts have " + std::to_string(bytes) +
                    " bytes as floats, and the largest object of the device " +
                    std::to_string(device.max_object_bytes);
      return false;
    }
    const int matrices = stack(node, member, 1, all);
    int input = -1;
    if (const auto own = of_.find(x); own != of_.end()) {
      input = own->second;
    } else {
      const auto [known, is_new] = views_.try_emplace(x, -1);
      if (is_new) known->second = view(node, x, {samples, 1, 1, matrix[1]});
      input = known->second;
    }
    const int product = add_result(node, matrix[0]);
    made.push_back(ops::expert_product(node, input, matrices, indices, product));
    of_[node.outputs[0]] = product;
    const int slot = node.kind->weights.bias;
    if (ir::input_of(node, slot) < 0) return true;
    made.back().epilogue = {};
    const int biases = stack(node, member, slot, {experts, matrix[0]});
    const int bias = add_tensor(node, {samples, chosen, matrix[0]});
    made.push_back(ops::rows_of_table(node, biases, indices, bias));
    const int result = of_[node.outputs[0]] = add_result(node, matrix[0]);
    const int column = view(node, bias, {samples, chosen, 1, matrix[0]});
    made.push_back(ops::sum_of(node, product, column, result));
    return true;
  }

  /// One constant of those that all experts have at an input of a node.
  int stack(const ir::Node& node, int member, int slot, const ir::Shape& shape) {
    std::vector<int> parts;
    for (const std::vector<int>& members : group_.members)
      parts.push_back(graph_.nodes[uz(members[uz(member)])].inputs[uz(slot)]);
    const int whole = add_tensor(node, shape);
    made.push_back(ops::stack_of(parts, whole));
    made.back().tflite_index = node.tflite_index;
    return whole;
  }

  int add_result(const ir::Node& node, int cols) {
    return add_tensor(node,
                      {static_cast<int>(picks_.samples), static_cast<int>(picks_.chosen), 1, cols});
  }

  int add_tensor(const ir::Node& node, const ir::Shape& shape, DType dtype = DType::kF32) {
    ir::Tensor tensor;
    if (!graph_.tensor(node.outputs[0]).name.empty())
      tensor.name = graph_.tensor(node.outputs[0]).name + " of the experts that are picked";
    tensor.dtype = tensor.storage = dtype;
    tensor.shape = shape;
    tensor.model_rank = shape.rank();
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  int view(const ir::Node& node, int source, const ir::Shape& shape) {
    const int result = add_tensor(node, shape, graph_.tensor(source).dtype);
    made.push_back(ops::reshape_of(node, source, result, shape));
    return result;
  }

  ir::Graph& graph_;
  const Group& group_;
  const Picks& picks_;
  std::map<int, int> of_;     // tensors of the first expert, and those of all that are chosen
  std::map<int, int> views_;  // of what all experts read
  std::string unsuitable_;
};

/// Why experts stay apart; empty if they do not. Finds their sum.
std::string problem_of(const ir::Graph& graph, const Links& links, const Picks& picks, Group& group,
                       const DeviceInfo& device) {
  const auto count = std::to_string(picks.chosen) + " of " + std::to_string(picks.experts);
  if (picks.experts != static_cast<std::int64_t>(group.products.size()))
    return "the gates have other axes than experts and samples";
  if (2 * picks.chosen > picks.experts)
    return count + " experts are chosen, which is more than half";
  const bool tensor_cores = device.mma_f16 || device.mma_tf32;
  if (tensor_cores && picks.samples > kMostOnTensorCores)
    return std::to_string(picks.samples) + " samples; up to " + std::to_string(kMostOnTensorCores) +
           " are grouped on tensor cores";
  for (std::size_t e = 1; e < group.products.size(); ++e) {
    const ir::Node &first = graph.nodes[uz(group.products[0])],
                   &other = graph.nodes[uz(group.products[e])];
    const Comparison comparison(graph, group.members[0], group.members[e]);
    if (!comparison.same(first.inputs[0], other.inputs[0]))
      return "the experts differ in more than constants: the first one and number " +
             std::to_string(e);
  }
  if (!find_sum(graph, links, group))
    return "something else than additions reads the products with the gates";
  return {};
}

/// Marks those of the nodes that compute gates whose results nobody needs any more.
void mark_unread(ir::Graph& graph, const Links& links, const std::vector<int>& nodes, int into,
                 std::vector<bool>& gone) {
  for (const int n : nodes) {
    const ir::Node& node = graph.nodes[uz(n)];
    const bool is_read = std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
      const std::vector<int>& readers = links.readers[uz(id)];
      return links.is_output[uz(id)] ||
             std::any_of(readers.begin(), readers.end(), [&](int r) { return !gone[uz(r)]; });
    });
    if (is_read) return;
    gone[uz(n)] = true;
    ir::applied(graph, kPass, node.tflite_index, into);
  }
}

void tell(ir::Graph& graph, const Group& group, const Picks& picks) {
  for (std::size_t e = 0; e < group.members.size(); ++e) {
    for (std::size_t i = 0; e > 0 && i < group.members[e].size(); ++i) {
      ir::applied(graph, kPass, graph.nodes[uz(group.members[e][i])].tflite_index,
                  graph.nodes[uz(group.members[0][i])].tflite_index);
    }
  }
  const int last = graph.nodes[uz(group.sums.back())].tflite_index;
  for (const auto* nodes : {&group.products, &group.sums}) {
    for (const int n : *nodes) {
      const bool stays = std::count(group.others.begin(), group.others.end(), n) > 0;
      if (n == group.sums.back() || stays) continue;
      ir::applied(graph, kPass, graph.nodes[uz(n)].tflite_index, last);
    }
  }
  ir::applied(graph, kPass, last, -1,
              "for each sample, the " + std::to_string(picks.chosen) + " of " +
                  std::to_string(picks.experts) +
                  " experts that it has picked are computed, all samples together");
}

}  // namespace

void group_experts(ir::Graph& graph, bool groups, const DeviceInfo& device) {
  const Links links(graph);
  std::map<int, Group> found = groups_of(graph, links);
  if (found.empty()) return;
  if (!groups) {
    return ir::skipped(graph, kPass,
                       "with a memory budget, a plan of precisions, or as the option engines names "
                       "a kernel of its parts");
  }
  ir::rely_on_shapes(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  std::vector<ir::Node> made;
  for (auto& [split, group] : found) {
    const int index = graph.nodes[uz(split)].tflite_index;
    const auto picks = picks_of(graph, links, group.gates);
    if (!picks) {
      ir::declined(graph, kPass, index,
                   "the gates are not known to be a sum of weights at the indices of the largest "
                   "scores");
      continue;
    }
    if (const std::string problem = problem_of(graph, links, *picks, group, device);
        !problem.empty()) {
      ir::declined(graph, kPass, index, problem);
      continue;
    }
    Grouping grouping(graph, group, *picks);
    if (const std::string problem = grouping.build(device); !problem.empty()) {
      ir::declined(graph, kPass, index, problem);
      continue;
    }
    std::move(grouping.made.begin(), grouping.made.end(), std::back_inserter(made));
    tell(graph, group, *picks);
    for (const int n : group.nodes()) gone[uz(n)] = true;
    std::vector<int> of_gates = picks->nodes;
    of_gates.insert(of_gates.begin(), split);
    mark_unread(graph, links, of_gates, graph.nodes[uz(group.sums.back())].tflite_index, gone);
  }
  if (made.empty()) return;
  ir::remove_nodes(graph, gone);
  std::move(made.begin(), made.end(), std::back_inserter(graph.nodes));
  ir::sort_nodes(graph);
}

}  // namespace clgpu::passes
