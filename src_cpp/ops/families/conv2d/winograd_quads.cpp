// Winograd's transforms F(4x4, 3x3) and F(2x2, 3x3) for mobile GPUs: the four launches of
// winograd.cpp without private arrays or local memory.
#include <algorithm>

#include "ops/families/conv2d/convolution.hpp"
#include "ops/products/half_sums.hpp"
#include "ops/shared/mobile.hpp"

namespace clgpu::ops::conv2d {
namespace {

constexpr std::int64_t kFloat = sizeof(float);  // of an element of m

/// F(tile x tile, 3x3).
struct Transform {
  const char* name;
  int alpha, tile;
};
constexpr Transform kF4{"winograd_f4x4_3x3_quads", 6, 4}, kF2{"winograd_f2x2_3x3_quads", 4, 2};

bool possible(const Convolution& conv) {
  const ConvGeometry& g = conv.geometry;
  return conv.filter_h == 3 && conv.filter_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
         g.dilation_h == 1 && g.dilation_w == 1 && conv.groups == 1 && conv.in_c % 4 == 0 &&
         conv.out_c % 4 == 0;
}

std::int64_t tiles(const Convolution& conv, int tile) {
  return conv.batch * ceil_div(conv.out_h, tile) * ceil_div(conv.out_w, tile);
}

class WinogradQuads {
 public:
  /// `images`: operands that can be images are read as images. `factors`: type of u and v; half
  /// means half sums.
  WinogradQuads(const Convolution& conv, const Transform& transform, bool images, DType factors)
      : conv_(conv), transform_(transform), images_(images), factors_(factors) {
    planes_ = std::int64_t{transform.alpha} * transform.alpha;
    tiles_h_ = ceil_div(conv.out_h, transform.tile);
    tiles_w_ = ceil_div(conv.out_w, transform.tile);
    tile_rows_ = conv.batch * tiles_h_;
    panel_ = std::min<std::int64_t>(16, round_up(conv.out_c, 8));
    panels_ = ceil_div(conv.out_c, panel_);
    // Rows of tiles for which v and m fit objects of the device and do not take most of its memory.
    const std::int64_t row_bytes = planes_ * tiles_w_ * std::max(conv.in_c, conv.out_c) * kFloat;
    const std::uint64_t most = std::min(
        {conv.device.max_object_bytes, conv.device.global_bytes / 16, std::uint64_t{INT32_MAX}});
    rows_ = std::min(tile_rows_, static_cast<std::int64_t>(most) / row_bytes);
    u_image_ =
        images && reads_as_image(planes_ * panels_ * panel_ * conv.in_c, factors_, conv.device);
    v_image_ = images && reads_as_image(scratch_elements(conv.in_c), factors_, conv.device);
    m_image_ = images && reads_as_image(scratch_elements(conv.out_c), DType::kF32, conv.device);
  }

  /// None if a single row of tiles is too large.
  std::optional<kernel::Candidate> candidate() const {
    if (rows_ == 0) return {};
    const bool half = factors_ == DType::kF16;
    const std::string name =
        std::string(transform_.name) + (images_ ? "_image" : "") + (half ? "_half" : "");
    kernel::Candidate result{name, {filters()}, {}};
    result.adds_halves = half;
    const auto size = static_cast<std::int64_t>(size_of(factors_));
    result.scratch = {{planes_ * panels_ * panel_ * conv_.in_c * size},
                      {scratch_elements(conv_.in_c) * size},
                      {scratch_elements(conv_.out_c) * kFloat}};
    for (std::int64_t row = 0; row < tile_rows_; row += rows_) {
      const std::int64_t rows = std::min(rows_, tile_rows_ - row);
      result.launches.push_back(image(row, rows * tiles_w_));
      result.launches.push_back(product(rows * tiles_w_));
      result.launches.push_back(output(row, rows * tiles_w_));
    }
    return result;
  }

 private:
  std::int64_t scratch_elements(int channels) const {
    return rows_ * tiles_w_ * planes_ * channels;
  }

  kernel::Launch make(const char* file, const char* entry) const {
    kernel::Launch launch(file, entry);
    launch.macro("ALPHA", transform_.alpha).macro("TILE", transform_.tile);
    return launch;
  }

  kernel::Launch filters() const {
    kernel::Launch launch = make("conv2d/winograd_filter.cl", "conv2d_winograd_filter");
    launch.macro("PANEL", panel_).macro("PAD", 4);
    launch.type("SRC_T", conv_.node.input(kWeights).storage).type("DST_T", factors_);
    const std::int64_t elements = panels_ * conv_.in_c * panel_;
    launch.src(kWeights).scratch_out(0).i32(elements).i32(conv_.in_c).i32(conv_.in_c);
    launch.i32(conv_.out_c).i32(conv_.filter_h).i32(conv_.filter_w);
    launch.range({uz(elements)}, {kElementwiseGroup});
    return launch;
  }

