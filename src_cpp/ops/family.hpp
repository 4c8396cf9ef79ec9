// An op family: check and import, shape rule, kernel candidates. See docs/architecture.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/device_info.hpp"
#include "base/error.hpp"
#include "base/index.hpp"
#include "base/refusal.hpp"
#include "ir/graph.hpp"
#include "kernel/launch.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::ops {

/// The result of importing a node: the family's attributes and the fused activation, if any.
struct Imported {
  ir::AttrsPtr attrs;
  ir::Epilogue epilogue;
  std::string resource{};  ///< Resource::kHandle: tells the resource from others
  /// Control::kBranch: indices of the graphs for true and for false; Control::kLoop: of those of
  /// the condition and of the body.
  std::vector<int> graphs{};
};

/// A node together with its graph: the view of shape rules and candidates.
class NodeContext {
 public:
  NodeContext(const ir::Graph& graph, const ir::Node& node) : graph_(graph), node_(node) {}

  const ir::Graph& graph() const { return graph_; }
  const ir::Node& node() const { return node_; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  /// False for an optional input that is missing.
  bool has_input(int i) const { return i >= 0 && i < input_count() && node_.inputs[uz(i)] >= 0; }
  const ir::Tensor& input(int i) const {
    CLGPU_CHECK(has_input(i));
    return graph_.tensor(node_.inputs[uz(i)]);
  }
  const ir::Tensor& output(int i) const { return graph_.tensor(node_.outputs[uz(i)]); }
  /// Factors of products may be rounded to TF32 (precision="tf32"; also with "fp16", where half
  /// tensors have as few bits; with "mixed", where the plan says so of the node).
  bool allows_tf32() const { return ir::allows_tf32(graph_, node_); }
  /// Instead of that, they may be written as sums of two bfloat16 numbers each.
  bool allows_bf16_pairs() const { return ir::allows_bf16_pairs(graph_, node_); }
  /// ... and end at the largest half (precision="fp16").
  bool allows_half() const { return graph_.allows_half; }
  template <class T>
  const T& attrs() const {
    return static_cast<const T&>(*node_.attrs);
  }
  const ir::Epilogue& epilogue() const { return node_.epilogue; }
  /// The input that is added before the activation; -1 if there is none.
  int residual() const {
    const int slot = node_.kind->residual;
    return slot >= 0 && has_input(slot) ? slot : -1;
  }
  /// The input with the slopes of Activation::kPrelu; -1 if that is not its activation.
  int slopes() const {
    const int slot = node_.kind->slopes;
    return slot >= 0 && has_input(slot) ? slot : -1;
  }

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
};

struct RowRules;

constexpr int kAnyNumber = -1;

/// The axes that kernels have, and the most of any tensor: those of the runtimes' kernels.
constexpr int kMaxRank = 6, kMostAxes = 8;

/// What an operation does with a resource of the runtime: a value that outlives an inference and
/// that all graphs of an interpreter share.
enum class Resource : int {
  kNone,
  kHandle,  ///< output 0 names a resource
  kRead,    ///< output 0 is the value of the resource that input 0 names
  kAssign,  ///< input 1 becomes the value of the resource that input 0 names
  kOnce,    ///< sets values of resources, in the first inference only
};

/// How an operation runs other graphs of the model.
enum class Control : int {
  kNone,
  kBranch,  ///< input 0 chooses one of two graphs, which takes the other inputs
  kLoop,    ///< one graph repeats as long as the result of another one is true
};

/// An operation of TFLite and the operands of its nodes. `check_operands` checks the declared
/// operands before a family is called.
struct Operation {
  int code;          ///< TFLite's builtin code
  const char* name;  ///< for messages; of a custom operation its identity
  int inputs = 1;    ///< that each node has
  /// Further ones, which a node may lack or leave out (index -1). kAnyNumber: any number, none of
  /// which may be left out.
  int optional = 0;
  int outputs = 1;  ///< or kAnyNumber: at least one
  /// The input whose type output 0 has (each input, if there may be any number of them), unless
  /// both are quantised: then families check the types. -1: output 0 has another type.
  int type_of = 0;
  bool by_shape = false;  ///< its results depend only on the shapes of its inputs
  /// The input by which integers are divided; -1: none. The runtime's kernels end the process if
  /// the least integer is divided by -1.
  int divisor = -1;
  /// Slots of the inputs that are variable tensors, which a node updates. Nodes of the IR write the
  /// new values to further outputs: one for each of these inputs that the node has, in this order.
  std::vector<int> states{};
  Resource resource = Resource::kNone;
  Control control = Control::kNone;
  /// Slots of small inputs of indices, such as shapes and axes, that planning needs as constants,
  /// and that seldom change from one inference to the next. If they are computed at run time, a
  /// partition is planned when it knows them, and again when they change.
  std::vector<int> settings{};
  /// Slots of further inputs that planning needs as constants. They would change with most
  /// inferences, so no partition is planned for their values.
  std::vector<int> positions{};
  bool reads_positions = false;  ///< kernels read them: a shape that needs one is the CPU's
  /// Output 0 may also be float where the input `type_of` is quantised: its real values.
  bool dequantizes = false;
  /// Slot of an input of which one number, how many elements are not 0 for example, decides on the
  /// shapes of results. Nodes of Family::measure compute the number; -1: none.
  int measured = -1;
};

/// What the time of an operation depends on.
enum class WorkKind : int {
  kProduct,  ///< convolutions and matrix products: each number is used many times
  kWindow,   ///< depthwise convolutions and pools: a few times
  kOther,    ///< once
};

/// An output with indices of elements of input 0. For equal elements, any of their indices is
/// right.
struct Indices {
  int output = -1;  ///< -1: there is none
  int axis = -1;    ///< input slot of the axis to which the indices refer; -1: the last axis
};

/// How a node of floats is computed with int8, as the reference kernels compute it
/// (passes::quantize_activations). Its weights and bias are those of OpKind::weights.
struct IntegerForm {
  std::vector<int> data{};  ///< input slots that become int8; empty: all
  bool moves = false;       ///< inputs and result have one scale and zero point
  /// Changes a copy of the node whose data and result are int8 in `graph`. Returns why there is no
  /// such form; empty if there is. Null: the node stays as it is.
  std::string (*adapt)(const ir::Graph& graph, ir::Node& node) = nullptr;
};

/// The macros by which a family's kernels name the types of elements in memory, where kernels
/// access each element by LOAD or STORE (kernels/common/types.cl) and so can convert it: floats to
/// quantised integers, or the reverse (ops/shared/conversions.hpp).
struct TypeMacros {
  const char* result = nullptr;                ///< of output 0, which STORE writes; null: not so
  std::vector<const char*> inputs{};           ///< by slot, of floats that LOAD reads; null: not so
  bool (*applies)(const ir::Node&) = nullptr;  ///< whether it is so of a node; null: of all
};

/// Each family has one static object of this type, listed in families.def. Other files know of a
/// family only what is in this object and in the family's header, if it has one: none of them names
/// a family, an operation or a candidate.
struct Family : ir::OpKind {
  std::vector<Operation> builtins;  ///< that it handles
  std::vector<Operation> customs;
  bool core = false;  ///< also claimed with ops="core"

