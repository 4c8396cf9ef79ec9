// The subgraph passed to Prepare, read once: every node is imported or refused.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/extract.hpp"
#include "delegate/options.hpp"
#include "delegate/verify/shadow.hpp"
#include "ir/graph.hpp"
#include "ops/family.hpp"
#include "tfl/graph_operands.hpp"

namespace clgpu::delegate {

/// What a loop or a branch runs whose condition only an inference knows: graphs of two lists of
/// nodes. As of ir::Runs, and with the condition of the next round as the last result of a round.
struct RunGraphs {
  std::size_t split = 0;                ///< nodes of the first one, in ModelNode::inner
  std::vector<int> values;              ///< tensors with the inputs while it runs
  std::vector<int> results, otherwise;  ///< tensors with the results of the first and of the second
};

/// A node of the model or, in a loop or a branch that is part of the graph around it, one of an
/// inner graph.
struct ModelNode {
  int index = 0;  ///< of the node, in TFLite's numbering; inner nodes have that of their loop
  std::string op;
  std::vector<int> inputs, outputs;  ///< TFLite tensor ids; -1 for a missing optional input
  const ops::Family* family = nullptr;
  const ops::Operation* operation = nullptr;  ///< of the family
  ops::Imported imported;
  std::shared_ptr<const ir::Constant> folded;  ///< decoded result of a DENSIFY
  bool works = false;               ///< its family accepts it, and nothing has failed on the device
  bool claimed = false;             ///< works, and is not left on the CPU for another reason
  std::optional<Refusal> refusal;   ///< why it is not claimed
  std::optional<Refusal> as_graph;  ///< why a composite runs as its graph, not as one operation
  bool folded_at_load = false;      ///< claimed, and computed once: a constant
  bool evaluated = false;   ///< its results follow from shapes and constants: planning computes
                            ///< them on the host
  std::vector<int> awaits;  ///< tensors with values that planning needs and only an inference has
  int measures = -1;        ///< tensor with a number (ops::Operation::measured) that planning needs
  bool hosted = false;  ///< evaluated because a node awaits its results, or those of a node that
                        ///< reads them; once an inference has its operands
  bool has_side_effect = false;  ///< beyond its outputs; so have loops and branches
  bool reads_values = false;     ///< its attributes depend on such results
  std::shared_ptr<const CpuNode> cpu;
  // Of a loop, a branch or a composite that works as its graphs: what it computes, in execution
  // order, and the tensors with its results.
  std::vector<ModelNode> inner;
  std::vector<int> results;
  std::set<int> graphs;  ///< whose nodes these are
  /// Of an inner node that is itself a loop or a branch, whose graphs have the nodes `inner`.
  std::shared_ptr<const RunGraphs> run;

  /// Whether planning needs something that only an inference has.
  bool waits() const { return !awaits.empty() || measures >= 0; }
  bool is_inlined() const { return works && !imported.graphs.empty() && run == nullptr; }
};

/// Nodes of a partition that are planned and run together, by index, and tensors by TFLite's ids.
struct StageNodes {
  std::vector<int> nodes, outputs;
  std::vector<int> values;  ///< inputs that planning needs, because an earlier stage computes them
};

class Model {
 public:
  /// Reads the execution plan of a subgraph; throws Error if the runtime does not provide it.
  Model(TfLiteContext& context, const Options& options);

  std::vector<ModelNode> nodes;  ///< in execution order
  std::set<int> model_outputs;   ///< tensors whose values the runtime needs, even if no node on the
                                 ///< CPU reads them

  ModelNode& node(int index) { return nodes[position_.at(index)]; }
  const ModelNode& node(int index) const { return nodes[position_.at(index)]; }

  /// Leaves a node on the CPU permanently.
  void refuse(int index, Refusal refusal);

  /// Claims a node that only computes constants if all its readers are claimed. In either case each
  /// partition folds its own copy of the constants that work, so no constant crosses its border.
  void settle_constants();

  /// Whether a node works and everything it reads is known at load time.
  bool computes_constant(const ModelNode& node) const;

  /// Whether the model leaves a dimension of a tensor open.
  bool is_dynamic() const { return dynamic_; }

  /// Whether a node on the CPU writes an input of these nodes: the runtime may have an old shape of
  /// it, if it claims nodes again because the model's inputs were resized.
  bool follows_cpu(const std::vector<int>& node_indices) const;

  /// Indices of the claimed nodes.
  std::vector<int> claimed() const;

  /// The nodes that the CPU needs to compute a partition, constants included, in execution order.
  std::vector<CpuNode> cpu_nodes(const std::vector<int>& node_indices) const;

  /// Leaves resources to the CPU that several of these partitions use, or partitions and the CPU:
  /// the runtime orders partitions by their tensors only. Returns whether it left any.
  bool leave_shared_resources(const std::vector<std::vector<int>>& partitions);

  /// Of the subgraph.
  int tensor_count() const { return static_cast<int>(context_.tensors_size); }

  /// Whether a node writes the tensor.
  bool is_computed(int tensor) const;

  /// Whether a node outside of these reads the tensor.
  bool is_read_outside(int tensor, const std::set<int>& node_indices) const;

