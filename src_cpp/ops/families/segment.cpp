// Family of SEGMENT_SUM and UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {

extern const Family kSegmentFamily, kSegmentNumberFamily;

namespace {

constexpr int kSegmentSum = 125, kProd = 153, kMax = 154, kSum = 155, kMin = 157;

/// Value of the macro OP in kernels/segment/segment.cl.
enum class SegmentOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };

struct SegmentAttrs : ir::Attrs {
  SegmentOp op = SegmentOp::kSum;
  int segments = 1;
  CLGPU_FIELDS(op, segments)
  static const char* words(std::string_view member) {
    return member == "op" ? "sum, prod, max, min" : "";
  }
};

/// Their number follows from the ids, here constants.
OrRefusal<int> sorted_segments(const tfl::NodeView& node) {
  const auto ids = node.input(1).ints();
  CLGPU_REFUSE_IF(!ids, Why::kRunTime, "the number of segments");
  std::int64_t next = 0;
  for (const std::int64_t id : *ids) {
    CLGPU_REFUSE_IF(id != next && id != next - 1, Why::kParameter, "the ids of segments",
                    "do not ascend from 0 by steps of 0 or 1");
    next = id + 1;
  }
  return static_cast<int>(next);
}

/// Of SEGMENT_SUM; -1: the ids are wrong.
OrRefusal<Imported> import_measured(const tfl::NodeView& /*node*/, std::int64_t number) {
  CLGPU_REFUSE_IF(number < 0, Why::kParameter, "the ids of segments",
                  "do not ascend from 0 by steps of 0 or 1");
  SegmentAttrs attrs;
  attrs.op = SegmentOp::kSum;
  attrs.segments = static_cast<int>(number);
  return Imported{share(attrs), {}};
}

ir::Shapes infer_number(const NodeContext& /*node*/) { return {ir::Shape{1}}; }

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const int code = node.builtin();
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of ids", DType::kI32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  SegmentAttrs attrs;
  attrs.op = code == kProd  ? SegmentOp::kProd
             : code == kMax ? SegmentOp::kMax
             : code == kMin ? SegmentOp::kMin
                            : SegmentOp::kSum;
  if (code == kSegmentSum) {
    CLGPU_REFUSE_RANK(node.input(1), "the input of ids", 1, 1);
    const auto segments = sorted_segments(node);
    if (!segments) return segments.refusal();
    attrs.segments = *segments;
    return Imported{share(attrs), {}};
  }
  CLGPU_REFUSE_RANK(node.input(1), "the input of ids", 1, node.input(0).rank());
  const auto segments = node.input(2).ints();
  CLGPU_REFUSE_IF(!segments || segments->size() != 1, Why::kRunTime, "the number of segments");
  if (segments->front() < 1 || segments->front() > INT32_MAX)
    return wrong_value("the number of segments", segments->front(), "1 to 2147483647");
  attrs.segments = static_cast<int>(segments->front());
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape &src = node.input(0).shape, &ids = node.input(1).shape;
  std::vector<int> dims{node.attrs<SegmentAttrs>().segments};
  for (int axis = 0; axis < src.rank(); ++axis) {
    if (axis >= ids.rank()) {
      dims.push_back(src[axis]);
    } else if (ids[axis] != src[axis]) {
      throw ShapeError("ids " + ids.str() + " do not fit the input " + src.str());
    }
  }
  return {ir::Shape(dims)};
}

std::string first_of(SegmentOp op, bool is_real) {
  switch (op) {
    case SegmentOp::kSum:
      return "0";
    case SegmentOp::kProd:
      return "1";
    case SegmentOp::kMax:
      return is_real ? "(-FLT_MAX)" : "INT_MIN";
    default:
      return is_real ? "FLT_MAX" : "INT_MAX";
  }
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<SegmentAttrs>();
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const std::int64_t elements = dst.shape.elements(), count = node.input(1).shape.elements();
  kernel::Launch launch("segment/segment.cl", "segment_reduce");
  launch.macro("OP", static_cast<int>(attrs.op));
  launch.macro("FIRST", first_of(attrs.op, is_float(src.storage)));
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.src(0).src(1).dst(0).i32(elements).i32(count).i32(elements / attrs.segments);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return {{"search", {launch}, {}}};
}

std::vector<kernel::Candidate> number(const NodeContext& node, const DeviceInfo& device) {
  const std::size_t group = group_of(device.is_cpu() ? 16 : 256, device);
  kernel::Launch launch("segment/number.cl", "segment_number");
  launch.macro("WG", static_cast<std::int64_t>(group));
  launch.src(0).dst(0).i32(node.input(0).shape.elements()).range({group}, {group});
  return {{"number", {launch}, {}}};
}

/// Each element looks at all ids.
double flops(const NodeContext& node) {
  return static_cast<double>(node.output(0).shape.elements()) *
         static_cast<double>(node.input(1).shape.elements());
}

}  // namespace

const Family kSegmentFamily = [] {
  Family family;
  family.name = "segment";
  family.attrs = ir::attrs_type<SegmentAttrs>();
  family.builtins = {{kSegmentSum, "SEGMENT_SUM", 2},
                     {kProd, "UNSORTED_SEGMENT_PROD", 3},
                     {kMax, "UNSORTED_SEGMENT_MAX", 3},
                     {kSum, "UNSORTED_SEGMENT_SUM", 3},
                     {kMin, "UNSORTED_SEGMENT_MIN", 3}};
  family.builtins[0].measured = 1;
  for (Operation& operation : family.builtins) {
    if (operation.code != kSegmentSum) operation.settings = {2};
  }
  family.import = import;
  family.import_measured = import_measured;
  family.measure = &kSegmentNumberFamily;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.variants = {&kSegmentNumberFamily};
  return family;
}();

const Family kSegmentNumberFamily = [] {
  Family family;
  family.name = "segment";
  family.variant = "number";
  family.infer = infer_number;
  family.candidates = number;
  return family;
}();

}  // namespace clgpu::ops