  /// Check and import in one: attributes, or why the node stays on the CPU. Shapes of the node's
  /// tensors may change later (resize), so it may rely only on ranks and constants. Null if passes
  /// make the nodes.
  OrRefusal<Imported> (*import)(const tfl::NodeView&) = nullptr;

  /// Operation::measured: a node of the kind `measure` computes the number of that input, int32[1],
  /// which the host reads in an inference; the other function imports a node for it. Nulls if there
  /// is none.
  const Family* measure = nullptr;
  OrRefusal<Imported> (*import_measured)(const tfl::NodeView&, std::int64_t number) = nullptr;

  /// Shapes of the outputs from the shapes of the inputs; throws ShapeError if they do not fit.
  ir::Shapes (*infer)(const NodeContext&) = nullptr;

  /// Ways to compute the node on this device, best guess first; null for a view, and for a family
  /// whose results planning computes on the host (delegate/building/specialization.hpp).
  std::vector<kernel::Candidate> (*candidates)(const NodeContext&, const DeviceInfo&) = nullptr;
  bool has_kernels() const { return candidates != nullptr || is_view; }

  /// For nodes whose result is a constant that the host decodes at load time (DENSIFY); otherwise
  /// null.
  std::shared_ptr<const ir::Constant> (*fold)(const tfl::NodeView&) = nullptr;

