// Family of NON_MAX_SUPPRESSION_V4 and V5: of overlapping boxes only the best stay.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kV4 = 120, kV5 = 121;

struct SuppressionAttrs : ir::Attrs {
  int most = 1;       ///< boxes that stay at most: the size of the outputs
  bool soft = false;  ///< overlapping boxes lose score instead, and the scores are an output
  CLGPU_FIELDS(most, soft)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  SuppressionAttrs attrs;
  attrs.soft = node.builtin() == kV5;
  CLGPU_REFUSE_TYPE(node.input(0), "the input of boxes", DType::kF32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of scores", DType::kF32);
  CLGPU_REFUSE_RANK(node.input(0), "the input of boxes", 2, 2);
  CLGPU_REFUSE_RANK(node.input(1), "the input of scores", 1, 1);
  for (int i = 3; i < node.input_count(); ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), "a threshold", DType::kF32);
    CLGPU_REFUSE_IF(node.input(i).rank() != 0, Why::kOperands, "a threshold", "is not a scalar");
  }
  const auto most = node.input(2).ints();
  CLGPU_REFUSE_IF(!most, Why::kRunTime, "the number of boxes");
  CLGPU_REFUSE_IF(most->size() != 1 || most->front() < 1 || most->front() > INT32_MAX,
                  Why::kParameter, "the number of boxes", "is not a positive number");
  attrs.most = static_cast<int>(most->front());
  CLGPU_REFUSE_TYPE(node.output(0), "the output of indices", DType::kI32);
  if (attrs.soft) CLGPU_REFUSE_TYPE(node.output(1), "the output of scores", DType::kF32);
  CLGPU_REFUSE_TYPE(node.output(node.output_count() - 1), "the output of the number", DType::kI32);
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<SuppressionAttrs>();
  const ir::Shape &boxes = node.input(0).shape, &scores = node.input(1).shape;
  if (boxes[1] != 4 || scores[0] != boxes[0]) {
    throw ShapeError("boxes " + boxes.str() + " and scores " + scores.str() +
                     " do not fit together");
  }
  const ir::Shape chosen{attrs.most}, scalar(std::vector<int>{});
  if (attrs.soft) return {chosen, chosen, scalar};
  return {chosen, scalar};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<SuppressionAttrs>();
  const std::int64_t count = node.input(0).shape[0];
  kernel::Launch launch("non_max_suppression/non_max_suppression.cl", "non_max_suppression_queue");
  launch.type("BOX_T", node.input(0).storage).type("SCORE_T", node.input(1).storage);
  launch.type("SHARE_T", node.input(3).storage).type("LEAST_T", node.input(4).storage);
  launch.macro("SOFT", attrs.soft ? 1 : 0);
  launch.src(0).src(1).src(3).src(4);
  if (attrs.soft) {
    launch.type("SIGMA_T", node.input(5).storage).type("VALUE_T", node.output(1).storage);
    launch.src(5);
  }
  launch.scratch_out(0).scratch_out(1).scratch_out(2);
  for (int i = 0; i < node.output_count(); ++i) launch.dst(i);
  launch.i32(count).i32(attrs.most).range({1}, {1});
  return {{"queue", {launch}, {{count * 4}, {count * 4}, {count * 4}}}};
}

/// One work-item compares each box with those that are chosen.
double flops(const NodeContext& node) {
  return 20.0 * node.attrs<SuppressionAttrs>().most * static_cast<double>(node.input(0).shape[0]);
}

}  // namespace

extern const Family kNonMaxSuppressionFamily;
const Family kNonMaxSuppressionFamily = [] {
  Family family;
  family.name = "non_max_suppression";
  family.attrs = ir::attrs_type<SuppressionAttrs>();
  family.builtins = {{kV4, "NON_MAX_SUPPRESSION_V4", 5, 0, 2, -1},
                     {kV5, "NON_MAX_SUPPRESSION_V5", 6, 0, 3, -1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
