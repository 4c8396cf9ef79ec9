// Family of element-wise operations on two tensors with broadcasting, and of ADD_N.
#include "ops/families/binary.hpp"

#include "ops/families/quantized_binary.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kAddN = 106;

enum class Small { kNone, kInt8, kAll };

/// Unsigned integers of 16 and 32 bits on which an operation is defined.
enum class Unsigned { kNone, kU32, kBoth };

enum class Stored {
  kNone,
  kInt16,   ///< int16 without a scale
  kSigned,  ///< int8 and int16, whatever their scales, as in the reference kernels
};

struct Row {
  int code;
  BinaryOp op;
  bool fused;     ///< has ActivationParams
  bool integers;  ///< also defined on int32 and int64
  Small small{};  ///< types of at most 16 bits on which it is defined
  /// Types of at most 16 bits whose stored values it computes with.
  Stored stored{};
  bool half = false;  ///< also defined on float16 and bfloat16
  Unsigned unsigned_types{};
};
constexpr Row kRows[] = {
    {0, BinaryOp::kAdd, true, true, Small::kAll, Stored::kInt16, true},
    {kAddN, BinaryOp::kAdd, false, true},
    {41, BinaryOp::kSub, true, true, Small::kAll},
    {18, BinaryOp::kMul, true, true, Small::kAll, Stored::kInt16, true, Unsigned::kU32},
    {42, BinaryOp::kDiv, true, true, Small::kAll},
    {55, BinaryOp::kMaximum, false, true, Small::kAll, Stored::kNone, true},
    {57, BinaryOp::kMinimum, false, true, Small::kAll, Stored::kNone, true},
    {78, BinaryOp::kPow, false, true},
    {99, BinaryOp::kSquaredDifference, false, true, Small::kInt8},
    {90, BinaryOp::kFloorDiv, false, true, Small::kNone, Stored::kSigned},
    {95, BinaryOp::kFloorMod, false, true, Small::kNone, Stored::kSigned},
    {54, BinaryOp::kPrelu, false, false, Small::kAll},
    {156, BinaryOp::kAtan2, false, false, Small::kNone, Stored::kNone, true},
    // Of StableHLO: small integers there have no scale.
    {163, BinaryOp::kAdd, false, true, Small::kNone, Stored::kNone, true, Unsigned::kBoth},
    {165, BinaryOp::kMul, false, true, Small::kNone, Stored::kNone, true, Unsigned::kBoth},
    {166, BinaryOp::kMaximum, false, true, Small::kNone, Stored::kNone, true, Unsigned::kBoth},
    {181, BinaryOp::kMinimum, false, true, Small::kNone, Stored::kNone, true, Unsigned::kBoth},
};

const Row& row_of(int code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  throw_internal(__FILE__, __LINE__, "no such operation");
}

std::optional<Refusal> check_types(const Row& row, const tfl::TensorView& input,
                                   const std::string& what) {
  using T = DType;
  const bool is_half = input.dtype() == T::kF16 || input.dtype() == T::kBF16;
  if (row.half && is_half) return std::nullopt;
  if (input.dtype() == T::kU32 && row.unsigned_types != Unsigned::kNone) return std::nullopt;
  if (input.dtype() == T::kU16 && row.unsigned_types == Unsigned::kBoth) return std::nullopt;
  if (!row.integers && row.small == Small::kNone) return check_type(input, what, {T::kF32});
  if (!row.integers) return check_type(input, what, {T::kF32, T::kI8, T::kU8, T::kI16});
  if (row.stored == Stored::kSigned)
    return check_type(input, what, {T::kF32, T::kI32, T::kI64, T::kI8, T::kI16});
  switch (row.small) {
    case Small::kInt8:
      return check_type(input, what, {T::kF32, T::kI32, T::kI64, T::kI8});
    case Small::kAll:
      return check_type(input, what, {T::kF32, T::kI32, T::kI64, T::kI8, T::kU8, T::kI16});
    default:
      return check_type(input, what, {T::kF32, T::kI32, T::kI64});
  }
}

