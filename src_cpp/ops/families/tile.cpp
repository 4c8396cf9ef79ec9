// Family of TILE: the tensor repeated along its axes.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kTile = 69;

struct TileAttrs : ir::Attrs {
  std::vector<int> multiples;  ///< one per axis
  CLGPU_FIELDS(multiples)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const auto multiples = node.input(1).ints();
  CLGPU_REFUSE_IF(!multiples, Why::kRunTime, "the tensor of multiples");
  CLGPU_REFUSE_IF(static_cast<int>(multiples->size()) != node.input(0).rank(), Why::kParameter, "",
                  "there is not one multiple per axis of the input");
  TileAttrs attrs;
  for (const std::int64_t m : *multiples) {
    if (m < 0) return wrong_value("a multiple", m, "0 and more");
    attrs.multiples.push_back(static_cast<int>(m));
  }
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  ir::Shape dst = node.input(0).shape;
  const auto& multiples = node.attrs<TileAttrs>().multiples;
  for (int i = 0; i < dst.rank(); ++i) dst[i] *= multiples[uz(i)];
  return {dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const auto& multiples = node.attrs<TileAttrs>().multiples;

  // An axis that does not repeat is joined to the one before it.
  std::vector<int> dst_dims, src_dims;
  for (int i = 0; i < src.shape.rank(); ++i) {
    if (multiples[uz(i)] == 1 && !dst_dims.empty()) {
      dst_dims.back() *= dst.shape[i];
      src_dims.back() *= src.shape[i];
    } else {
      dst_dims.push_back(dst.shape[i]);
      src_dims.push_back(src.shape[i]);
    }
  }
  MoveUnit unit = move_unit(src.storage, dst.storage, src_dims.empty() ? 1 : src_dims.back());
  if (!dst_dims.empty()) {
    dst_dims.back() /= unit.elements;
    src_dims.back() /= unit.elements;
  }

  const std::int64_t n = dst.shape.elements() / unit.elements;
  const auto d = six(dst_dims, 1), m = six(src_dims, 1);
  kernel::Launch launch("tile/tile.cl", "tile_gather");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.macro("AXES", axes_variant(dst_dims.size()));
  launch.src(0).dst(0).i32(n);
  for (std::size_t k = 1; k < 6; ++k) launch.i32(d[k]);
  for (const int size : m) launch.i32(size);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"gather", {launch}, {}}};
}

}  // namespace

extern const Family kTileFamily;
const Family kTileFamily = [] {
  Family family;
  family.name = "tile";
  family.attrs = ir::attrs_type<TileAttrs>();
  family.builtins = {{kTile, "TILE", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
