// Family of element-wise operations on one tensor. Activations are the identity with an epilogue.
#include "ops/families/unary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/bfloat.hpp"
#include "ir/fields.hpp"
#include "ops/quantized/lookup.hpp"

#include "ops/shared/common.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kLeakyRelu = 98, kGelu = 150;

struct UnaryAttrs : ir::Attrs {
  UnaryOp op = UnaryOp::kIdentity;
  std::optional<TableFunction> table;  ///< of integers of at most 16 bits
  CLGPU_FIELDS(op, table)
  static const char* words(std::string_view member) {
    if (member == "op")
      return "identity, abs, neg, exp, log, sqrt, rsqrt, square, sin, cos, floor, ceil, round, "
             "sign";
    return "";
  }
};

struct Row {
  int code;
  UnaryOp op;
  ir::Activation activation;
};
using ir::Activation;
constexpr Row kRows[] = {
    {101, UnaryOp::kAbs, Activation::kNone},
    {59, UnaryOp::kNeg, Activation::kNone},
    {47, UnaryOp::kExp, Activation::kNone},
    {73, UnaryOp::kLog, Activation::kNone},
    {75, UnaryOp::kSqrt, Activation::kNone},
    {76, UnaryOp::kRsqrt, Activation::kNone},
    {92, UnaryOp::kSquare, Activation::kNone},
    {66, UnaryOp::kSin, Activation::kNone},
    {108, UnaryOp::kCos, Activation::kNone},
    {8, UnaryOp::kFloor, Activation::kNone},
    {104, UnaryOp::kCeil, Activation::kNone},
    {116, UnaryOp::kRound, Activation::kNone},
    {158, UnaryOp::kSign, Activation::kNone},
    {19, UnaryOp::kIdentity, Activation::kRelu},
    {20, UnaryOp::kIdentity, Activation::kReluN1To1},
    {21, UnaryOp::kIdentity, Activation::kRelu6},
    {152, UnaryOp::kIdentity, Activation::kRelu0To1},
    {kLeakyRelu, UnaryOp::kIdentity, Activation::kLeakyRelu},
    {111, UnaryOp::kIdentity, Activation::kElu},
    {kGelu, UnaryOp::kIdentity, Activation::kGelu},
    {117, UnaryOp::kIdentity, Activation::kHardSwish},
    {14, UnaryOp::kIdentity, Activation::kSigmoid},
    {28, UnaryOp::kIdentity, Activation::kTanh},
};

const Row& row_of(int code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  throw_internal(__FILE__, __LINE__, "no such operation");
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const Row& row = row_of(node.builtin());
  if (auto refusal = check_unary_input(node.input(0), row.code)) return *refusal;
  UnaryAttrs attrs;
  attrs.op = row.op;
  ir::Epilogue epilogue{row.activation, 0.0F};
  if (const auto* leaky = node.params<tfl::LeakyReluParams>();
      leaky != nullptr && row.code == kLeakyRelu) {
    epilogue.alpha = leaky->alpha;
  }
  if (const auto* gelu = node.params<tfl::GeluParams>();
      gelu != nullptr && row.code == kGelu && gelu->approximate) {
    epilogue.activation = Activation::kGeluTanh;
  }
  if (is_small_integer(node.input(0).dtype())) {
    attrs.table = {row.code, epilogue.alpha, epilogue.activation == Activation::kGeluTanh};
    if (auto refusal = check_table(node, *attrs.table)) return *refusal;
    return Imported{share(attrs), {}};
  }
  return Imported{share(attrs), epilogue};
}

/// A function of bfloat16 for each of its numbers, as the reference kernels compute it: in float,
/// rounded once. Functions of devices are off by units in the last place of float, which rounding
/// takes to another bfloat16 now and then.
kernel::Scratch bfloat_table(Activation activation) {
  const auto logistic = [](float x) {
    if (x > 16.619047164916992188F) return 1.0F;
    return x < -9.0F ? std::exp(x) : 1.0F / (1.0F + std::exp(-x));
  };
  const auto table_of = [](auto function) {
    std::vector<std::uint16_t> table(1U << 16);
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = float_to_bfloat(function(bfloat_to_float(static_cast<std::uint16_t>(i))));
    return kernel::table(table);
  };
  // Candidates are made often; they share the constants.
  static const kernel::Scratch kTanhs = table_of([](float x) { return std::tanh(x); });
  static const kernel::Scratch kLogistics = table_of(logistic);
  return activation == Activation::kTanh ? kTanhs : kLogistics;
}

bool has_bfloat_table(const NodeContext& node) {
  const Activation activation = node.epilogue().activation;
  return node.input(0).dtype == DType::kBF16 &&
         (activation == Activation::kTanh || activation == Activation::kSigmoid);
}