/// Whether a node with inputs of at most 16 bits computes with their stored values.
bool computes_stored(const Row& row, const tfl::NodeView& node) {
  if (row.stored != Stored::kInt16) return row.stored == Stored::kSigned;
  return node.input(0).dtype() == DType::kI16 && !node.input(0).is_quantized() &&
         !node.input(1).is_quantized() && !node.output(0).is_quantized();
}

/// Activations that also exist for integers, as bounds. Also true for none.
bool clamps(ir::Activation activation) {
  return activation == ir::Activation::kNone || activation == ir::Activation::kRelu ||
         activation == ir::Activation::kReluN1To1 || activation == ir::Activation::kRelu6;
}

/// A buffer of a launch with its element type and shape.
struct Value {
  kernel::Operand operand;
  DType storage;
  ir::Shape shape;
  ResultLayout layout{};
};

Value input_value(const NodeContext& node, int i) {
  using Kind = kernel::Operand::Kind;
  return {{Kind::kInput, i, false, true}, node.input(i).storage, node.input(i).shape};
}

/// dst = epilogue(a OP b), broadcast.
kernel::Launch pairwise(BinaryOp op, const Value& a, const Value& b, const Value& dst,
                        const ir::Epilogue& epilogue) {
  const BroadcastWalk walk = broadcast_walk(dst.shape, {a.shape, b.shape});
  const bool runs_of_4 = !dst.layout.sliced || dst.layout.channels % 4 == 0;
  const bool vectors = is_float(dst.storage) || size_of(dst.storage) >= sizeof(std::int32_t);
  const int width = runs_of_4 && vectors ? walk.width() : 1;
  kernel::Launch launch("binary/binary.cl", "binary_elementwise");
  launch.type("A_T", a.storage).type("B_T", b.storage).type("DST_T", dst.storage);
  launch.macro("OP", static_cast<int>(op)).macro("WIDTH", width);
  launch.macro("INTEGER", is_float(dst.storage) ? 0 : 1);
  set_epilogue(launch, epilogue);
  launch.arg(a.operand).arg(b.operand).arg(dst.operand);
  push_layout(launch, dst.layout);
  walk.append_to(launch);
  launch.range({uz(ceil_div(walk.elements(), width))}, {kElementwiseGroup});
  return launch;
}

}  // namespace

namespace {

std::string adapt(const ir::Graph& graph, ir::Node& node) {
  BinaryAttrs attrs = static_cast<const BinaryAttrs&>(*node.attrs);
  const bool known =
      attrs.op == BinaryOp::kAdd || attrs.op == BinaryOp::kSub || attrs.op == BinaryOp::kMul;
  if (!known || node.inputs.size() != 2)
    return "of the operations on two tensors, ADD, SUB and MUL alone have a form of int8 here";
  if (std::string problem = clamping_problem(graph, node); !problem.empty()) return problem;
  const float a = graph.tensor(node.inputs[0]).scale(), b = graph.tensor(node.inputs[1]).scale();
  if (!pair_fits(attrs.op, a, b, graph.tensor(node.outputs[0]).scale(), /*wide=*/false))
    return "the scale of the output is too small for that of the inputs";
  attrs.quantized = true;
  node.attrs = share(attrs);
  return {};
}

}  // namespace

const IntegerForm kBinaryIntegers{{0, 1}, false, adapt};

OrRefusal<Imported> import_binary(const tfl::NodeView& node) {
  const Row& row = row_of(node.builtin());
  for (int i = 0; i < node.input_count(); ++i) {
    const std::string what = "input " + std::to_string(i);
    if (auto refusal = check_types(row, node.input(i), what)) return *refusal;
    // The slopes of an int16 PRELU are int8.
    if (i > 0 && row.op == BinaryOp::kPrelu && node.input(0).dtype() == DType::kI16) {
      CLGPU_REFUSE_TYPE(node.input(i), "slope", DType::kI8);
      continue;
    }
    CLGPU_REFUSE_IF(node.input(i).dtype() != node.input(0).dtype(), Why::kOperands, "the inputs",
                    "have different types");
  }
  BinaryAttrs attrs;
  attrs.op = row.op;
  ir::Epilogue epilogue;
  const auto* params = node.params<tfl::ActivationParams>();
  if (row.fused && params != nullptr) {
    auto fused = fused_activation(params->activation);
    if (!fused) return fused.refusal();
    epilogue = *fused;
  }
  const bool is_small = is_small_integer(node.input(0).dtype());
  if (is_small && computes_stored(row, node)) {
    CLGPU_REFUSE_TYPE(node.output(0), "output", node.input(0).dtype());
  } else {
    attrs.quantized = is_small;
  }
  if (attrs.quantized) {
    if (auto refusal = check_quantized_binary(node, row.op, &attrs.shifts)) return *refusal;
  }
  CLGPU_REFUSE_IF(is_wide_unsigned(node.input(0).dtype()) && !epilogue.empty(), Why::kActivation,
                  "the fused activation", "is not one of unsigned integers");
  CLGPU_REFUSE_IF(!is_float(node.input(0).dtype()) && !clamps(epilogue.activation),
                  Why::kActivation, "the fused activation", "is not one of integers");
  return Imported{share(attrs), epilogue};
}

