// Family of UNIQUE: the different elements, in the order in which they first occur. A node of a
// variant counts them, because their number decides on the shape of the result.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {

extern const Family kUniqueFamily, kUniqueNumberFamily;

namespace {

constexpr int kUnique = 103;
// Each element is compared with those before it until one is equal.
constexpr std::int64_t kMostElements = 1 << 16;

struct UniqueAttrs : ir::Attrs {
  int number = 0;
  CLGPU_FIELDS(number)
};

// Floats stay on the CPU: the runtimes' kernels sort them, and the place of NaN depends on the
// elements before it.
OrRefusal<Imported> import_measured(const tfl::NodeView& node, std::int64_t number) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kI32, DType::kI64, DType::kI16, DType::kI8,
                    DType::kU8);
  if (auto refusal = check_moved(node, 0)) return *refusal;
  CLGPU_REFUSE_RANK(node.input(0), "input", 1, 1);
  CLGPU_REFUSE_TYPE(node.output(1), "the output of places", DType::kI32, DType::kI64);
  const auto* params = node.params<tfl::OutputTypeParams>();
  CLGPU_REFUSE_IF(params == nullptr || params->output_type != node.output(1).tflite_type(),
                  Why::kParameter, "the type of places", "is not that of the output");
  UniqueAttrs attrs;
  attrs.number = static_cast<int>(number);
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto checked = import_measured(node, 0); !checked) return checked;
  return Refusal{Why::kRunTime, "the number of different elements"};
}

void check_size(const ir::Shape& src) {
  if (src.elements() > kMostElements) {
    throw ShapeError("the input " + src.str() + " has more than " + std::to_string(kMostElements) +
                     " elements");
  }
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  check_size(src);
  return {ir::Shape{node.attrs<UniqueAttrs>().number}, src};
}

ir::Shapes infer_number(const NodeContext& node) {
  check_size(node.input(0).shape);
  return {ir::Shape{1}};
}

kernel::Launch launch_of(const char* entry, DType src, DType places, std::size_t group) {
  kernel::Launch launch("unique/unique.cl", entry);
  launch.type("SRC_T", src).type("PLACE_T", places);
  launch.macro("WG", static_cast<std::int64_t>(group));
  return launch;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const std::int64_t count = node.input(0).shape.elements();
  const std::size_t group = group_of(device.is_cpu() ? 64 : 256, device);
  const DType src = node.input(0).storage, places = node.output(1).storage;
  kernel::Launch first = launch_of("unique_first", src, places, group);
  first.src(0).scratch_out(0).i32(count).range({uz(count)}, {kElementwiseGroup});
  kernel::Launch order = launch_of("unique_order", src, places, group);
  order.scratch_in(0).scratch_out(1).i32(count).range({group}, {group});
  kernel::Launch write = launch_of("unique_write", src, places, group);
  write.src(0).scratch_in(0).scratch_in(1).dst(0).dst(1).i32(count);
  write.i32(node.attrs<UniqueAttrs>().number).range({uz(count)}, {kElementwiseGroup});
  return {{"search", {first, order, write}, {{count * 4}, {count * 4}}}};
}

std::vector<kernel::Candidate> number(const NodeContext& node, const DeviceInfo& device) {
  const std::int64_t count = node.input(0).shape.elements();
  const std::size_t group = group_of(device.is_cpu() ? 64 : 256, device);
  const DType src = node.input(0).storage;
  kernel::Launch first = launch_of("unique_first", src, DType::kI32, group);
  first.src(0).scratch_out(0).i32(count).range({uz(count)}, {kElementwiseGroup});
  kernel::Launch number = launch_of("unique_number", src, DType::kI32, group);
  number.scratch_in(0).dst(0).i32(count).range({group}, {group});
  return {{"number", {first, number}, {{count * 4}}}};
}

/// Half of all pairs, if all elements differ.
double flops(const NodeContext& node) {
  const auto count = static_cast<double>(node.input(0).shape.elements());
  return count * count / 2;
}

}  // namespace

const Family kUniqueFamily = [] {
  Family family;
  family.name = "unique";
  family.attrs = ir::attrs_type<UniqueAttrs>();
  Operation unique{kUnique, "UNIQUE", 1, 0, 2};
  unique.measured = 0;
  family.builtins = {unique};
  family.import = import;
  family.import_measured = import_measured;
  family.measure = &kUniqueNumberFamily;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  family.variants = {&kUniqueNumberFamily};
  return family;
}();

const Family kUniqueNumberFamily = [] {
  Family family;
  family.name = "unique";
  family.variant = "number";
  family.infer = infer_number;
  family.candidates = number;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
