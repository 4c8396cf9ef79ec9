// The graph of a partition for particular shapes of its inputs: values that follow from shapes and
// constants are computed, and parameters that the model computes from shapes are set.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/verify/evaluator.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

/// By TFLite's tensor id: values that partitions have computed while planning. The partitions of a
/// session share them, because one may need as a constant what another one computes.
using KnownValues = std::map<int, Known>;

class Specialization {
 public:
  /// `evaluated`: nodes whose results are known while planning; `readers`: nodes that need such
  /// results as constants. By the id of their first result: the nodes of a loop have one index.
  /// `awaiting`: indices of those that read values which only an inference has; apply() finds
  /// these, the tensors `awaited`, in `known`. `inner`: see Sandbox.
  Specialization(const TfLiteContext& context, const InnerTensors* inner,
                 std::map<int, CpuNode> evaluated, std::map<int, CpuNode> readers,
                 std::set<int> awaiting, std::vector<int> awaited);

  /// Replaces the evaluated nodes of a graph by constants, for the shapes of the graph's inputs.
  /// Takes further values from `known`, and adds those it computes. Sets the shapes of all tensors.
  /// Throws ShapeError if a node does not support these shapes or values.
  void apply(ir::Graph& graph, KnownValues& known);

  /// Whether the values of other partitions differ from those that apply() has taken.
  bool has_changed(const ir::Graph& graph, const KnownValues& known) const;

  /// Takes changed values where the plan for the earlier ones remains right: only evaluated nodes
  /// read them, and what other nodes read of their results is as before. Returns false, with
  /// apply() to be called, if it does not.
  bool take(const ir::Graph& graph, KnownValues& known);

  /// The plan for the present values is there already: as after apply(), without a graph.
  void take_known(const ir::Graph& graph, const KnownValues& known);

  /// The number that decides on the results of the node whose first result is this tensor.
  void set_number(int result, std::int64_t number) { numbers_[result] = number; }

  /// A value that this partition may plan with; null if there is none.
  const Known* find(const KnownValues& known, int tensor) const;

  /// Removes the values that this partition has added.
  void withdraw(KnownValues& known) const;

 private:
  /// The nodes of a graph whose inputs have their shapes.
  void apply_nodes(ir::Graph& graph, KnownValues& known);
  void apply_within(const ir::Graph& graph, ir::Node& node, KnownValues& known);
  void evaluate(ir::Graph& graph, const ir::Node& node, KnownValues& known);
  void import(ir::Node& node, const CpuNode& recipe) const;

  Evaluator evaluator_;
  std::map<int, CpuNode> evaluated_, readers_;
  std::set<int> awaiting_;
  std::vector<int> awaited_;
  std::map<int, std::shared_ptr<const ir::Constant>> taken_;  // by TFLite's tensor id
  std::map<int, std::int64_t> numbers_;                       // by the first result of their node
  bool is_applied_ = false;  // the evaluator has the values of taken_
};

}  // namespace clgpu::delegate
