// Source file of FAKE_QUANT, which the project lacks: a family for the test beside this file.
#include <cstdlib>

#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "x", DType::kF32);
  return Imported{share(ir::Attrs{}), {}};
}

kernel::Candidate elements(const NodeContext& node, const char* name, int each) {
  kernel::Launch launch("toy/toy.cl", "toy_rounded");
  launch.type("X_T", node.input(0).storage).type("DST_T", node.output(0).storage);
  if (std::getenv("TOY_FORGETS_EACH") == nullptr) launch.macro("EACH", each);
  const std::int64_t count = node.output(0).shape.elements();
  launch.src(0).dst(0).i32(count);
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
  family.builtins = {{80, "FAKE_QUANT", 1}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