  /// The family takes tensors of quantised types (QUANTIZE, DEQUANTIZE); others leave such nodes on
  /// the CPU.
  bool allows_quantized = false;
  bool int16_zero_points = false;  ///< its import checks the zero points of int16; others need 0
  /// Slot of the input that its import takes in int4 and int2, too, and that kernels read as int8;
  /// -1: none.
  int narrow = -1;

  /// Of each operand. Beyond kMaxRank, kernels see neighbouring axes as one, so shape rules refuse
  /// what is left with more axes than kernels have.
  int most_axes = kMaxRank;

  /// The runtimes' kernels run another graph of the model on the interpreter's own tensors, so only
  /// the interpreter can run them.
  bool runs_graphs = false;

  /// How its nodes are computed band by band (ops/shared/row_rules.hpp); null: as a whole only.
  const RowRules* rows = nullptr;

  /// Arithmetic operations of a node, two for each multiply-add; null: one per output element. See
  /// ops/work.hpp.
  double (*flops)(const NodeContext&) = nullptr;
  WorkKind work_kind = WorkKind::kOther;
  /// How many times the runtimes' kernels pass over memory for it: more than once if a pass makes
  /// one node of several.
  double stock_passes = 1;
  /// What the runtimes' kernels do wrong with a node ("multiply all sums by 0"), so that
  /// verification cannot compare with them. Empty if they are right; null: they always are.
  std::string (*stock_mistake)(const NodeContext&) = nullptr;
  /// Such a mistake writes to memory that is not theirs, so these kernels must not run at all.
  bool stock_overruns = false;

  /// Beside the kinds with OpKind::weights: its kernels read int8 weights of floats as the floats
  /// they represent, where the runtimes' kernels round the activations to int8.
  bool widens_weights = false;

  /// It keeps the largest elements of its input: what is computed of its results without a product
  /// may be zero for all others.
  bool selects = false;

  TypeMacros types;
  Indices indices;
  const IntegerForm* integers = nullptr;  ///< null: a plan cannot make integers of its floats
  std::vector<const Family*> variants;    ///< kinds of the same name (OpKind::variant)
  std::vector<const Family*> fuses;       ///< a pass makes its nodes from these families' nodes
};

/// The family of an operation; nulls if there is none.
struct Handler {
  const Family* family = nullptr;
  const Operation* operation = nullptr;
};

/// `custom_name`: null for a builtin.
Handler find_handler(int builtin_code, const char* custom_name);

/// Why a node does not have the operands that its operation needs; nothing if it has them. No
/// earlier step has checked the file.
std::optional<Refusal> check_operands(const tfl::NodeView& node, const Operation& operation);

/// Whether a node of a builtin operation may leave out its input or output i (index -1); true for
/// operations without a family. The stock kernels of RESHAPE read a shape that is left out.
bool may_lack(int builtin_code, bool is_input, int i);

/// All families, in the order of families.def.
const std::vector<const Family*>& all_families();

/// All kinds of nodes: families and their variants.
std::vector<const ir::OpKind*> all_kinds();

/// The family an imported node belongs to.
inline const Family& family_of(const ir::Node& node) {
  return static_cast<const Family&>(*node.kind);
}

}  // namespace clgpu::ops