/// A table of 256 results, of the functions that have one with any zero point.
std::string adapt(const ir::Graph& graph, ir::Node& node) {
  UnaryAttrs attrs = static_cast<const UnaryAttrs&>(*node.attrs);
  const bool tanh = node.epilogue.activation == Activation::kGeluTanh;
  const Activation activation = tanh ? Activation::kGelu : node.epilogue.activation;
  constexpr UnaryOp kKnown[] = {UnaryOp::kIdentity, UnaryOp::kAbs, UnaryOp::kExp, UnaryOp::kRsqrt};
  const bool known = std::find(std::begin(kKnown), std::end(kKnown), attrs.op) != std::end(kKnown);
  for (const Row& row : kRows) {
    if (!known || row.op != attrs.op || row.activation != activation) continue;
    attrs.table = {row.code, node.epilogue.alpha, tanh};
    const std::string needed =
        scale_needed(*attrs.table, graph.tensor(node.inputs[0]), graph.tensor(node.outputs[0]));
    if (!needed.empty()) return "the scale of the output has to be " + needed;
    node.attrs = share(attrs);
    node.epilogue = {};
    return {};
  }
  return "the function has no form of int8 here";
}

const IntegerForm kIntegers{{0}, false, adapt};

kernel::Candidate table_candidate(const NodeContext& node) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  const ResultLayout layout = result_layout(node);
  int width = 1;
  for (const int w : {4, 16}) {
    if (layout.aligned(w) && (!layout.sliced || layout.channels % w == 0)) width = w;
  }
  kernel::Launch launch("unary/table.cl", "unary_table");
  const bool bfloats = has_bfloat_table(node);  // the kernel moves bits
  launch.type("SRC_T", bfloats ? DType::kI16 : src.storage);
  launch.type("DST_T", bfloats ? DType::kI16 : dst.storage).macro("WIDTH", width);
  push_result(launch.src(0), layout).scratch_in(0).i32(elements);
  launch.range({uz(ceil_div(elements, width))}, {kElementwiseGroup});
  kernel::Candidate candidate{"table", {launch}, {}};
  candidate.scratch.push_back(bfloats ? bfloat_table(node.epilogue().activation)
                                      : table_scratch(*node.attrs<UnaryAttrs>().table, src, dst));
  candidate.in_place = {0};
  return candidate;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  if (node.attrs<UnaryAttrs>().table || has_bfloat_table(node)) return {table_candidate(node)};
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  kernel::Launch launch("unary/unary.cl", "unary_elementwise");
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.macro("OP", static_cast<int>(node.attrs<UnaryAttrs>().op));
  launch.macro("INTEGER", is_float(dst.storage) ? 0 : 1);
  set_epilogue(launch, node.epilogue());
  push_result(launch.src(0), result_layout(node)).i32(elements);
  launch.range({uz(ceil_div(elements, 4))}, {kElementwiseGroup});
  kernel::Candidate candidate{"elementwise", {launch}, {}};
  candidate.in_place = {0};
  return {candidate};
}

}  // namespace

extern const Family kUnaryFamily;
const Family kUnaryFamily = [] {
  Family family;
  family.name = "unary";
  family.attrs = ir::attrs_type<UnaryAttrs>();
  family.has_epilogue = true;
  family.writes_slices = true;
  family.builtins = {{101, "ABS"},     {59, "NEG"},          {47, "EXP"},
                     {73, "LOG"},      {75, "SQRT"},         {76, "RSQRT"},
                     {92, "SQUARE"},   {66, "SIN"},          {108, "COS"},
                     {8, "FLOOR"},     {104, "CEIL"},        {116, "ROUND"},
                     {158, "SIGN"},    {19, "RELU"},         {20, "RELU_N1_TO_1"},
                     {21, "RELU6"},    {152, "RELU_0_TO_1"}, {kLeakyRelu, "LEAKY_RELU"},
                     {111, "ELU"},     {kGelu, "GELU"},      {117, "HARD_SWISH"},
                     {14, "LOGISTIC"}, {28, "TANH"}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.types = {"DST_T", {"SRC_T"}};
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.rows = &kRowwise;
  return family;
}();

std::optional<ir::Epilogue> as_epilogue(const ir::Node& node) {
  if (node.kind != &kUnaryFamily) return std::nullopt;
  const auto& attrs = static_cast<const UnaryAttrs&>(*node.attrs);
  if (attrs.op != UnaryOp::kIdentity || attrs.table) return std::nullopt;
  return node.epilogue;
}

ir::Node activation_of(const ir::Node& last, int x, ir::Activation activation) {
  ir::Node node = last;
  node.kind = &kUnaryFamily;
  node.inputs = {x};
  node.attrs = share(UnaryAttrs{});
  node.epilogue = {activation, 0.0F};
  return node;
}

std::optional<UnaryOp> unary_op(const ir::Node& node) {
  if (node.kind != &kUnaryFamily || table_function(node)) return std::nullopt;
  return static_cast<const UnaryAttrs&>(*node.attrs).op;
}

std::optional<TableFunction> table_function(const ir::Node& node) {
  if (node.kind != &kUnaryFamily) return std::nullopt;
  return static_cast<const UnaryAttrs&>(*node.attrs).table;
}

}  // namespace clgpu::ops
