// Family of BITWISE_XOR, RIGHT_SHIFT, STABLEHLO_SHIFT_LEFT and STABLEHLO_AND.
#include "ir/fields.hpp"
#include "ops/shared/broadcast.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kXor = 160, kRightShift = 161, kShiftLeft = 207, kAnd = 176;
constexpr int kShiftsRight = 1;  // the value of OP

struct BitwiseAttrs : ir::Attrs {
  int op = 0;  ///< value of the macro OP in kernels/bitwise/bitwise.cl
  bool broadcasts = true;
  CLGPU_FIELDS(op, broadcasts)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const int code = node.builtin();
  for (int i = 0; i < 2; ++i) {
    const std::string what = "input " + std::to_string(i);
    if (code == kAnd) {
      CLGPU_REFUSE_TYPE(node.input(i), what, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                        DType::kU8, DType::kBool);
    } else if (code == kShiftLeft) {
      CLGPU_REFUSE_TYPE(node.input(i), what, DType::kI32, DType::kI16, DType::kI8);
    } else {
      CLGPU_REFUSE_TYPE(node.input(i), what, DType::kI32, DType::kI16, DType::kI8, DType::kU8,
                        DType::kU16, DType::kU32);
    }
  }
  CLGPU_REFUSE_IF(node.input(0).dtype() != node.input(1).dtype(), Why::kOperands, "the inputs",
                  "have different types");
  BitwiseAttrs attrs;
  attrs.op = code == kXor ? 0 : code == kRightShift ? kShiftsRight : code == kShiftLeft ? 2 : 3;
  attrs.broadcasts = code == kXor || code == kRightShift;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape &a = node.input(0).shape, &b = node.input(1).shape;
  if (!node.attrs<BitwiseAttrs>().broadcasts && a != b)
    throw ShapeError("shapes " + a.str() + " and " + b.str() + " differ");
  return {broadcast(a, b)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const BroadcastWalk walk =
      broadcast_walk(node.output(0).shape, {node.input(0).shape, node.input(1).shape});
  const int op = node.attrs<BitwiseAttrs>().op;
  const DType type = node.output(0).storage;
  // That kernel computes in int, whose shifts copy the sign.
  const bool shifts_words = type == DType::kU32 && op == kShiftsRight;
  kernel::Launch launch(shifts_words ? "bitwise/shift_words.cl" : "bitwise/bitwise.cl",
                        shifts_words ? "bitwise_shift_words" : "bitwise_elementwise");
  if (!shifts_words) launch.macro("OP", op).type("T", type);
  launch.src(0).src(1).dst(0);
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kBitwiseFamily;
const Family kBitwiseFamily = [] {
  Family family;
  family.name = "bitwise";
  family.attrs = ir::attrs_type<BitwiseAttrs>();
  family.builtins = {{kXor, "BITWISE_XOR", 2},
                     {kRightShift, "RIGHT_SHIFT", 2},
                     {kShiftLeft, "STABLEHLO_SHIFT_LEFT", 2},
                     {kAnd, "STABLEHLO_AND", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRowwise;
  return family;
}();

}  // namespace clgpu::ops
