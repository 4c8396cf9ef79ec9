// Family of SCATTER_ND: slices are added to a tensor of zeros, at places that indices name.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"

namespace clgpu::ops {
namespace {

struct ScatterAttrs : ir::Attrs {
  std::vector<int> shape;  ///< of the result
  CLGPU_FIELDS(shape)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 1)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "the input of indices", DType::kI32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of updates", DType::kF32, DType::kI32, DType::kI64,
                    DType::kI8, DType::kU8, DType::kBool);
  CLGPU_REFUSE_RANK(node.input(0), "the input of indices", 1);
  const auto shape = node.input(2).ints();
  CLGPU_REFUSE_IF(!shape, Why::kRunTime, "the shape of the result");
  ScatterAttrs attrs;
  for (const std::int64_t size : *shape) {
    if (size < 1 || size > INT32_MAX)
      return wrong_value("a size of the result", size, "1 to 2147483647");
    attrs.shape.push_back(static_cast<int>(size));
  }
  CLGPU_REFUSE_IF(attrs.shape.size() > kMaxRank, Why::kParameter, "the shape of the result",
                  "has more than 6 axes");
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape &indices = node.input(0).shape, &updates = node.input(1).shape;
  const ir::Shape dst(node.attrs<ScatterAttrs>().shape);
  const int depth = indices.back(0), outer = indices.rank() - 1;
  std::vector<int> wanted = indices.dims();
  wanted.pop_back();
  for (int axis = depth; axis < dst.rank(); ++axis) wanted.push_back(dst[axis]);
  if (depth > dst.rank() || updates != ir::Shape(wanted)) {
    throw ShapeError("updates " + updates.str() + " at " + std::to_string(outer) +
                     " axes of indices " + indices.str() + " do not fit the result " + dst.str());
  }
  return {dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor &updates = node.input(1), &dst = node.output(0);
  const ir::Shape& indices = node.input(0).shape;
  const int depth = indices.back(0);
  const std::int64_t count = indices.elements() / depth;
  const std::int64_t inner = dst.shape.elements(depth, dst.shape.rank());
  std::vector<int> sizes = dst.shape.dims();
  sizes.resize(6, 1);

  const auto launch_of = [&](const char* entry) {
    kernel::Launch launch("scatter_nd/scatter_nd.cl", entry);
    launch.type("SRC_T", updates.storage).type("DST_T", dst.storage);
    launch.macro("IS_BOOL", dst.dtype == DType::kBool ? 1 : 0);
    return launch;
  };
  auto places = launch_of("scatter_nd_places");
  places.src(0).scratch_out(0).i32(count).i32(depth);
  for (const int size : sizes) places.i32(size);
  places.range({uz(count)}, {kElementwiseGroup});
  auto sum = launch_of("scatter_nd_sum");
  sum.src(1).scratch_in(0).dst(0).i32(dst.shape.elements()).i32(count).i32(inner);
  sum.range({uz(dst.shape.elements())}, {kElementwiseGroup});
  return {{"search", {places, sum}, {{count * 4}}}};
}

/// Each element looks at the places of all updates.
double flops(const NodeContext& node) {
  const ir::Shape& indices = node.input(0).shape;
  return static_cast<double>(node.output(0).shape.elements()) *
         static_cast<double>(indices.elements() / indices.back(0));
}

}  // namespace

extern const Family kScatterNdFamily;
const Family kScatterNdFamily = [] {
  Family family;
  family.name = "scatter_nd";
  family.attrs = ir::attrs_type<ScatterAttrs>();
  family.builtins = {{122, "SCATTER_ND", 3, 0, 1, 1}};
  family.builtins[0].settings = {2};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
