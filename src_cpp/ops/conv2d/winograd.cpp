// Engine `winograd`: fewer products for more sums. Four launches: filters (once, at load), image,
// product of matrices, result; see kernels/conv2d/winograd_tile.cl.
#include <algorithm>

#include "ops/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// F(tile x tile, taps x taps).
struct Transform {
  const char* name;
  int alpha, tile;
  bool in_blocks;  ///< for filters of several blocks of taps x taps, else of one
  int taps() const { return alpha - tile + 1; }
};

constexpr Transform kF4x4{"winograd_f4x4_3x3", 6, 4, false};
constexpr Transform kF2x2{"winograd_f2x2_3x3", 4, 2, false};
constexpr Transform kF2x2Of5{"winograd_f2x2_5x5", 6, 2, false};
constexpr Transform kBlocks{"winograd_f4x4_blocks", 6, 4, true};
constexpr Transform kTransforms[] = {kF4x4, kF2x2, kF2x2Of5, kBlocks};

/// How the product of the third launch is tiled: winograd_gemm.cl, or for CPUs winograd_panels.cl.
struct ProductTile {
  int rows, cols;  ///< of a work-group
  int item_rows, item_cols;
  int panel() const { return cols; }
};

/// How much of the image the launches work on at a time.
struct Slice {
  std::int64_t tile_rows;  ///< rows of tiles, over all images
  int channels;            ///< input channels, a multiple of 16 unless all
};

constexpr int kDepthStep = 16;  // u is padded to multiples of it
constexpr std::int64_t kFloat = sizeof(float);

class Winograd {
 public:
  Winograd(const Convolution& conv, const Transform& transform)
      : conv_(conv), transform_(transform), cpu_(conv.device.is_cpu()) {
    const int taps = transform.taps();
    blocks_w_ = static_cast<int>(ceil_div(conv.filter_w, taps));
    blocks_ = static_cast<int>(ceil_div(conv.filter_h, taps)) * blocks_w_;
    in_vector_ = cpu_ ? cpu_vector(conv.in_c) : 4;
    out_vector_ = cpu_ ? cpu_vector(conv.out_c) : 4;
    channels_ = static_cast<int>(round_up(conv.in_c, in_vector_));
    cols_ = static_cast<int>(round_up(conv.out_c, out_vector_));
    tiles_h_ = ceil_div(conv.out_h, transform.tile);
    tiles_w_ = ceil_div(conv.out_w, transform.tile);
    tile_rows_ = conv.batch * tiles_h_;
  }

  int channels() const { return channels_; }
  std::int64_t tile_rows() const { return tile_rows_; }
  std::int64_t tiles() const { return tile_rows_ * tiles_w_; }

  /// Bytes of v and m together for a row of tiles.
  std::int64_t row_bytes() const { return (v_row_bytes(channels_) + m_row_bytes()); }

  /// The most rows of tiles whose scratch buffers are objects of the device, can be counted in 32
  /// bits, and take at most `budget` bytes together; 0 if there are none.
  std::int64_t rows_within(std::int64_t budget) const {
    const std::int64_t largest = std::max(v_row_bytes(channels_), m_row_bytes());
    const auto object = static_cast<std::int64_t>(
        std::min<std::uint64_t>(conv_.device.max_object_bytes, std::uint64_t{INT32_MAX} * kFloat));
    return std::min({tile_rows_, object / largest, budget / row_bytes()});
  }

  kernel::Candidate candidate(const std::string& name, const ProductTile& tile,
                              const Slice& slice) const {
    const std::int64_t depth = round_up(std::int64_t{blocks_} * channels_, kDepthStep);
    const std::int64_t panels = ceil_div(conv_.out_c, tile.panel());
    kernel::Candidate result{name, {}, {}};
    result.scratch = {{planes() * panels * depth * tile.panel() * kFloat},
                      {v_row_bytes(slice.channels) * slice.tile_rows},
                      {m_row_bytes() * slice.tile_rows}};
    result.launches.push_back(filters(tile.panel(), panels, depth));
    for (std::int64_t row = 0; row < tile_rows_; row += slice.tile_rows) {
      const std::int64_t rows = std::min(slice.tile_rows, tile_rows_ - row);
      for (int c = 0; c < channels_; c += slice.channels) {
        const int channels = std::min(slice.channels, channels_ - c);
        result.launches.push_back(image(row, rows, c, channels));
        result.launches.push_back(product(tile, rows, c, channels, panels, depth));
      }
      result.launches.push_back(output(row, rows));
    }
    return result;
  }

