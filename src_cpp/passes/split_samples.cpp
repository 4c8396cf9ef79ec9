#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/rows.hpp"
#include "ops/family.hpp"
#include "ops/shared/binary_op.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/work.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

bool is_product(const ir::Node& node) {
  return ops::family_of(node).work_kind == ops::WorkKind::kProduct;
}

/// The nodes with one gate as their predicate.
class Expert {
 public:
  Expert(const ir::Graph& graph, int gate)
      : graph_(graph), gate_(gate), samples_(graph.tensor(gate).shape[0]) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const ir::Node& node = graph.nodes[n];
      if (node.predicate == gate && node.predicate_element < 0 && divides(node)) parts_.insert(n);
    }
  }

  int samples() const { return samples_; }
  /// The nodes that can be computed sample by sample.
  const std::set<std::size_t>& parts() const { return parts_; }

  /// Arithmetic operations of one of them for a sample, on average.
  double flops() const {
    double all = 0;
    for (const std::size_t n : parts_) all += ops::work_of({graph_, graph_.nodes[n]}).flops;
    return parts_.empty() ? 0 : all / samples_ / static_cast<double>(parts_.size());
  }

  /// Whether there is a product among them, and an element of the gate belongs to each sample, up
  /// to the multiplications with the gate.
  bool keeps_samples() const {
    if (std::none_of(parts_.begin(), parts_.end(),
                     [&](std::size_t n) { return is_product(graph_.nodes[n]); }))
      return false;
    std::set<int> behind;  // tensors that depend on the parts
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool is_part = parts_.count(n) > 0;
      const bool depends = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](int id) { return behind.count(id) > 0; });
      if (!is_part && !depends) continue;
      if (is_gated(node)) {
        const ir::Shape& result = graph_.tensor(node.outputs[0]).shape;
        if (graph_.tensor(gate_).shape.rank() != result.rank() || result[0] != samples_)
          return false;
        continue;
      }
      if (!is_part && (node.predicate != gate_ || !keeps(node))) return false;
      behind.insert(node.outputs.begin(), node.outputs.end());
    }
    return true;
  }

 private:
  bool has_samples(int id) const {
    const ir::Shape& shape = graph_.tensor(id).shape;
    return shape.rank() >= 2 && shape[0] == samples_;
  }

  bool have_samples(const std::vector<int>& ids) const {
    return std::all_of(ids.begin(), ids.end(), [&](int id) { return has_samples(id); });
  }

  bool is_image(int id) const {
    return graph_.tensor(id).shape.rank() == 4 && !graph_.tensor(id).placement;
  }

  bool is_gated(const ir::Node& node) const {
    const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
    return binary != nullptr && binary->op == ops::BinaryOp::kGated && node.inputs[1] == gate_;
  }

  /// A node of images all of whose inputs are images of the samples, or the same for all of them.
  bool divides(const ir::Node& node) const {
    const ops::RowRules* rules = ops::family_of(node).rows;
    const auto image = [&](int id) { return is_image(id); };
    if (rules == nullptr || !have_samples(node.outputs) ||
        !std::all_of(node.outputs.begin(), node.outputs.end(), image) ||
        rules->unit({graph_, node}) == 0)
      return false;
    const ir::Weights& weights = node.kind->weights;
    for (int slot = 0; slot < static_cast<int>(node.inputs.size()); ++slot) {
      const int id = node.inputs[uz(slot)];
      if (id < 0) continue;
      const ir::Tensor& tensor = graph_.tensor(id);
      const bool is_weight =
          slot == weights.slot || slot == weights.bias || slot == node.kind->slopes;
      const bool is_same = tensor.shape.rank() < 4 || tensor.shape[0] == 1;
      if (tensor.is_constant() ? !is_weight && !is_same
                               : is_weight || !is_image(id) || !has_samples(id))
        return false;
    }
    return true;
  }

  /// Whether a sample of the results depends on this sample of the inputs only.
  bool keeps(const ir::Node& node) const {
    const int rank = graph_.tensor(node.outputs[0]).shape.rank();
    const bool is_rowwise = ops::family_of(node).rows == &ops::kRowwise;
    // Broadcasting aligns last axes: samples of an operand of another rank meet another axis.
    const auto of_samples = [&](int id) {
      return id < 0 || graph_.tensor(id).is_constant() ||
             (has_samples(id) && (!is_rowwise || graph_.tensor(id).shape.rank() == rank));
    };
    if (!have_samples(node.outputs) ||
        !std::all_of(node.inputs.begin(), node.inputs.end(), of_samples))
      return false;
    const bool is_dense = is_product(node) && node.kind->weights.bias >= 0;
    return node.kind->is_view || is_dense || is_rowwise;
  }

  const ir::Graph& graph_;
  int gate_;
  int samples_;
  std::set<std::size_t> parts_;
};