  /// Graphs whose nodes are part of claimed nodes, and that no other node runs.
  std::set<const TfLiteContext*> inlined_graphs() const;

  /// The stages of a partition with these outputs, in the order in which they run.
  std::vector<StageNodes> stages(const std::vector<int>& node_indices,
                                 const std::vector<int>& outputs) const;
  Extract extract(const TfLiteContext& context, const StageNodes& stage) const;
  /// Inputs with values that planning needs.
  std::vector<int> awaited(const StageNodes& stage) const;

 private:
  /// The node in the IR, with the tensors that `id_of` gives for TFLite's, and without new values
  /// of states.
  static ir::Node ir_node(const ModelNode& node, const std::function<int(int)>& id_of);
  /// Slots of the inputs that are variable tensors which the node updates.
  static std::vector<int> states_of(const ModelNode& node);
  /// A node that runs graphs, and one of these.
  ir::Node running_node(const ModelNode& node, const std::function<int(int)>& id_of) const;
  std::shared_ptr<const ir::Graph> running_graph(const ModelNode& node, bool is_first) const;
  /// What the CPU needs to compute a node.
  static CpuNode cpu_node(const ModelNode& node);
  ir::Graph graph(const std::vector<int>& node_indices, const std::vector<int>& outputs,
                  std::vector<StateSource>& states) const;
  Measured measured(const ModelNode& node) const;
  std::unique_ptr<Specialization> specialization(const TfLiteContext& context,
                                                 const std::vector<int>& node_indices,
                                                 const std::vector<int>& awaited) const;
  // Loops and branches, in inline.cpp.

  /// A graph of the model that a node runs, with ids of its own.
  struct InnerGraph {
    const TfLiteContext* context = nullptr;  ///< to tell it from others; not to be used
    std::vector<TfLiteTensor> tensors;
    std::vector<CpuNode> nodes;
    std::vector<int> inputs, outputs;
    std::map<int, int> constants;  ///< ids in whole_, by those of the graph
    std::map<int, int> scratch;    ///< the same, of results that only a condition needs
  };
  /// Nodes of inner graphs, and how far they are from the limits.
  struct Inlining {
    std::vector<ModelNode> nodes;
    std::set<int> graphs;      ///< that they belong to
    std::set<int> used;        ///< constants that they read
    std::vector<int> path;     ///< the graphs around the current node
    std::size_t steps = 0;     ///< nodes and rounds
    std::size_t repeated = 0;  ///< bytes of constants that several rounds read
    /// Why the last attempt has failed: planning does not know a condition, or there are too many
    /// rounds, so that the graphs can still be run.
    bool is_open = false;
    bool unrolls = false;  ///< within a loop or branch that becomes part of the graph around it
  };
  /// Makes the graphs that a node runs a part of it, or refuses it.
  void inline_graphs(ModelNode& node, const Options& options);
  /// Tensors with the results of a loop or branch. Adds its nodes to `all`.
  OrRefusal<std::vector<int>> inline_node(const ModelNode& node, const Options& options,
                                          Inlining& all);
  /// If planning knows the condition.
  OrRefusal<std::vector<int>> inline_known(const ModelNode& node, const Options& options,
                                           Inlining& all);
  /// Otherwise: adds one node that runs the graphs.
  OrRefusal<std::vector<int>> run_graphs(const ModelNode& node, const Options& options,
                                         Inlining& all);
  /// Gives `run` the nodes of the graphs, for inputs that are `values`.
  std::optional<Refusal> read_graphs(const std::vector<int>& values, const Options& options,
                                     Inlining& all, ModelNode& run, RunGraphs& graphs);
  /// Whether a node runs a loop or a branch in each inference.
  static bool runs_graphs(const ModelNode& node);
  /// A tensor for a value like that of another one.
  int add_value(int like);
  /// Why a value cannot take the place of another one in each round or from either branch.
  std::optional<Refusal> check_same(int value, int other, const std::string& what) const;
  OrRefusal<std::vector<int>> inline_loop(const ModelNode& node, const Options& options,
                                          Inlining& all);
  OrRefusal<std::vector<int>> inline_graph(int graph, const std::vector<int>& operands,
                                           const ModelNode& by, const Options& options,
                                           Inlining& all);
  std::optional<Refusal> inline_step(int graph, const CpuNode& recipe, std::vector<int>& ids,
                                     const ModelNode& by, const Options& options, Inlining& all);
  /// The result of a graph that computes a condition.
  OrRefusal<std::optional<bool>> evaluate_condition(int graph, const std::vector<int>& operands,
                                                    const ModelNode& by, const Options& options);
  /// A node of an inner graph whose operands are tensors of the model, with its refusal if any.
  ModelNode import_inner(const CpuNode& mapped, const Options& options);
  /// Why a tensor is no condition.
  std::optional<Refusal> check_condition(int tensor) const;
  /// A condition; none if it is not known while planning, or may change with the shapes.
  OrRefusal<std::optional<bool>> condition(int tensor) const;
  OrRefusal<InnerGraph*> inner_graph(int graph);
  /// Whether an inner tensor can stand for another one.
  std::optional<Refusal> check_alike(const TfLiteTensor& inner, int tensor,
                                     const std::string& what) const;
  int add_inner(const TfLiteTensor& tensor);
  /// By tensor of a graph, those that its operands and constants are; -1: no node has written it.
  OrRefusal<std::vector<int>> bind(int index, InnerGraph& graph, const std::vector<int>& operands);