 private:
  std::int64_t planes() const { return std::int64_t{transform_.alpha} * transform_.alpha; }
  std::int64_t v_row_bytes(int channels) const {
    return planes() * tiles_w_ * blocks_ * channels * kFloat;
  }
  std::int64_t m_row_bytes() const { return planes() * tiles_w_ * cols_ * kFloat; }

  kernel::Launch make(const char* file, const char* entry) const {
    kernel::Launch launch(file, entry);
    launch.macro("ALPHA", transform_.alpha).macro("TILE", transform_.tile);
    return launch;
  }

  kernel::Launch filters(int panel, std::int64_t panels, std::int64_t depth) const {
    kernel::Launch launch = make("conv2d/winograd_filter.cl", "conv2d_winograd_filter");
    launch.macro("PANEL", panel).macro("PAD", in_vector_);
    launch.type("SRC_T", conv_.node.input(kWeights).storage).type("DST_T", DType::kF32);
    const std::int64_t elements = panels * depth * panel;
    launch.src(kWeights).scratch_out(0).i32(elements).i32(depth).i32(conv_.in_c).i32(conv_.out_c);
    launch.i32(conv_.filter_h).i32(conv_.filter_w);
    launch.range({uz(elements)}, {kElementwiseGroup});
    return launch;
  }

  kernel::Launch image(std::int64_t row, std::int64_t rows, int channel, int channels) const {
    kernel::Launch launch =
        cpu_ ? make("conv2d/winograd_input_wide.cl", "conv2d_winograd_input_wide")
             : make("conv2d/winograd_input.cl", "conv2d_winograd_input");
    launch.type("SRC_T", conv_.image_storage()).type("DST_T", DType::kF32);
    launch.src(kImage).scratch_out(1);
    const std::int64_t vectors = channels / in_vector_;
    if (cpu_) {
      const std::int64_t items = rows * tiles_w_ * vectors;
      launch.macro("VW", in_vector_).i32(items);
      launch.range({uz(items), uz(blocks_)}, {kCpuGroup, 1});
    } else {
      const std::int64_t across = 8, strip = std::min<std::int64_t>(8, vectors);
      launch.macro("TX", across).macro("CV", strip).macro("VEC_C", conv_.in_c % 4 == 0 ? 1 : 0);
      launch.range({uz(ceil_div(vectors, strip) * strip * across),
                    uz(ceil_div(tiles_w_, across)), uz(rows * blocks_)},
                   {uz(strip * across)});
    }
    launch.i32(conv_.in_h).i32(conv_.in_w).i32(conv_.in_c).i32(tiles_h_).i32(tiles_w_);
    launch.i32(conv_.at.h.before).i32(conv_.at.w.before).i32(row).i32(rows);
    launch.i32(std::int64_t{blocks_} * channels).i32(blocks_w_).i32(channel).i32(channels);
    return launch;
  }

  kernel::Launch product(const ProductTile& tile, std::int64_t tile_rows, int channel, int channels,
                         std::int64_t panels, std::int64_t u_depth) const {
    kernel::Launch launch = cpu_ ? kernel::Launch("conv2d/winograd_panels.cl", "conv2d_winograd_panels")
                                 : kernel::Launch("conv2d/winograd_gemm.cl", "conv2d_winograd_gemm");
    launch.type("V_T", DType::kF32).type("U_T", DType::kF32).type("M_T", DType::kF32);
    launch.macro("ADD", channel > 0 ? 1 : 0).scratch_in(1).scratch_in(0);
    using kernel::Operand;
    launch.arg(Operand{Operand::Kind::kScratch, 2, true, /*reads=*/channel > 0});
    const std::int64_t rows = tile_rows * tiles_w_;
    launch.i32(rows).i32(std::int64_t{blocks_} * channels).i32(channel).i32(u_depth).i32(cols_);
    if (cpu_) {
      launch.macro("VW", out_vector_).macro("OV", tile.cols / out_vector_).macro("PX", tile.rows);
      const std::int64_t tiles = cpu_tiles(tile, rows, panels);
      launch.i32(tiles);
      launch.range({uz(panels), uz(ceil_div(rows, tiles * tile.rows)), uz(planes())}, {1});
    } else {
      const std::int64_t items = std::int64_t{tile.rows} * tile.cols / tile.item_rows / tile.item_cols;
      launch.macro("TM", tile.rows).macro("TN", tile.cols).macro("TK", 16);
      launch.macro("RM", tile.item_rows).macro("RN", tile.item_cols);
      launch.range({uz(panels * items), uz(ceil_div(rows, tile.rows)), uz(planes())}, {uz(items)});
    }
    return launch;
  }

