// Family of SCATTER_ND and SPARSE_TO_DENSE: slices are added to a tensor of zeros, or numbers
// replace those of a tensor, at places that indices name.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"

namespace clgpu::ops {
namespace {

constexpr int kScatterNd = 122, kSparseToDense = 68;

struct ScatterAttrs : ir::Attrs {
  std::vector<int> shape;  ///< of the result
  /// SPARSE_TO_DENSE: the shape is input 1, the updates input 2, and input 3 fills the other
  /// places.
  bool replaces = false;
  CLGPU_FIELDS(shape, replaces)
};

OrRefusal<std::vector<int>> shape_of(const tfl::TensorView& tensor, int most_axes) {
  const auto sizes = tensor.ints();
  CLGPU_REFUSE_IF(!sizes, Why::kRunTime, "the shape of the result");
  std::vector<int> shape;
  for (const std::int64_t size : *sizes) {
    if (size < 1 || size > INT32_MAX)
      return wrong_value("a size of the result", size, "1 to 2147483647");
    shape.push_back(static_cast<int>(size));
  }
  CLGPU_REFUSE_IF(static_cast<int>(shape.size()) > most_axes, Why::kParameter,
                  "the shape of the result",
                  "has more than " + std::to_string(most_axes) + " axes");
  return shape;
}

OrRefusal<Imported> import_sparse(const tfl::NodeView& node) {
  constexpr int kMost = 4;  // axes of the reference kernel
  if (auto refusal = check_moved(node, 2)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "the input of indices", DType::kI32, DType::kI64);
  CLGPU_REFUSE_RANK(node.input(0), "the input of indices", 0, 2);
  CLGPU_REFUSE_TYPE(node.input(2), "the input of values", DType::kF32, DType::kI32, DType::kI64,
                    DType::kI8, DType::kU8);
  CLGPU_REFUSE_RANK(node.input(2), "the input of values", 0, 1);
  CLGPU_REFUSE_TYPE(node.input(3), "the default value", node.input(2).dtype());
  CLGPU_REFUSE_RANK(node.input(3), "the default value", 0, 0);
  const auto shape = shape_of(node.input(1), kMost);
  if (!shape) return shape.refusal();
  ScatterAttrs attrs;
  attrs.shape = *shape;
  attrs.replaces = true;
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (node.builtin() == kSparseToDense) return import_sparse(node);
  if (auto refusal = check_moved(node, 1)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "the input of indices", DType::kI32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of updates", DType::kF32, DType::kI32, DType::kI64,
                    DType::kI8, DType::kU8, DType::kBool);
  CLGPU_REFUSE_RANK(node.input(0), "the input of indices", 1);
  const auto shape = shape_of(node.input(2), kMaxRank);
  if (!shape) return shape.refusal();
  ScatterAttrs attrs;
  attrs.shape = *shape;
  return Imported{share(attrs), {}};
}

/// Places that SPARSE_TO_DENSE replaces: all of a list or a scalar, or the rows of a matrix.
struct Places {
  std::int64_t count;
  int depth;  ///< indices of each
};

Places places_of(const NodeContext& node) {
  const ir::Shape& indices = node.input(0).shape;
  if (node.attrs<ScatterAttrs>().replaces && indices.rank() < 2) return {indices.elements(), 1};
  return {indices.elements() / indices.back(0), indices.back(0)};
}

ir::Shapes infer_sparse(const NodeContext& node) {
  const ir::Shape &indices = node.input(0).shape, &values = node.input(2).shape;
  const ir::Shape dst(node.attrs<ScatterAttrs>().shape);
  const Places places = places_of(node);
  const bool one_each = values.rank() == 1 && values.elements() == places.count;
  if (places.depth != dst.rank() || !(one_each || values.rank() == 0)) {
    throw ShapeError("values " + values.str() + " at indices " + indices.str() +
                     " do not fit the result " + dst.str());
  }
  return {dst};
}

ir::Shapes infer(const NodeContext& node) {
  if (node.attrs<ScatterAttrs>().replaces) return infer_sparse(node);
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
  const bool replaces = node.attrs<ScatterAttrs>().replaces;
  const int source = replaces ? 2 : 1;
  const ir::Tensor &updates = node.input(source), &dst = node.output(0);
  const auto [count, depth] = places_of(node);
  const std::int64_t inner = dst.shape.elements(depth, dst.shape.rank());
  std::vector<int> sizes = dst.shape.dims();
  sizes.resize(6, 1);

  const auto launch_of = [&](const char* entry) {
    kernel::Launch launch("scatter_nd/scatter_nd.cl", entry);
    launch.type("SRC_T", updates.storage).type("DST_T", dst.storage);
    launch.type("INDEX_T", node.input(0).storage);
    launch.type("REST_T", replaces ? node.input(3).storage : updates.storage);
    launch.macro("IS_BOOL", dst.dtype == DType::kBool ? 1 : 0);
    return launch;
  };
  auto places = launch_of("scatter_nd_places");
  places.src(0).scratch_out(0).i32(count).i32(depth);
  for (const int size : sizes) places.i32(size);
  places.range({uz(count)}, {kElementwiseGroup});
  auto search = launch_of(replaces ? "scatter_nd_replace" : "scatter_nd_sum");
  search.src(source).scratch_in(0);
  if (replaces) search.src(3);
  search.dst(0).i32(dst.shape.elements()).i32(count);
  search.i32(replaces ? updates.shape.rank() : inner);
  search.range({uz(dst.shape.elements())}, {kElementwiseGroup});
  return {{"search", {places, search}, {{count * 4}}}};
}

/// Each element looks at the places of all updates.
double flops(const NodeContext& node) {
  return static_cast<double>(node.output(0).shape.elements()) *
         static_cast<double>(places_of(node).count);
}

}  // namespace

extern const Family kScatterNdFamily;
const Family kScatterNdFamily = [] {
  Family family;
  family.name = "scatter_nd";
  family.attrs = ir::attrs_type<ScatterAttrs>();
  family.builtins = {{kScatterNd, "SCATTER_ND", 3, 0, 1, 1},
                     {kSparseToDense, "SPARSE_TO_DENSE", 4, 0, 1, 2}};
  family.builtins[0].settings = {2};
  family.builtins[1].settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
