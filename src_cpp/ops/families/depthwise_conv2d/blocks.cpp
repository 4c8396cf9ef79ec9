// Engines that keep the filter and a block of pixels in registers.
#include <algorithm>
#include <utility>

#include "ops/families/depthwise_conv2d/depthwise.hpp"

namespace clgpu::ops::depthwise_conv2d {
namespace {

// Whether a block of pixels can keep its filter and a row of the image in registers.
bool fits_registers(const NodeContext& node) {
  const auto& g = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& weights = node.input(kWeights).shape;
  const auto fits = [](int filter, int stride, int dilation) {
    return filter <= 7 && stride <= 3 && (filter - 1) * dilation <= 8;
  };
  return multiplier(node) == 1 && weights[1] * weights[2] <= 25 &&
         fits(weights[1], g.stride_h, g.dilation_h) && fits(weights[2], g.stride_w, g.dilation_w);
}

/// Macros of the filter and the geometry.
void set_filter(kernel::Launch& launch, const NodeContext& node) {
  const auto& geometry = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& weights = node.input(kWeights).shape;
  launch.macro("FILTER_H", weights[1]).macro("FILTER_W", weights[2]);
  launch.macro("STRIDE_H", geometry.stride_h).macro("STRIDE_W", geometry.stride_w);
  launch.macro("DILATION_H", geometry.dilation_h).macro("DILATION_W", geometry.dilation_w);
  launch.macro("WEIGHTS_SHIFTED", weights_zero(node) == 0 ? 0 : 1);
}

/// Arguments of engines that have the filter's geometry as macros, after those of their blocks.
void push_image(kernel::Launch& launch, const NodeContext& node) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const ir::Shape& dst = node.output(0).shape;
  const ConvWindows at =
      windows(node.attrs<ConvAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
  launch.i32(src[1]).i32(src[2]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  launch.i32(at.h.before).i32(at.w.before);
  push_zeros(launch, node);
}

// So many work-items hide that each of them waits. Measured on an H200: blocks of four pixels halve
// the time then, and lanes without work cost most.
constexpr std::int64_t kManyItemsOfUnit = 256;

/// Vectors of channels and blocks of pixels of a work-group.
struct Group {
  std::int64_t vectors = 1, blocks = 1;
};

/// Powers of two, neighbouring channels first.
Group plain_group(std::int64_t vectors) {
  Group group;
  while (group.vectors < 32 && group.vectors < vectors) group.vectors *= 2;
  group.blocks = 128 / group.vectors;
  return group;
}

/// The group of 64 to 128 work-items, a multiple of the lanes, of which the largest share has work,
/// at least eight vectors of a pixel, which are neighbours in memory. Groups that are wider, then
/// larger, go before those that gain less than 3 %. Without such a group, as with five vectors, it
/// has all vectors and up to 64 work-items.
Group filled_group(std::int64_t vectors, std::int64_t blocks, std::int64_t lanes) {
  constexpr std::int64_t kFewest = 64, kMost = 128, kLongest = 64;
  const std::int64_t neighbours = std::min<std::int64_t>(vectors, 8);
  const std::int64_t step = std::max<std::int64_t>(lanes, 32);
  const auto share = [](std::int64_t needed, std::int64_t of) {
    return static_cast<double>(needed) / static_cast<double>(round_up(needed, of));
  };
  Group best = {neighbours, kFewest / neighbours};
  double most = 0;
  for (std::int64_t across = std::min(vectors, kLongest); across >= neighbours; --across) {
    for (std::int64_t items = kMost; items >= kFewest; items -= step) {
      if (items % across != 0 || items / across > kLongest) continue;
      const double found = share(vectors, across) * share(blocks, items / across);
      if (found <= most * 1.03) continue;
      most = found;
      best = {across, items / across};
    }
  }
  return best;
}

// `columns` x `rows` pixels of up to `most` channels per work-item.
kernel::Candidate blocked(const NodeContext& node, const DeviceInfo& device, int columns, int rows,
                          int most) {
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  const int width = vector_width(node, most);
  const std::int64_t vectors = dst[3] / width, blocks = ceil_div(dst[2], columns);
  const std::int64_t row_blocks = ceil_div(dst[1], rows);
  // Few work-items may become a stage of a chain, where other groups than powers of two leave lanes
  // without work.
  const bool many =
      vectors * blocks * row_blocks * dst[0] > kManyItemsOfUnit * device.compute_units;
  const Group group = cpu    ? Group{}
                      : many ? filled_group(vectors, blocks, device.lanes)
                             : plain_group(vectors);

  const std::string name = "direct_" + std::to_string(columns) + "x" + std::to_string(rows);
  kernel::Candidate candidate =
      make_candidate(node, name, "depthwise_conv2d/blocked.cl", "depthwise_conv2d_blocked");
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", columns).macro("PY", rows);
  launch.macro("ALIGNED", result_layout(node).aligned(width) ? 1 : 0);
  // A CPU core branches around conditions; the items of a warp wait for each other.
  launch.macro("INTERIOR", cpu ? 1 : 0).macro("WG_C", group.vectors);
  launch.macro("WG_X", group.blocks);
  set_filter(launch, node);
  launch.i32(row_blocks);
  push_image(launch, node);
  const std::size_t layers = uz(dst[0] * row_blocks);
  if (cpu) {
    launch.range({1, 1, layers}, {1, 1, 1});
  } else {
    launch.range({uz(vectors), uz(blocks), layers}, {uz(group.vectors), uz(group.blocks), 1});
  }
  return candidate;
}

/// For integers on CPUs: a work-item moves along rows, `columns` x `rows` pixels at a time.
kernel::Candidate along_rows(const NodeContext& node, const DeviceInfo& device, int columns,
                             int rows) {
  constexpr std::int64_t kItemsOfUnit = 4;  // several, to even out their different times
  const ir::Shape& dst = node.output(0).shape;
  const int width = vector_width(node, 16);
  // Enough pixels to make loading the filters and scales of their channels worthwhile.
  const std::int64_t block_rows = std::max<std::int64_t>(ceil_div(64, dst[2]) / rows, 1) * rows;
  const std::int64_t row_blocks = ceil_div(dst[1], block_rows), layers = dst[0] * row_blocks;
  const std::string name = "rows_" + std::to_string(columns) + "x" + std::to_string(rows);
  kernel::Candidate candidate =
      make_candidate(node, name, "depthwise_conv2d/rows.cl", "depthwise_conv2d_rows", width > 1);
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", columns).macro("PY", rows);
  set_filter(launch, node);
  launch.i32(row_blocks).i32(block_rows);
  push_image(launch, node);
  const std::int64_t parts = ceil_div(kItemsOfUnit * device.compute_units, layers);
  launch.range({uz(std::min<std::int64_t>(parts, dst[3] / width)), uz(layers)}, {1, 1});
  return candidate;
}

}  // namespace

std::vector<kernel::Candidate> blocks(const NodeContext& node, const DeviceInfo& device) {
  if (!fits_registers(node)) return {};
  std::vector<kernel::Candidate> result;
  if (device.is_cpu()) {
    const bool strided = node.attrs<ConvAttrs>().geometry.stride_w > 1;
    result.push_back(blocked(node, device, 4, 2, 16));
    result.push_back(blocked(node, device, 2, 2, 16));
    result.push_back(blocked(node, device, 4, 1, 16));
    if (strided) std::swap(result[0], result[1]);
    if (quantized(node)) {
      // Shorter rows have too few pixels for the filters of so many channels.
      constexpr int kLong = 28;
      const auto at = node.output(0).shape[2] >= kLong ? result.begin() : result.end();
      result.insert(at, along_rows(node, device, strided ? 2 : 4, 2));
    }
  } else {
    result.push_back(blocked(node, device, 1, 1, 4));
    result.push_back(blocked(node, device, 2, 2, 4));
    result.push_back(blocked(node, device, 4, 2, 4));
    const std::int64_t items = node.output(0).shape.elements() / vector_width(node, 4);
    if (items > kManyItemsOfUnit * device.compute_units) std::swap(result[0], result[1]);
  }
  return result;
}

}  // namespace clgpu::ops::depthwise_conv2d