  kernel::Launch output(std::int64_t row, std::int64_t rows) const {
    kernel::Launch launch = make("conv2d/winograd_output.cl", "conv2d_winograd_output");
    launch.type("SRC_T", DType::kF32).macro("VW", out_vector_);
    launch.macro("VEC_O", conv_.out_c % out_vector_ == 0 ? 1 : 0);
    set_result_types(launch, conv_.node, kBias);
    conv_.push_result(launch.scratch_in(2));
    const std::int64_t items = rows * tiles_w_ * (cols_ / out_vector_);
    launch.i32(items).i32(tiles_h_).i32(tiles_w_).i32(row).i32(rows * tiles_w_ * cols_).i32(cols_);
    launch.i32(conv_.out_h).i32(conv_.out_w).i32(conv_.out_c);
    launch.range({uz(items)}, {cpu_ ? kCpuGroup : 128});
    return launch;
  }

  /// Tiles of a CPU work-item: enough work to pay for starting it, enough items for the cores.
  std::int64_t cpu_tiles(const ProductTile& tile, std::int64_t rows, std::int64_t panels) const {
    constexpr std::int64_t kWork = 1 << 20;  // multiply-adds
    const std::int64_t depth = std::int64_t{blocks_} * channels_;
    const std::int64_t by_work = kWork / (std::int64_t{tile.rows} * tile.cols * depth);
    const std::int64_t all = ceil_div(rows, tile.rows) * panels * planes();
    return std::max<std::int64_t>(1, std::min(by_work, all / (4 * conv_.device.compute_units)));
  }

  static constexpr std::size_t kCpuGroup = 4;

  const Convolution& conv_;
  const Transform& transform_;
  const bool cpu_;
  int blocks_, blocks_w_;
  int in_vector_, out_vector_;  ///< channels of a vector
  int channels_, cols_;         ///< input and output channels, padded to vectors
  std::int64_t tiles_h_, tiles_w_, tile_rows_;
};

std::string by(int h, int w) { return std::to_string(h) + "x" + std::to_string(w); }

/// Why the transform cannot compute the node; empty if it can.
std::string refusal(const Convolution& conv, const Transform& transform) {
  const ConvGeometry& g = conv.geometry;
  if (g.stride_h != 1 || g.stride_w != 1) {
    return "the stride is " + by(g.stride_h, g.stride_w) + "; supported: 1x1";
  }
  if (g.dilation_h != 1 || g.dilation_w != 1) {
    return "the dilation is " + by(g.dilation_h, g.dilation_w) + "; supported: 1x1";
  }
  if (conv.groups != 1) return "there are " + std::to_string(conv.groups) + " groups; supported: 1";
  const int taps = transform.taps(), least = std::min(conv.filter_h, conv.filter_w);
  const bool fits = transform.in_blocks
                        ? least > taps
                        : conv.filter_h == taps && conv.filter_w == taps;
  if (fits) return {};
  return "the filter is " + by(conv.filter_h, conv.filter_w) + "; supported: " +
         (transform.in_blocks ? "larger than " : "") + by(taps, taps);
}

ProductTile product_tile(const Convolution& conv, const Winograd& winograd, int planes) {
  if (conv.device.is_cpu()) {
    const int width = cpu_vector(conv.out_c);
    return {6, conv.out_c > width ? 2 * width : width, 0, 0};
  }
  const int cols = conv.out_c <= 32 ? 32 : conv.out_c % 128 == 0 || conv.out_c > 192 ? 128 : 64;
  // The largest tile that keeps the device busy.
  for (const int rows : {128, 64}) {
    const std::int64_t groups =
        ceil_div(winograd.tiles(), rows) * ceil_div(conv.out_c, cols) * planes;
    if (groups >= 2 * conv.device.compute_units) return {rows, std::min(rows, cols), 8, 8};
  }
  return {32, 32, 4, 4};
}

}  // namespace

std::vector<kernel::Candidate> winograd(const Convolution& conv) {
  std::vector<kernel::Candidate> result;
  for (const Transform& transform : kTransforms) {
    const std::string why = refusal(conv, transform);
    if (!why.empty()) {
      result.push_back({transform.name, {}, {}, why});
      continue;
    }
    const Winograd winograd(conv, transform);
    // v and m of a slice take a quarter of the device's memory at most.
    const auto budget = static_cast<std::int64_t>(conv.device.global_bytes / 4);
    const std::int64_t rows = winograd.rows_within(budget);
    if (rows == 0) {
      result.push_back({transform.name, {}, {}, "a row of tiles takes " +
                        std::to_string(winograd.row_bytes()) + " bytes, more than the device has"});
      continue;
    }
    const ProductTile tile = product_tile(conv, winograd, transform.alpha * transform.alpha);
    const int channels = winograd.channels();
    result.push_back(winograd.candidate(transform.name, tile, {rows, channels}));
  }
  return result;
}

}  // namespace clgpu::ops::conv2d
