#include "ops/shared/moments.hpp"

#include "ops/shared/common.hpp"

namespace clgpu::ops::moments {

ir::Shapes infer(const NodeContext& node, const std::string& what) {
  const ir::Shape& x = node.input(kX).shape;
  for (const int input : {kScale, kBias}) {
    if (node.has_input(input) && node.input(input).shape.elements() != x.back(0))
      throw ShapeError(what + " not fit constants of " + node.input(input).shape.str());
  }
  check_residual_shape(node, x);
  return {x};
}

std::vector<int> in_place(const NodeContext& node) {
  std::vector<int> inputs;
  for (const int input : {kX, kResidual}) {
    if (node.output(0).placement) break;
    if (node.has_input(input) && node.input(input).storage == node.output(0).storage)
      inputs.push_back(input);
  }
  return inputs;
}

double flops(const NodeContext& node) {
  return 6.0 * static_cast<double>(node.output(0).shape.elements());
}

ir::Node node(const Family& kind, const ir::Node& last, int x, float epsilon, int scale, int bias) {
  ir::Node made = last;
  made.kind = &kind;
  made.inputs = {x, scale, bias};
  MomentsAttrs attrs;
  attrs.epsilon = epsilon;
  made.attrs = share(attrs);
  return made;
}

}  // namespace clgpu::ops::moments
