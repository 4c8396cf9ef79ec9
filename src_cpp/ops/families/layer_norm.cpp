// Family of layer normalisation (Ba, Kiros and Hinton, "Layer Normalization", 2016); the pass
// fuse_layer_norm makes the nodes from the elementary operations that converters write.
#include "ops/families/layer_norm.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "ops/shared/mobile.hpp"
#include "ops/shared/moments.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {

extern const Family kAddFamily, kBinaryFamily, kReduceFamily, kUnaryFamily;

namespace {

using moments::kBias, moments::kScale, moments::kX;

ir::Shapes infer(const NodeContext& node) {
  const std::string cols = std::to_string(node.input(kX).shape.back(0));
  return moments::infer(node, "rows of " + cols + " elements do");
}

/// A work-group takes `rows` rows; `items` work-items share each and read `width` columns at once.
struct Tiling {
  std::int64_t rows, items, width;
};

kernel::Candidate tiled(const NodeContext& node, const char* name, const Tiling& tiling) {
  constexpr std::int64_t kMostHeld = 8;
  const ir::Tensor& x = node.input(kX);
  const std::int64_t cols = x.shape.back(0), rows = x.shape.elements() / cols;
  const bool has_scale = node.has_input(kScale);
  // Few distinct numbers, since each is a program of its own.
  std::int64_t held = 1;
  while (held * tiling.items * tiling.width < cols) held *= 2;
  kernel::Launch launch("layer_norm/layer_norm.cl", "layer_norm_rows");
  launch.type("SRC_T", x.storage).macro("SCALE", has_scale ? 1 : 0);
  launch.macro("ROWS", tiling.rows).macro("WG", tiling.items).macro("VW", tiling.width);
  launch.macro("HELD", held > kMostHeld ? 0 : held);
  set_result_types(launch, node, kBias);
  launch.src(kX);
  if (has_scale) launch.type("SCALE_T", node.input(kScale).storage).src(kScale);
  push_result(launch, node, kBias).i32(rows).i32(cols);
  launch.f32(node.attrs<MomentsAttrs>().epsilon);
  launch.range({uz(ceil_div(rows, tiling.rows) * tiling.rows * tiling.items)},
               {uz(tiling.rows * tiling.items)});
  // An item reads and writes the same elements of a row.
  return {name, {launch}, {}, {}, moments::in_place(node)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Shape& x = node.input(kX).shape;
  const std::int64_t cols = x.back(0), rows = x.elements() / std::max<std::int64_t>(cols, 1);
  const auto most = static_cast<std::int64_t>(group_of(256, device));
  const auto divides = [&](int width) {
    return cols % width == 0 && result_layout(node).aligned(width);
  };
  const int width = divides(4) ? 4 : 1;

  // On a CPU vectors run along a row, and several groups for each core end at about the same time.
  const int widest = device.is_cpu() && divides(16) ? 16 : width;
  const std::int64_t units = 4 * std::int64_t{device.compute_units};
  Tiling alone{1, 1, widest};
  while (alone.rows < std::min<std::int64_t>(64, most) &&
         (!device.is_cpu() || alone.rows * 2 * units <= rows))
    alone.rows *= 2;

  // Each item has about two vectors, so that several of them are read at a time.
  Tiling shared{1, 1, width};
  const std::int64_t most_items = device.is_cpu() ? std::min<std::int64_t>(16, most) : most;
  while (shared.items < most_items && shared.items * 2 * width < cols) shared.items *= 2;
  while (!device.is_cpu() && shared.rows * shared.items < std::min<std::int64_t>(64, most))
    shared.rows *= 2;

  std::vector<kernel::Candidate> list;
  // Where local memory is slow, sharing pays only if few items would work without it.
  const bool alone_first =
      device.is_cpu() || shared.items == 1 ||
      (device.is_mobile() && !has_local_memory(device) && rows >= items_to_fill(device) / 2);
  list.push_back(tiled(node, "shared", shared));
  list.insert(alone_first ? list.begin() : list.end(), tiled(node, "row", alone));
  list.push_back(kernel::of_form(kernel::Form::kReference, tiled(node, "naive", {1, 1, 1})));
  return list;
}

}  // namespace

ir::Node layer_norm(const ir::Node& last, int x, float epsilon, int scale, int bias) {
  return moments::node(kLayerNormFamily, last, x, epsilon, scale, bias);
}

const Family kLayerNormFamily = [] {
  Family family;
  family.name = "layer_norm";
  family.attrs = ir::attrs_type<MomentsAttrs>();
  family.has_epilogue = true;
  family.residual = moments::kResidual;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.rows = &kRowwise;
  family.flops = moments::flops;
  family.stock_passes = 6;
  family.fuses = {&kAddFamily, &kBinaryFamily, &kReduceFamily, &kUnaryFamily};
  return family;
}();

}  // namespace clgpu::ops
