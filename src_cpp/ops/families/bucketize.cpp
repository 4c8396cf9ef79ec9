// Family of BUCKETIZE: the interval between given boundaries that each number lies in.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kBucketize = 147;

/// TfLiteBucketizeParams.
struct BucketizeParams {
  std::int32_t count;
  const float* boundaries;
};

struct BucketizeAttrs : ir::Attrs {
  std::vector<float> boundaries;  ///< ascending
  CLGPU_FIELDS(boundaries)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI32, DType::kI64);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kI32);
  const auto* params = node.params<BucketizeParams>();
  CLGPU_REFUSE_IF(params == nullptr || params->boundaries == nullptr || params->count < 1,
                  Why::kParameter, "", "the node has no parameters");
  BucketizeAttrs attrs;
  attrs.boundaries.assign(params->boundaries, params->boundaries + params->count);
  CLGPU_REFUSE_IF(!std::is_sorted(attrs.boundaries.begin(), attrs.boundaries.end()),
                  Why::kParameter, "the boundaries", "do not ascend");
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& boundaries = node.attrs<BucketizeAttrs>().boundaries;
  const std::int64_t n = node.output(0).shape.elements();
  kernel::Launch launch("bucketize/bucketize.cl", "bucketize_search");
  launch.type("SRC_T", node.input(0).storage).src(0).scratch_in(0).dst(0);
  launch.i32(n).i32(static_cast<std::int64_t>(boundaries.size()));
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"search", {launch}, {kernel::table(boundaries)}}};
}

}  // namespace

extern const Family kBucketizeFamily;
const Family kBucketizeFamily = [] {
  Family family;
  family.name = "bucketize";
  family.attrs = ir::attrs_type<BucketizeAttrs>();
  family.builtins = {{kBucketize, "BUCKETIZE", 1, 0, 1, -1}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.rows = &kRowwise;
  return family;
}();

}  // namespace clgpu::ops
