// Room of DEPTHWISE_CONV_2D: each input channel has its own filters.
#include <algorithm>
#include <utility>

#include "ops/conv_rows.hpp"

namespace clgpu::ops {
namespace {

constexpr int kDepthwiseConv2d = 4;
constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

// The depth multiplier is what the shapes say; runtimes do not rely on the parameter either.
ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  if (weights[0] != 1 || weights[3] % src[3] != 0) {
    throw ShapeError("weights " + weights.str() + " do not fit an image of " +
                     std::to_string(src[3]) + " channels");
  }
  check_bias_shape(node, kBias, weights[3]);
  const ConvWindows at =
      checked_windows(node.attrs<ConvAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
  const ir::Shape dst{src[0], at.h.out, at.w.out, weights[3]};
  check_residual_shape(node, dst);
  return {dst};
}

bool quantized(const NodeContext& node) { return node.output(0).is_quantized() || is_hybrid(node); }

/// A candidate of one launch, after what quantised nodes do at load time. `vectors`: the kernel has
/// the macro QUICK, and results come as vectors.
kernel::Candidate make_candidate(const NodeContext& node, const std::string& name, const char* file,
                                 const char* entry, std::optional<bool> vectors = {}) {
  kernel::Candidate candidate{name, {}, {}};
  bool quick = false;
  kernel::Launch launch(file, entry);
  set_conv_types(launch, node, kImage, kBias);
  set_weights_type(launch, "WEIGHTS_T", node, node.input(kWeights).storage);
  set_border(launch, node.attrs<ConvAttrs>().geometry);
  launch.src(kImage).src(kWeights);
  if (quantized(node)) {
    const ir::Shape& weights = node.input(kWeights).shape;
    const std::int64_t channels = weights[3];
    const ChannelTable table =
        channel_table(node, {kImage, kWeights, kBias, 3},
                      {channels, weights.elements(1, 3), /*step_o=*/1, /*step_k=*/channels}, 0);
    candidate.launches.push_back(table.launch);
    candidate.scratch = {table.scales, table.result};
    push_channels(launch, node, table);
    push_result(launch, result_layout(node));
    quick = table.quick;
  } else {
    push_result(launch, node, kBias);
  }
  if (vectors) launch.macro("QUICK", quick && *vectors ? 1 : 0);
  candidate.launches.push_back(launch);
  return candidate;
}

/// Number that stands for zero among the weights.
std::int32_t weights_zero(const NodeContext& node) {
  return quantized(node) ? node.input(kWeights).zero_point() : 0;
}

/// Appends what an element outside of the image is, and what stands for zero among the weights.
void push_zeros(kernel::Launch& launch, const NodeContext& node) {
  launch.i32(quantized(node) ? node.input(kImage).zero_point() : 0);
  launch.i32(weights_zero(node));
}

void push_geometry(kernel::Launch& launch, const NodeContext& node) {
  const auto& geometry = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const ConvWindows at = windows(geometry, src[1], src[2], weights[1], weights[2]);
  push_conv_sizes(launch, node, kImage, kWeights, geometry);
  launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
  push_zeros(launch, node);
}

kernel::Candidate naive(const NodeContext& node) {
  kernel::Candidate candidate =
      make_candidate(node, "naive", "depthwise_conv2d/naive.cl", "depthwise_conv2d_naive");
  kernel::Launch& launch = candidate.launches.back();
  const std::int64_t elements = node.output(0).shape.elements();
  launch.i32(elements);
  push_geometry(launch, node);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return candidate;
}

int multiplier(const NodeContext& node) {
  return node.output(0).shape[3] / node.input(kImage).shape[3];
}

// Channels of a work-item: at most `most`, without a rest.
int vector_width(const NodeContext& node, int most) {
  const int channels = node.output(0).shape[3];
  int width = most;
  while (channels % width != 0) width = width > 4 ? width / 2 : 1;
  return width;
}

kernel::Candidate direct(const NodeContext& node, const DeviceInfo& device) {
  constexpr int kTile = 4;  // pixels of a work-item
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  int width = vector_width(node, cpu ? 16 : 4);
  // Longer vectors are read as one or spread from one element, not gathered.
  while (width > 4 && multiplier(node) > 1 && multiplier(node) % width != 0) width /= 2;
  const std::int64_t group = cpu ? 1 : 8;

  kernel::Candidate candidate =
      make_candidate(node, "direct", "depthwise_conv2d/direct.cl", "depthwise_conv2d_direct");
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", kTile).macro("WG_C", group).macro("WG_X", group);
  launch.macro("WEIGHTS_SHIFTED", weights_zero(node) == 0 ? 0 : 1);
  launch.macro("MULTIPLIER", multiplier(node));
  push_geometry(launch, node);
  const std::size_t rows = uz(dst.elements(0, 2));
  if (cpu) {
    launch.range({1, 1, rows}, {1, 1, 1});  // a whole row pays for starting a work-item
  } else {
    launch.range({uz(dst[3] / width), uz(ceil_div(dst[2], kTile)), rows},
                 {uz(group), uz(group), 1});
  }
  return candidate;
}

// Whether a block of pixels keeps its filter and a row of the image in registers.
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

/// Arguments of engines that know the filter, after those of their blocks.
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

// `columns` x `rows` pixels of up to `most` channels a work-item.
kernel::Candidate blocked(const NodeContext& node, const DeviceInfo& device, int columns, int rows,
                          int most) {
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  const int width = vector_width(node, most);
  std::int64_t group_c = 1;
  while (!cpu && group_c < 32 && group_c * width < dst[3]) group_c *= 2;
  const std::int64_t group_x = cpu ? 1 : 128 / group_c;
  const std::int64_t row_blocks = ceil_div(dst[1], rows);

  const std::string name = "direct_" + std::to_string(columns) + "x" + std::to_string(rows);
  kernel::Candidate candidate =
      make_candidate(node, name, "depthwise_conv2d/blocked.cl", "depthwise_conv2d_blocked");
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", columns).macro("PY", rows);
  launch.macro("ALIGNED", result_layout(node).aligned(width) ? 1 : 0);
  // A core jumps over conditions; the items of a warp wait for each other.
  launch.macro("INTERIOR", cpu ? 1 : 0).macro("WG_C", group_c).macro("WG_X", group_x);
  set_filter(launch, node);
  launch.i32(row_blocks);
  push_image(launch, node);
  const std::size_t layers = uz(dst[0] * row_blocks);
  if (cpu) {
    launch.range({1, 1, layers}, {1, 1, 1});
  } else {
    launch.range({uz(dst[3] / width), uz(ceil_div(dst[2], columns)), layers},
                 {uz(group_c), uz(group_x), 1});
  }
  return candidate;
}

/// For integers on CPUs: a work-item goes along rows, `columns` x `rows` pixels at a time.
kernel::Candidate along_rows(const NodeContext& node, const DeviceInfo& device, int columns,
                             int rows) {
  constexpr std::int64_t kItemsOfUnit = 4;  // even out what the others take
  const ir::Shape& dst = node.output(0).shape;
  const int width = vector_width(node, 16);
  // Enough pixels that it pays to load their channels' filters and scales.
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

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  std::vector<kernel::Candidate> result;
  // Sums of 64 bits come one by one.
  if (node.output(0).dtype == DType::kI16 || is_hybrid(node)) return {naive(node)};
  if (fits_registers(node)) {
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
    }
  }
  result.push_back(direct(node, device));
  result.push_back(naive(node));
  return result;
}

double flops(const NodeContext& node) {
  const ir::Shape& weights = node.input(kWeights).shape;
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * weights.elements(1, 3));
}

}  // namespace

extern const Family kDepthwiseConv2dFamily;
const Family kDepthwiseConv2dFamily{
    {"depthwise_conv2d", /*has_epilogue=*/true, /*is_view=*/false, /*residual=*/3,
     /*writes_slices=*/true},
    {{kDepthwiseConv2d, "DEPTHWISE_CONV_2D"}},
    {},
    /*core=*/true,
    import_convolution<tfl::DepthwiseConvParams, /*channel_axis=*/3>,
    infer,
    candidates,
    /*fold=*/nullptr,
    /*allows_quantized=*/true,
    &kConvRows,
    flops};

}  // namespace clgpu::ops
