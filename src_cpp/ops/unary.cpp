// Room of element-wise operations on one tensor. Activations are the identity with an epilogue.
#include "ops/unary.hpp"

#include "ops/common.hpp"
#include "ops/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kLeakyRelu = 98, kGelu = 150;

struct UnaryAttrs : ir::Attrs {
  UnaryOp op = UnaryOp::kIdentity;
};

struct Row {
  int code;
  UnaryOp op;
  ir::Activation activation;
  bool integers;  ///< defined on int32 and int64 too
};
using ir::Activation;
constexpr Row kRows[] = {
    {101, UnaryOp::kAbs, Activation::kNone, true},
    {59, UnaryOp::kNeg, Activation::kNone, true},
    {47, UnaryOp::kExp, Activation::kNone, false},
    {73, UnaryOp::kLog, Activation::kNone, false},
    {75, UnaryOp::kSqrt, Activation::kNone, false},
    {76, UnaryOp::kRsqrt, Activation::kNone, false},
    {92, UnaryOp::kSquare, Activation::kNone, true},
    {66, UnaryOp::kSin, Activation::kNone, false},
    {108, UnaryOp::kCos, Activation::kNone, false},
    {8, UnaryOp::kFloor, Activation::kNone, false},
    {104, UnaryOp::kCeil, Activation::kNone, false},
    {116, UnaryOp::kRound, Activation::kNone, false},
    {158, UnaryOp::kSign, Activation::kNone, true},
    {19, UnaryOp::kIdentity, Activation::kRelu, false},
    {20, UnaryOp::kIdentity, Activation::kReluN1To1, false},
    {21, UnaryOp::kIdentity, Activation::kRelu6, false},
    {152, UnaryOp::kIdentity, Activation::kRelu0To1, false},
    {kLeakyRelu, UnaryOp::kIdentity, Activation::kLeakyRelu, false},
    {111, UnaryOp::kIdentity, Activation::kElu, false},
    {kGelu, UnaryOp::kIdentity, Activation::kGelu, false},
    {117, UnaryOp::kIdentity, Activation::kHardSwish, false},
    {14, UnaryOp::kIdentity, Activation::kSigmoid, false},
    {28, UnaryOp::kIdentity, Activation::kTanh, false},
};

const Row& row_of(int code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  throw_internal(__FILE__, __LINE__, "no such operation");
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const Row& row = row_of(node.builtin());
  if (row.integers) {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI32, DType::kI64);
  } else {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  }
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
  return Imported{share(attrs), epilogue};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
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
const Family kUnaryFamily{{"unary", /*has_epilogue=*/true, /*is_view=*/false, /*residual=*/-1,
                           /*writes_slices=*/true},
                          {{101, "ABS"},     {59, "NEG"},          {47, "EXP"},
                           {73, "LOG"},      {75, "SQRT"},         {76, "RSQRT"},
                           {92, "SQUARE"},   {66, "SIN"},          {108, "COS"},
                           {8, "FLOOR"},     {104, "CEIL"},        {116, "ROUND"},
                           {158, "SIGN"},    {19, "RELU"},         {20, "RELU_N1_TO_1"},
                           {21, "RELU6"},    {152, "RELU_0_TO_1"}, {kLeakyRelu, "LEAKY_RELU"},
                           {111, "ELU"},     {kGelu, "GELU"},      {117, "HARD_SWISH"},
                           {14, "LOGISTIC"}, {28, "TANH"}},
                          {},
                          /*core=*/false,
                          import,
                          infer_same_as_input,
                          candidates,
                          /*fold=*/nullptr,
                          /*allows_quantized=*/false,
                          &kRowwise};

std::optional<ir::Epilogue> as_epilogue(const ir::Node& node) {
  if (node.kind != &kUnaryFamily) return std::nullopt;
  if (static_cast<const UnaryAttrs&>(*node.attrs).op != UnaryOp::kIdentity) return std::nullopt;
  return node.epilogue;
}

std::optional<UnaryOp> unary_op(const ir::Node& node) {
  if (node.kind != &kUnaryFamily) return std::nullopt;
  return static_cast<const UnaryAttrs&>(*node.attrs).op;
}

}  // namespace clgpu::ops
