// Family of CUMSUM: running sums along one axis.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kCumsum = 128;

struct CumsumAttrs : ir::Attrs {
  std::int64_t axis = 0;  ///< may be negative
  bool exclusive = false;
  bool reverse = false;
  CLGPU_FIELDS(axis, exclusive, reverse)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI32, DType::kI64);
  const auto* params = node.params<tfl::CumsumParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto axis = node.input(1).ints();
  CLGPU_REFUSE_IF(!axis, Why::kRunTime, "the axis");
  CLGPU_REFUSE_IF(axis->size() != 1, Why::kParameter, "the axis", "is not one number");
  const int rank = node.input(0).rank();
  if (const auto checked = checked_axis((*axis)[0], rank); !checked) return checked.refusal();
  CumsumAttrs attrs;
  attrs.axis = (*axis)[0];
  attrs.exclusive = params->exclusive;
  attrs.reverse = params->reverse;
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<CumsumAttrs>();
  const ir::Tensor& src = node.input(0);
  const int rank = src.shape.rank();
  const int axis = normalize_axis(attrs.axis, rank).value();
  const int length = src.shape[axis];
  const std::int64_t inner = src.shape.elements(axis + 1, rank);
  const std::int64_t lines = src.shape.elements() / length;
  const std::size_t group = group_of(device.is_cpu() ? 64 : 256, device);

  const auto make = [&](const char* name, const char* entry, std::size_t items) {
    kernel::Launch launch("cumsum/cumsum.cl", entry);
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("WG", static_cast<std::int64_t>(group));
    launch.macro("EXCLUSIVE", attrs.exclusive ? 1 : 0).macro("REVERSE", attrs.reverse ? 1 : 0);
    launch.src(0).dst(0).i32(lines).i32(length).i32(inner).range({items}, {group});
    return kernel::Candidate{name, {launch}, {}};
  };
  const auto serial = make("serial", "cumsum_serial", uz(lines));
  const auto scan = make("scan", "cumsum_scan", uz(lines) * group);
  // The scan does eight times as many additions; it pays only if the lines alone do not fill the
  // device.
  if (!device.is_cpu() && length >= 64 && lines < 1024LL * device.compute_units) {
    return {scan, serial};
  }
  return {serial, scan};
}

}  // namespace

extern const Family kCumsumFamily;
const Family kCumsumFamily = [] {
  Family family;
  family.name = "cumsum";
  family.attrs = ir::attrs_type<CumsumAttrs>();
  family.builtins = {{kCumsum, "CUMSUM", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