  /// Name of the resource that a node uses; null if it uses none whose name is known.
  const std::string* resource_of(const ModelNode& node) const;
  /// Leaves all nodes that use a resource on the CPU; an empty name: all resources.
  void refuse_resource(const std::string& name, const Refusal& refusal);
  /// Leaves resources on the CPU that other nodes of the CPU use or may use.
  void settle_resources();
  /// Whether nodes read or assign a resource with different shapes.
  bool has_several_shapes(const std::string& resource) const;
  /// Leaves nodes on the CPU whose variable tensors others use, too.
  void settle_states();
  void find_writers(TfLiteContext& context, const std::vector<int>& order);
  /// Why all nodes stay on the CPU if a model has this one: stock kernels write beyond a tensor of
  /// it. What that overwrites depends on the memory layout of the tensors, and a delegate changes
  /// that layout.
  std::optional<Refusal> check_bounds(const TfLiteContext& context, const TfLiteNode& node,
                                      int builtin) const;
  bool is_written_twice(int tensor) const;
  /// Leaves all nodes on the CPU if the runtime's kernels end the process on one of them.
  void refuse_with_aborting();
  /// Why the writer of the next node's operands is ambiguous; nothing if it is not. Runtimes run
  /// such nodes all the same, in order, on the contents of memory.
  std::optional<Refusal> check_order(const tfl::NodeView& view) const;
  /// Why a node does not work, independent of its family's import; nothing if it works.
  std::optional<Refusal> check(const ModelNode& node, const ops::Operation* operation,
                               const tfl::NodeView& view, const Options& options) const;
  void read_tensor(const tfl::TensorView& view, int id);
  void import(ModelNode& node, const tfl::NodeView& view, const Options& options);
  /// Claims a node that its family refuses because of operands that are computed at run time, if
  /// a partition can be planned when it knows them.
  bool await(ModelNode& node, const tfl::NodeView& view) const;
  /// Adds the node's results to open_ if awaited values decide on their shapes.
  void note_open(const ModelNode& node);
  /// Lets planning compute on the host what claimed nodes await, or leaves the nodes that compute
  /// it on the CPU.
  void settle_awaited();
  bool is_small(int tensor) const;
  /// Results of claimed nodes that the host can compute before an inference: a few numbers, of such
  /// results and of what the device does not compute.
  std::set<int> hostable() const;
  /// Evaluates a node, and those that compute its operands, whenever an inference has new ones.
  void host(ModelNode& node);
  /// The values that planning needs for a node and only an inference has.
  std::vector<int> awaited_by(const ModelNode& node) const;
  /// Whether the results of a node that works are known while planning.
  /// `inferred`: the shapes of its outputs are set.
  bool follows_from_shapes(const ModelNode& node, bool inferred) const;
  /// Computes the results of the last node that was read, or infers their shapes; returns whether
  /// the shapes are known.
  bool evaluate(ModelNode& node);
  /// Sets the shapes of a node's outputs; returns false and changes nothing if they do not fit.
  bool infer(const ModelNode& node);
  /// Leaves nodes on the CPU that read values which only the CPU computes now.
  void refuse_readers();
  /// Positions of a partition's nodes and of the nodes that compute its constants.
  std::set<std::size_t> members(const std::vector<int>& node_indices) const;
  bool is_constant(int tensor) const { return constants_.count(tensor) != 0; }

  std::map<int, std::size_t> position_;  // node index -> position in nodes
  Evaluator evaluator_;                  // its tensors have the shapes and values known so far
  ir::Graph whole_;                      // only tensors: those of the model, by TFLite id
  std::shared_ptr<InnerTensors> inner_;  // the last tensors of whole_
  std::optional<tfl::ModelInMemory> file_;
  std::size_t imported_ = 0;          // nodes of graphs, read for the current node
  std::map<int, InnerGraph> graphs_;  // that were read, by index
  const TfLiteContext& context_;
  std::set<int> read_;                 // tensors of whole_ that have been read
  std::map<int, std::size_t> writer_;  // tensor -> position of the node that writes it
  std::map<int, std::vector<std::size_t>> readers_, writers_;  // positions, by tensor
  std::optional<Refusal> unbounded_;  ///< the first of check_bounds(), for all nodes
  bool core_only_;
  bool has_stages_;  ///< the host may read what partitions compute, while they do
  bool dynamic_ = false;
  std::set<int> stored_;     // constants of the model
  std::set<int> constants_;  // these, and those that working nodes derive from them
  std::set<int> known_;      // results of evaluated nodes
  std::set<int> by_shape_;   // those that depend on shapes
  std::set<int> open_;       // tensors with shapes that awaited values decide on
};

}  // namespace clgpu::delegate
