// Products for mobile GPUs: the choice of tile and work-group, and the launches.
#include "ops/products/quads.hpp"

#include <algorithm>
#include <array>

#include "ops/products/matmul.hpp"
#include "ops/shared/mobile.hpp"

namespace clgpu::ops {
namespace {

/// Tiles from the one with the most products per read to the one with the most work-items.
constexpr std::array<std::array<int, 2>, 4> kTiles{{{4, 2}, {4, 1}, {2, 1}, {1, 1}}};

bool images_fit(const NodeContext& node, const QuadProduct& product, const DeviceInfo& device) {
  const auto has_texels = [&](int input) {
    return node.input(input).storage == DType::kF32 || node.input(input).storage == DType::kF16;
  };
  return device.image_buffer_texels > 0 && product.group_in % 4 == 0 && !product.int8 &&
         has_texels(product.src) && has_texels(product.weights);
}

/// Elements of src, or words of four, that the kernel reads at once: its macro KV.
int read_at_once(const QuadProduct& product) {
  const bool quads = product.group_in % 4 == 0;
  if (!product.int8) return quads ? 4 : 1;
  return product.group_in % 16 == 0 ? 4 : quads ? 1 : 0;
}

std::int64_t vectors_of(const QuadProduct& product, int vectors) {
  return ceil_div(product.group_out, 4 * vectors);
}

std::int64_t items_of(const QuadProduct& product, int pixels, int vectors) {
  return ceil_div(product.pixels, pixels) * vectors_of(product, vectors) * product.groups;
}

/// Work-items that share a sum: more than one if too few would be busy, each with several steps.
int parts_of(const QuadProduct& product, const DeviceInfo& device) {
  constexpr int kMost = 16, kSteps = 4;
  int parts = 1;
  while (parts < kMost && items_of(product, 1, 1) * parts < items_to_fill(device) &&
         product.group_in >= 2 * parts * 4 && product.depth >= 2 * parts * kSteps * 4)
    parts *= 2;
  return parts;
}

/// Index of the largest tile that leaves enough work-items.
std::size_t guess(const QuadProduct& product, const DeviceInfo& device) {
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    const auto [pixels, vectors] = kTiles[i];
    if (pixels > product.pixels || 4 * vectors > round_up(product.group_out, 4)) continue;
    if (items_of(product, pixels, vectors) >= items_to_fill(device)) return i;
  }
  return kTiles.size() - 1;
}

/// Work-items of a group: a wave of Adreno has 64 or 128, waves of others have fewer. Mali halves
/// the threads of a core for kernels with many registers; 64 always fit.
int group_items(const DeviceInfo& device, bool large) {
  return device.is(GpuFamily::kAdreno) && !large ? 128 : 64;
}

/// Work-items along channels and pixels: neighbours share image and weights equally, so groups are
/// about square, with few idle items.
struct Shape {
  std::int64_t c, p;
};

Shape group_shape(const QuadProduct& product, const DeviceInfo& device, const QuadTile& tile) {
  const auto items =
      std::min<std::int64_t>(tile.items, static_cast<std::int64_t>(device.max_work_group_size));
  const std::int64_t vectors = vectors_of(product, tile.vectors);
  const std::int64_t rows = ceil_div(product.pixels, tile.pixels);
  const auto wastes = [&](std::int64_t c) { return 5 * round_up(vectors, c) > 6 * vectors; };
  Shape shape{1, 1};
  for (const std::int64_t c : {2, 4, 8}) {
    if (c * c <= items && c * tile.parts <= items && !wastes(c)) shape.c = c;
  }
  shape.p = std::max<std::int64_t>(1, items / (tile.parts * shape.c));
  while (shape.p > 1 && shape.p / 2 >= rows) shape.p /= 2;
  while (2 * shape.c * shape.p * tile.parts <= items && !wastes(2 * shape.c)) shape.c *= 2;
  return shape;
}

}  // namespace

std::string QuadTile::name() const {
  std::string result = image ? "quads_image_" : "quads_";
  result += std::to_string(pixels) + "x" + std::to_string(vectors);
  if (parts > 1) result += "_parts" + std::to_string(parts);
  if (items < 64) result += "_items" + std::to_string(items);
  return result;
}

