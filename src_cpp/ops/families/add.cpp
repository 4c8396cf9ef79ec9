// Family of ADD: separate from binary.cpp because ops="core" claims only ADD.
#include "ops/families/binary.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {

extern const Family kAddFamily;
const Family kAddFamily = [] {
  Family family;
  family.name = "add";
  family.attrs = ir::attrs_type<BinaryAttrs>();
  family.has_epilogue = true;
  family.writes_slices = true;
  family.builtins = {{0, "ADD", 2}};
  family.core = true;
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

ir::Node sum_of(const ir::Node& of, int a, int b, int result) {
  ir::Node node;
  node.kind = &kAddFamily;
  node.op = "ADD";
  node.tflite_index = of.tflite_index;
  node.inputs = {a, b};
  node.outputs = {result};
  node.attrs = share(BinaryAttrs{});
  node.epilogue = of.epilogue;
  return node;
}

}  // namespace clgpu::ops