  kernel::Launch image(std::int64_t row, std::int64_t tiles) const {
    kernel::Launch launch = make("conv2d/winograd_input_quads.cl", "conv2d_winograd_input_quads");
    const ir::Tensor& src = conv_.node.input(kImage);
    const bool as_image = images_ && reads_as_image(src, conv_.device);
    launch.type("SRC_T", src.storage).type("DST_T", factors_);
    launch.macro("SRC_KIND", kind_of(as_image));
    set_border(launch, conv_.geometry);
    as_image ? launch.src_image(kImage, src.storage) : launch.src(kImage);
    launch.scratch_out(1).i32(conv_.in_h).i32(conv_.in_w).i32(conv_.in_c / 4);
    launch.i32(tiles_h_).i32(tiles_w_).i32(conv_.at.h.before).i32(conv_.at.w.before);
    launch.i32(row).i32(tiles);
    set_mobile_range(launch, conv_.in_c / 4, tiles, transform_.alpha, conv_.device);
    return launch;
  }

  kernel::Launch product(std::int64_t tiles) const {
    const std::int64_t quads = conv_.out_c / 4;
    const bool two =
        ceil_div(quads, 2) * ceil_div(tiles, 4) * planes_ >= items_to_fill(conv_.device);
    kernel::Launch launch("conv2d/winograd_product_quads.cl", "conv2d_winograd_product_quads");
    launch.type("V_T", factors_).type("U_T", factors_).type("M_T", DType::kF32);
    if (factors_ == DType::kF16) launch.macro("BLOCK", kHalfBlock);
    launch.macro("OV", two ? 2 : 1).macro("PANEL", panel_);
    launch.macro("V_KIND", kind_of(v_image_)).macro("U_KIND", kind_of(u_image_));
    push_scratch(launch, 1, v_image_, factors_);
    push_scratch(launch, 0, u_image_, factors_);
    launch.scratch_out(2).i32(tiles).i32(planes_).i32(conv_.in_c / 4).i32(quads).i32(panels_);
    set_mobile_range(launch, ceil_div(quads, two ? 2 : 1), ceil_div(tiles, 4), planes_,
                     conv_.device);
    return launch;
  }

  kernel::Launch output(std::int64_t row, std::int64_t tiles) const {
    kernel::Launch launch = make("conv2d/winograd_output_quads.cl", "conv2d_winograd_output_quads");
    launch.type("SRC_T", DType::kF32).macro("SRC_KIND", kind_of(m_image_));
    launch.macro("ALIGNED", result_layout(conv_.node).aligned(4) ? 1 : 0);
    set_result_types(launch, conv_.node, kBias);
    push_scratch(launch, 2, m_image_, DType::kF32);
    conv_.push_result(launch).i32(conv_.out_c / 4).i32(tiles_h_).i32(tiles_w_).i32(row);
    launch.i32(tiles).i32(conv_.out_h).i32(conv_.out_w).i32(conv_.out_c);
    set_mobile_range(launch, conv_.out_c / 4, tiles, transform_.tile, conv_.device);
    return launch;
  }

  static void push_scratch(kernel::Launch& launch, int index, bool image, DType type) {
    image ? launch.scratch_image(index, type) : launch.scratch_in(index);
  }

  const Convolution& conv_;
  const Transform transform_;
  const bool images_;
  const DType factors_;
  std::int64_t planes_, tiles_h_, tiles_w_, tile_rows_;
  std::int64_t panel_, panels_;
  std::int64_t rows_;  ///< of tiles at a time
  bool u_image_, v_image_, m_image_;
};

}  // namespace

std::vector<kernel::Candidate> winograd_quads(const Convolution& conv) {
  if (!possible(conv)) return {};
  // If half of a tile is outside of the image, that half is wasted work.
  constexpr int kSmall = 5;
  const bool small = std::min(conv.out_h, conv.out_w) < kSmall;
  std::vector<kernel::Candidate> result;
  const auto add = [&](const Transform& transform, DType factors) {
    for (const bool images : {true, false}) {
      if (images && !conv.device.prefers_images()) continue;
      if (auto found = WinogradQuads(conv, transform, images, factors).candidate()) {
        result.push_back(*found);
      }
    }
  };
  // The transforms of F(4x4, 3x3) multiply roundings to half by about ten, those of F(2x2, 3x3) by
  // two; at twice the rate it saves as many products.
  if (takes_half_sums(conv.node, conv.device)) add(kF2, DType::kF16);
  for (const Transform& transform : {small ? kF2 : kF4, small ? kF4 : kF2}) {
    add(transform, DType::kF32);
    if (!conv.device.is_mobile()) break;
  }
  return result;
}

bool winograd_quads_pays(const Convolution& conv) {
  // Each pass over the tiles is limited by memory bandwidth: only many saved products justify three
  // passes. Texture caches make direct convolution faster.
  if (!possible(conv)) return false;
  const bool adreno = conv.device.is(GpuFamily::kAdreno);
  const int channels = adreno ? 128 : 64;
  return std::min(conv.in_c, conv.out_c) >= channels &&
         tiles(conv, kF4.tile) >= (adreno ? 128 : 32);
}

}  // namespace clgpu::ops::conv2d
