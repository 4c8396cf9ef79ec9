// Family of sums of the results of experts, each times its weight. A family without an operation:
// passes::group_experts makes its nodes of the products with gates and their sum.
#include "ops/families/expert_sum.hpp"

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {

extern const Family kExpertSumFamily;

namespace {

constexpr int kY = 0, kWeights = 1;

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape &y = node.input(kY).shape, &weights = node.input(kWeights).shape;
  if (y.rank() != 4 || y[2] != 1 || weights.elements() != y.elements(0, 2))
    throw ShapeError("results " + y.str() + " of experts and weights " + weights.str() +
                     " do not belong together");
  return {{y[0], y[3]}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Shape& y = node.input(kY).shape;
  kernel::Launch launch("expert_sum/expert_sum.cl", "expert_sum");
  launch.type("Y_T", node.input(kY).storage).type("WEIGHT_T", node.input(kWeights).storage);
  launch.type("DST_T", node.output(0).storage);
  launch.src(kY).src(kWeights).dst(0).i32(y[3]).i32(y[1]);
  launch.range({uz(y[3]), uz(y[0])}, {kElementwiseGroup, 1});
  return {{"columns", {launch}, {}}};
}

double flops(const NodeContext& node) {
  return 2.0 * static_cast<double>(node.input(kY).shape.elements());
}

}  // namespace

const Family kExpertSumFamily = [] {
  Family family;
  family.name = "expert_sum";
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  return family;
}();

ir::Node expert_sum(const ir::Node& last, int y, int weights, int result) {
  ir::Node node;
  node.kind = &kExpertSumFamily;
  node.op = last.op;
  node.tflite_index = last.tflite_index;
  node.inputs = {y, weights};
  node.outputs = {result};
  return node;
}

}  // namespace clgpu::ops
