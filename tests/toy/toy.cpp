// Source file of BROADCAST_ARGS, which the project lacks: a family for the test beside this file.
#include <cstdlib>

#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "y", DType::kI32);
  CLGPU_REFUSE_TYPE(node.input(1), "x", DType::kI32);
  return Imported{share(ir::Attrs{}), {}};
}

kernel::Candidate elements(const NodeContext& node, const char* name, int each) {
  kernel::Launch launch("toy/toy.cl", "toy_broadcast");
  launch.type("Y_T", node.input(0).storage).type("X_T", node.input(1).storage);
  launch.type("DST_T", node.output(0).storage);
  if (std::getenv("TOY_FORGETS_EACH") == nullptr) launch.macro("EACH", each);
  const std::int64_t count = node.output(0).shape.elements();
  launch.src(0).src(1).dst(0).i32(count);
  launch.range({uz(ceil_div(count, each))}, {kElementwiseGroup});
  return {name, {launch}, {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  return {elements(node, "several", 4),
          kernel::of_form(kernel::Form::kReference, elements(node, "plain", 1))};
}

}  // namespace

extern const Family kToyFamily;
const Family kToyFamily = [] {
  Family family;
  family.name = "toy";
  family.builtins = {{145, "BROADCAST_ARGS", 2}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