class Splitter {
 public:
  explicit Splitter(ir::Graph& graph)
      : graph_(graph), readers_(ir::readers_of(graph)), is_output_(ir::output_mask(graph)) {}

  void split(const Expert& expert) {
    const std::set<std::size_t>& parts = expert.parts();
    gone_.insert(parts.begin(), parts.end());
    std::vector<ir::Node>& made = made_[*parts.begin()];
    std::map<int, std::vector<int>> samples;  // of the results of the parts
    for (int s = 0; s < expert.samples(); ++s) {
      for (const std::size_t n : parts) {
        ir::Node node = graph_.nodes[n];
        node.predicate_element = s;
        for (int& id : node.inputs) {
          if (id < 0 || graph_.tensor(id).is_constant()) continue;
          const auto own = samples.find(id);
          id = own != samples.end() ? own->second[uz(s)]
                                    : outside(id, expert.samples(), node.tflite_index, made)[uz(s)];
        }
        for (int& id : node.outputs) {
          const int sample = add_sample(id, s);
          samples[id].push_back(sample);
          id = sample;
        }
        made.push_back(std::move(node));
      }
    }
    for (const std::size_t n : parts) {
      for (const int id : graph_.nodes[n].outputs) {
        const std::vector<int>& readers = readers_[uz(id)];
        const bool is_inside = std::all_of(readers.begin(), readers.end(),
                                           [&](int r) { return parts.count(uz(r)) > 0; });
        if (is_inside && !is_output_[uz(id)]) continue;
        ir::Node whole = ops::concatenation_of(samples[id], id, 0);
        whole.tflite_index = graph_.nodes[n].tflite_index;
        whole.predicate = graph_.nodes[n].predicate;
        made.push_back(std::move(whole));
      }
    }
  }

  void finish() {
    std::vector<ir::Node> nodes;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (ir::Node& node : made_[n]) nodes.push_back(std::move(node));
      if (gone_.count(n) == 0) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
    ir::sort_nodes(graph_);
    ir::rely_on_shapes(graph_);  // how many samples there are
  }

 private:
  int add_sample(int id, int sample) {
    ir::Tensor tensor = graph_.tensor(id);
    tensor.name += " sample " + std::to_string(sample);
    tensor.tflite_id = -1;
    tensor.state = -1;
    tensor.shape[0] = 1;
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  /// The samples of a tensor that is computed as a whole: copies, which all experts share.
  const std::vector<int>& outside(int id, int count, int reader, std::vector<ir::Node>& made) {
    std::vector<int>& samples = outside_[id];
    for (int s = static_cast<int>(samples.size()); s < count; ++s) {
      samples.push_back(add_sample(id, s));
      ir::Node copy = ops::sample_of(id, s, samples.back());
      copy.tflite_index = reader;
      made.push_back(std::move(copy));
    }
    return samples;
  }

  ir::Graph& graph_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<bool> is_output_;
  std::map<int, std::vector<int>> outside_;
  std::map<std::size_t, std::vector<ir::Node>> made_;  // by the first node of an expert
  std::set<std::size_t> gone_;
};

}  // namespace

void split_samples(ir::Graph& graph, int most, double flops) {
  std::set<int> gates;
  for (const ir::Node& node : graph.nodes) {
    if (node.predicate >= 0 && node.predicate_element < 0) gates.insert(node.predicate);
  }
  std::vector<Expert> experts;
  for (const int gate : gates) {
    const ir::Shape& shape = graph.tensor(gate).shape;
    if (shape.rank() < 2 || shape[0] < 2 || shape[0] > most || shape.elements() != shape[0])
      continue;
    Expert expert(graph, gate);
    if (expert.flops() >= flops && expert.keeps_samples()) experts.push_back(std::move(expert));
  }
  if (experts.empty()) return;
  Splitter splitter(graph);
  for (const Expert& expert : experts) splitter.split(expert);
  splitter.finish();
}

}  // namespace clgpu::passes