std::vector<QuadTile> quad_tiles(const NodeContext& node, const QuadProduct& product,
                                 const DeviceInfo& device) {
  const bool images = images_fit(node, product, device);
  const auto tile = [&](std::size_t i, bool image) {
    const auto [pixels, vectors] = kTiles[i];
    return QuadTile{pixels, vectors, 1, image, group_items(device, pixels * vectors == 8)};
  };
  const std::size_t best = guess(product, device);
  QuadTile shared = tile(best, images && device.prefers_images());
  shared.parts = parts_of(product, device);

  std::vector<QuadTile> result;
  if (!device.is_mobile()) {
    result = {tile(0, false)};
    if (images) result.push_back(tile(2, true));
    if (shared.parts > 1) result.push_back(shared);
    return result;
  }
  if (shared.parts > 1 && has_local_memory(device)) result.push_back(shared);
  const std::size_t first = best > 0 ? best - 1 : 0;
  const std::size_t last = std::min(best + 1, kTiles.size() - 1);
  // The best guess, more work-items, fewer.
  std::vector<std::size_t> order{best};
  if (last > best) order.push_back(last);
  if (first < best) order.push_back(first);
  if (images && device.prefers_images()) {
    for (const std::size_t i : order) result.push_back(tile(i, true));
    order.resize(1);
  }
  for (const std::size_t i : order) result.push_back(tile(i, false));
  if (images && !device.prefers_images()) result.push_back(tile(best, true));
  // Smaller groups, with which some kernels are faster.
  QuadTile small = tile(best, images && device.prefers_images());
  small.items = 32;
  if (device.max_work_group_size >= 64) result.push_back(small);
  return result;
}

kernel::Candidate pack_quads(const NodeContext& node, const QuadProduct& product,
                             const DeviceInfo& device, const QuadTile& tile) {
  const ir::Tensor& weights = node.input(product.weights);
  const std::int64_t panel = 4 * tile.vectors * group_shape(product, device, tile).c;
  const std::int64_t panels = ceil_div(product.group_out, panel);
  const std::int64_t taps = product.depth / product.group_in;
  const std::int64_t rows = product.int8 ? taps * ceil_div(product.group_in, 4) : product.depth;
  const char* file = product.int8 ? "conv2d/pack_words.cl" : "conv2d/pack_weights.cl";
  const char* entry = product.int8 ? "conv2d_pack_words" : "conv2d_pack_weights";
  kernel::Launch launch(file, entry);
  launch.macro("PANEL", panel).type("SRC_T", weights.storage);
  launch.src(product.weights).scratch_out(0).i32(0);  // no zeros after the panels
  DType storage = DType::kI32;
  if (product.int8) {
    launch.i32(0).i32(taps).i32(product.group_in);
  } else {
    storage = weights.storage;
    launch.type("DST_T", storage).i32(product.depth);
  }
  launch.i32(product.group_out).i32(panels);
  launch.range({uz(rows), uz(product.groups * panels + 1)},
               {std::min(kElementwiseGroup, device.max_work_group_size), 1});
  const std::int64_t elements = product.groups * panels * rows * panel;
  return {tile.name(), {launch}, {{elements * static_cast<std::int64_t>(size_of(storage))}}};
}

void set_quads(kernel::Launch& launch, const NodeContext& node, const QuadProduct& product,
               const DeviceInfo& device, const QuadTile& tile) {
  const Shape shape = group_shape(product, device, tile);
  launch.macro("PX", tile.pixels).macro("OV", tile.vectors).macro("PARTS", tile.parts);
  launch.macro("WG_C", shape.c).macro("WG_P", shape.p);
  launch.macro("KV", read_at_once(product)).macro("POINTWISE", product.pointwise ? 1 : 0);
  const bool whole = product.group_out % 4 == 0 && result_layout(node).aligned(4);
  launch.macro("VEC_N", whole ? 1 : 0);
  const DType storage = node.input(product.weights).storage;
  if (product.int8) {
    set_words(launch, device, /*a_sums=*/int8_zero_point(node.input(product.weights)) != 0);
  } else {
    const char* kind = tile.image ? "image" : "buffer";
    launch.macro("SRC_KIND", kind).macro("PACKED_KIND", kind);
    set_weights_type(launch, "PACKED_T", node, storage);
  }
  if (tile.image) {
    launch.src_image(product.src, node.input(product.src).storage).scratch_image(0, storage);
  } else {
    launch.src(product.src).scratch_in(0);
  }
  launch.range({uz(round_up(vectors_of(product, tile.vectors), shape.c)),
                uz(ceil_div(product.pixels, tile.pixels)), uz(product.groups * tile.parts)},
               {uz(shape.c), uz(shape.p), uz(tile.parts)});
}

void push_quad_zeros(kernel::Launch& launch, const NodeContext& node, const QuadProduct& product) {
  if (!product.int8) return;
  launch.i32(byte_word(int8_zero_point(node.input(product.src))));
  launch.i32(int8_zero_point(node.input(product.weights)));
}

}  // namespace clgpu::ops