ir::Shapes infer_binary(const NodeContext& node) {
  ir::Shape shape = node.input(0).shape;
  for (int i = 1; i < node.input_count(); ++i) shape = broadcast(shape, node.input(i).shape);
  return {shape};
}

std::vector<kernel::Candidate> binary_candidates(const NodeContext& node, const DeviceInfo&) {
  using Kind = kernel::Operand::Kind;
  const BinaryOp op = node.attrs<BinaryAttrs>().op;
  if (node.attrs<BinaryAttrs>().quantized) return {quantized_binary(node)};
  const ir::Tensor& dst = node.output(0);
  kernel::Candidate candidate{"elementwise", {}, {}};

  // More than two inputs (ADD_N): partial sums in float, each in its own scratch buffer, so that
  // none is written twice and those of constants can be kept.
  Value sum = input_value(node, 0);
  for (int i = 1; i + 1 < node.input_count(); ++i) {
    const DType storage = is_float(dst.storage) ? DType::kF32 : dst.storage;
    const Value next = input_value(node, i);
    const ir::Shape shape = broadcast(sum.shape, next.shape);
    Value partial{{Kind::kScratch, i - 1, true, false}, storage, shape, {}};
    candidate.scratch.push_back({shape.elements() * static_cast<std::int64_t>(size_of(storage))});
    candidate.launches.push_back(pairwise(op, sum, next, partial, {}));
    partial.operand = {Kind::kScratch, i - 1, false, true};
    sum = partial;
  }
  const Value last = input_value(node, node.input_count() - 1);
  const Value result{{Kind::kOutput, 0, true, false}, dst.storage, dst.shape, result_layout(node)};
  candidate.launches.push_back(pairwise(op, sum, last, result, node.epilogue()));
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.input(i).shape == dst.shape) candidate.in_place.push_back(i);
  }
  return {candidate};
}

extern const Family kBinaryFamily;
const Family kBinaryFamily = [] {
  Family family;
  family.name = "binary";
  family.attrs = ir::attrs_type<BinaryAttrs>();
  family.has_epilogue = true;
  family.writes_slices = true;
  family.builtins = {{41, "SUB", 2},
                     {18, "MUL", 2},
                     {42, "DIV", 2, 0, 1, 0, false, 1},
                     {55, "MAXIMUM", 2},
                     {57, "MINIMUM", 2},
                     {78, "POW", 2},
                     {99, "SQUARED_DIFFERENCE", 2},
                     {90, "FLOOR_DIV", 2, 0, 1, 0, false, 1},
                     {95, "FLOOR_MOD", 2, 0, 1, 0, false, 1},
                     {54, "PRELU", 2},
                     {156, "ATAN2", 2},
                     {163, "STABLEHLO_ADD", 2},
                     {165, "STABLEHLO_MULTIPLY", 2},
                     {166, "STABLEHLO_MAXIMUM", 2},
                     {181, "STABLEHLO_MINIMUM", 2},
                     {kAddN, "ADD_N", 2, kAnyNumber}};
  family.most_axes = kMostAxes;
  family.import = import_binary;
  family.types = {"DST_T", {"A_T", "B_T"}};
  family.infer = infer_binary;
  family.candidates = binary_candidates;
  family.allows_quantized = true;
  family.integers = &kBinaryIntegers;
  family.rows = &kRowwise;
  return family;
}();

}  // namespace clgpu::ops
