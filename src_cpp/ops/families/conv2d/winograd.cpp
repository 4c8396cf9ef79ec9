// Engine `winograd`: fewer products, more sums. Four launches: filters (once, at load), image,
// product of matrices, result; see kernels/conv2d/winograd_tile.cl.
#include <algorithm>

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// F(tile x tile, taps x taps).
struct Transform {
  const char* name;
  int alpha, tile;
  bool in_blocks;  ///< for filters of several blocks of taps x taps, otherwise of one
  int taps() const { return alpha - tile + 1; }
};

constexpr Transform kTransforms[] = {
    {"winograd_f4x4_3x3", 6, 4, false},       {"winograd_f2x2_3x3", 4, 2, false},
    {"winograd_f2x2_5x5", 6, 2, false},       {"winograd_f3x3_5x5", 7, 3, false},
    {"winograd_f4x4_3x3_blocks", 6, 4, true}, {"winograd_f4x4_4x4_blocks", 7, 4, true},
    {"winograd_f3x3_5x5_blocks", 7, 3, true},
};

/// The tiling of the third launch's product: winograd_gemm.cl, or for CPUs winograd_panels.cl.
struct ProductTile {
  int rows, cols;  ///< of a work-group
  int item_rows, item_cols;
  int panel() const { return cols; }
  /// Of the sum in winograd_gemm.cl, which a step reads into local memory.
  int depth() const { return cols > 64 ? 8 : 16; }
  std::size_t local_bytes() const {
    constexpr int kStages = 2, kPadding = 4;
    return uz(kStages * depth() * (rows + kPadding + cols)) * sizeof(float);
  }
};

/// The part of the image on which the launches work at a time.
struct Slice {
  std::int64_t tile_rows;  ///< rows of tiles, over all images
  int channels;            ///< input channels, a multiple of 16 unless it is all of them
};

constexpr int kDepthStep = 16;  // u is padded to multiples of it
constexpr std::int64_t kFloat = sizeof(float);

class Winograd {
 public:
  /// `tiled`: tiles in local memory; otherwise in registers, which suits CPUs.
  Winograd(const Convolution& conv, const Transform& transform, bool tiled)
      : conv_(conv), transform_(transform), tiled_(tiled) {
    // NVIDIA's caches serve the overlap of tiles faster than its local memory.
    staged_ = tiled && !conv.device.is(GpuFamily::kNvidia);
    const int taps = transform.taps();
    blocks_w_ = static_cast<int>(ceil_div(conv.filter_w, taps));
    blocks_ = static_cast<int>(ceil_div(conv.filter_h, taps)) * blocks_w_;
    in_vector_ = tiled ? 4 : cpu_vector(conv.in_c);
    out_vector_ = tiled ? 4 : cpu_vector(conv.out_c);
    channels_ = static_cast<int>(round_up(conv.in_c, in_vector_));
    cols_ = static_cast<int>(round_up(conv.out_c, out_vector_));
    tiles_h_ = ceil_div(conv.out_h, transform.tile);
    tiles_w_ = ceil_div(conv.out_w, transform.tile);
    tile_rows_ = conv.batch * tiles_h_;
  }

  int channels() const { return channels_; }
  std::int64_t tile_rows() const { return tile_rows_; }
  std::int64_t tiles() const { return tile_rows_ * tiles_w_; }

  std::int64_t planes() const { return std::int64_t{transform_.alpha} * transform_.alpha; }
  std::int64_t depth() const { return std::int64_t{blocks_} * channels_; }

  /// Bytes of v and m together for a row of tiles.
  std::int64_t row_bytes() const { return v_row_bytes(channels_) + m_row_bytes(); }

  /// The maximum number of rows of tiles for which v and m each fit an object of the device and can
  /// be counted in 32 bits, and together are within the budget; 0 if there is none. On a CPU, a
  /// budget that fits the caches costs nothing; on an H200, a slice that fits its L2 cache takes up
  /// to three times as long as one launch for all, two slices of a GiB a few per cent more.
  std::int64_t rows_within_limits() const {
    constexpr std::int64_t kCpuBudget = std::int64_t{16} << 20, kGpuBudget = std::int64_t{2} << 30;
    const DeviceInfo& device = conv_.device;
    const std::int64_t largest = std::max(v_row_bytes(channels_), m_row_bytes());
    const auto object = static_cast<std::int64_t>(
        std::min<std::uint64_t>(device.max_object_bytes, std::uint64_t{INT32_MAX} * kFloat));
    const auto memory = static_cast<std::int64_t>(device.global_bytes / 8);
    const std::int64_t budget = std::min(memory, device.is_cpu() ? kCpuBudget : kGpuBudget);
    // A single row of tiles is possible even if it exceeds the budget.
    const std::int64_t rows = std::max<std::int64_t>(1, budget / row_bytes());
    const std::int64_t slices = ceil_div(tile_rows_, std::min(tile_rows_, rows));
    return std::min(ceil_div(tile_rows_, slices), object / largest);
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
        staged_ ? make("conv2d/winograd_input.cl", "conv2d_winograd_input")
                : make("conv2d/winograd_input_registers.cl", "conv2d_winograd_input_registers");
    launch.type("SRC_T", conv_.image_storage()).type("DST_T", DType::kF32);
    set_border(launch, conv_.geometry);
    launch.src(kImage).scratch_out(1);
    if (staged_) {
      const std::int64_t vectors = channels / 4, deep = std::min<std::int64_t>(8, vectors);
      std::int64_t across = 8;
      while (across > 1 && strip_bytes(across, deep) > conv_.device.local_bytes / 2) across /= 2;
      launch.macro("TX", across).macro("CV", deep).macro("VEC_C", conv_.in_c % 4 == 0 ? 1 : 0);
      launch.range({uz(ceil_div(vectors, deep) * deep * across), uz(ceil_div(tiles_w_, across)),
                    uz(rows * blocks_)},
                   {uz(deep * across)});
    } else {
      const int width = tiled_ ? 1 : in_vector_;
      const std::int64_t items = rows * tiles_w_ * (channels / width);
      // Channels of the padding are not channels of the image, whatever the vector width.
      launch.macro("VW", width).macro("VEC_C", channels_ == conv_.in_c ? 1 : 0).i32(items);
      launch.range({uz(items), uz(blocks_)}, {tiled_ ? kGpuGroup : kCpuGroup, 1});
    }
    launch.i32(conv_.in_h).i32(conv_.in_w).i32(conv_.in_c).i32(tiles_h_).i32(tiles_w_);
    launch.i32(conv_.at.h.before).i32(conv_.at.w.before).i32(row).i32(rows);
    launch.i32(std::int64_t{blocks_} * channels).i32(blocks_w_).i32(channel).i32(channels);
    return launch;
  }

  /// Local memory of a strip of `across` tiles x `deep` vectors of 4 channels.
  std::size_t strip_bytes(std::int64_t across, std::int64_t deep) const {
    const std::int64_t width = across * transform_.tile + transform_.taps() - 1;
    return uz(transform_.alpha * width * deep * 4 * kFloat);
  }

  kernel::Launch product(const ProductTile& tile, std::int64_t tile_rows, int channel, int channels,
                         std::int64_t panels, std::int64_t u_depth) const {
    kernel::Launch launch =
        tiled_ ? kernel::Launch("conv2d/winograd_gemm.cl", "conv2d_winograd_gemm")
               : kernel::Launch("conv2d/winograd_panels.cl", "conv2d_winograd_panels");
    launch.type("V_T", DType::kF32).type("U_T", DType::kF32).type("M_T", DType::kF32);
    launch.macro("ADD", channel > 0 ? 1 : 0).scratch_in(1).scratch_in(0);
    using kernel::Operand;
    launch.arg(Operand{Operand::Kind::kScratch, 2, true, /*reads=*/channel > 0});
    const std::int64_t rows = tile_rows * tiles_w_;
    launch.i32(rows).i32(std::int64_t{blocks_} * channels).i32(channel).i32(u_depth).i32(cols_);
    if (!tiled_) {
      launch.macro("VW", out_vector_).macro("OV", tile.cols / out_vector_).macro("PX", tile.rows);
      const std::int64_t tiles = cpu_tiles(tile, rows, panels);
      launch.i32(tiles);
      launch.range({uz(panels), uz(ceil_div(rows, tiles * tile.rows)), uz(planes())}, {1});
    } else {
      const std::int64_t items =
          std::int64_t{tile.rows} * tile.cols / tile.item_rows / tile.item_cols;
      launch.macro("TM", tile.rows).macro("TN", tile.cols).macro("TK", tile.depth());
      launch.macro("RM", tile.item_rows).macro("RN", tile.item_cols);
      launch.range({uz(panels * items), uz(ceil_div(rows, tile.rows)), uz(planes())}, {uz(items)});
    }
    return launch;
  }

  kernel::Launch output(std::int64_t row, std::int64_t rows) const {
    kernel::Launch launch = make("conv2d/winograd_output.cl", "conv2d_winograd_output");
    launch.type("SRC_T", DType::kF32).macro("VW", out_vector_);
    const bool aligned = out_vector_ > 4 || result_layout(conv_.node).aligned(4);
    launch.macro("VEC_O", conv_.out_c % out_vector_ == 0 && aligned ? 1 : 0);
    set_result_types(launch, conv_.node, kBias);
    conv_.push_result(launch.scratch_in(2));
    const std::int64_t items = rows * tiles_w_ * (cols_ / out_vector_);
    launch.i32(items).i32(tiles_h_).i32(tiles_w_).i32(row).i32(rows * tiles_w_ * cols_).i32(cols_);
    launch.i32(conv_.out_h).i32(conv_.out_w).i32(conv_.out_c);
    launch.range({uz(items)}, {tiled_ ? kGpuGroup : kCpuGroup});
    return launch;
  }

  /// Tiles of a CPU work-item: enough work to justify starting it, enough items for the cores.
  std::int64_t cpu_tiles(const ProductTile& tile, std::int64_t rows, std::int64_t panels) const {
    constexpr std::int64_t kWork = 1 << 20;  // multiply-adds
    const std::int64_t depth = std::int64_t{blocks_} * channels_;
    const std::int64_t by_work = kWork / (std::int64_t{tile.rows} * tile.cols * depth);
    const std::int64_t all = ceil_div(rows, tile.rows) * panels * planes();
    return std::max<std::int64_t>(1, std::min(by_work, all / (4 * conv_.device.compute_units)));
  }

  static constexpr std::size_t kCpuGroup = 4, kGpuGroup = 128;

  const Convolution& conv_;
  const Transform transform_;
  const bool tiled_;
  bool staged_;  ///< the image goes through local memory
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
  // Sums of fewer terms are so exact that the error of the transform would dominate.
  constexpr int kLeastChannels = 8;
  if (transform.alpha == 7 && conv.in_c < kLeastChannels) {
    return "there are " + std::to_string(conv.in_c) +
           " input channels; supported: " + std::to_string(kLeastChannels) + " or more";
  }
  // If the filter is narrower than a block along an axis, the error stays the same and the sum gets
  // smaller.
  const int taps = transform.taps();
  const auto is = [&](int n) { return conv.filter_h == n && conv.filter_w == n; };
  const bool fits = transform.in_blocks
                        ? std::min(conv.filter_h, conv.filter_w) >= taps && !is(3) && !is(5)
                        : is(taps);
  if (fits) return {};
  return "the filter is " + by(conv.filter_h, conv.filter_w) + "; supported: " + by(taps, taps) +
         (transform.in_blocks ? " and larger, except 3x3 and 5x5" : "");
}

ProductTile register_tile(const Convolution& conv) {
  const int width = cpu_vector(conv.out_c);
  return {6, conv.out_c > width ? 2 * width : width, 0, 0};
}

/// The largest tile in local memory that keeps the device busy.
ProductTile local_tile(const Convolution& conv, const Winograd& winograd) {
  const ProductTile largest = conv.out_c <= 32   ? ProductTile{128, 32, 8, 8}
                              : conv.out_c <= 64 ? ProductTile{128, 64, 8, 8}
                                                 : ProductTile{64, 128, 8, 8};
  for (const ProductTile tile : {largest, ProductTile{64, 64, 8, 8}}) {
    const std::int64_t groups =
        winograd.planes() * ceil_div(winograd.tiles(), tile.rows) * ceil_div(conv.out_c, tile.cols);
    if (groups >= 2 * conv.device.compute_units && tile.local_bytes() <= conv.device.local_bytes)
      return tile;
  }
  return {32, 32, 4, 4};
}

/// Costs in units of a multiply-add, measured on an H200 and on AVX-512 cores: of one channel of a
/// tile besides its products, of one weight, and of one more launch per compute unit.
struct Prices {
  std::int64_t transform, weight, launches;
};
constexpr Prices kGpuPrices{38, 18, 200'000}, kCpuPrices{15, 12, 800'000};

std::int64_t cost(const Convolution& conv, const Transform& transform) {
  const Winograd winograd(conv, transform, !conv.device.is_cpu());
  const Prices prices = conv.device.is_cpu() ? kCpuPrices : kGpuPrices;
  const std::int64_t depth = winograd.depth(), tiles = winograd.tiles(), out_c = conv.out_c;
  return winograd.planes() * (depth * out_c * (tiles + prices.weight) +
                              prices.transform * tiles * (depth + out_c)) +
         prices.launches * conv.device.compute_units;
}

std::int64_t direct_cost(const Convolution& conv) {
  const Prices prices = conv.device.is_cpu() ? kCpuPrices : kGpuPrices;
  // GPUs compute 4, 16 or 32 channels at the price of fewer.
  const int step = conv.device.is_cpu() ? 1 : conv.out_c <= 4 ? 4 : conv.out_c <= 16 ? 16 : 32;
  const std::int64_t out_c = round_up(conv.out_c, step);
  return conv.depth * out_c * (conv.pixels + prices.weight);
}

/// Transforms that can compute the node, cheapest first.
std::vector<Transform> possible(const Convolution& conv) {
  std::vector<Transform> result;
  for (const Transform& transform : kTransforms) {
    if (refusal(conv, transform).empty()) result.push_back(transform);
  }
  std::stable_sort(result.begin(), result.end(), [&](const Transform& a, const Transform& b) {
    return cost(conv, a) < cost(conv, b);
  });
  return result;
}

}  // namespace

std::vector<kernel::Candidate> winograd(const Convolution& conv) {
  const bool cpu = conv.device.is_cpu();
  std::vector<kernel::Candidate> result, others;
  for (const Transform& transform : possible(conv)) {
    const std::string name = transform.name;
    const Winograd best(conv, transform, !cpu), tiled(conv, transform, true);
    const ProductTile tile = cpu ? register_tile(conv) : local_tile(conv, best);
    const std::int64_t rows = best.rows_within_limits();
    const int channels = best.channels();
    if (rows == 0) {
      result.push_back({name,
                        {},
                        {},
                        "a row of tiles takes " + std::to_string(best.row_bytes()) +
                            " bytes, more than the device allows"});
      continue;
    }
    result.push_back(best.candidate(name, tile, {rows, channels}));
    if (transform.in_blocks || transform.taps() != 3) continue;
    if (cpu && transform.tile == 2 && tiled.rows_within_limits() > 0) {
      others.push_back(tiled.candidate(name + "_tiled", local_tile(conv, tiled),
                                       {tiled.rows_within_limits(), tiled.channels()}));
    }
    if (transform.tile != 4) continue;
    // Candidates with a quarter of the scratch memory, split by rows of tiles or by input channels.
    if (rows > 1)
      others.push_back(best.candidate(name + "_split_p", tile, {ceil_div(rows, 4), channels}));
    const int quarter = static_cast<int>(round_up(ceil_div(channels, 4), kDepthStep));
    if (quarter < channels) {
      others.push_back(best.candidate(name + "_split_c", tile, {rows, quarter}));
    }
  }
  for (kernel::Candidate& other : others) result.push_back(std::move(other));
  for (const Transform& transform : kTransforms) {
    const std::string why = refusal(conv, transform);
    if (!why.empty()) result.push_back({transform.name, {}, {}, why});
  }
  return result;
}

bool winograd_pays(const Convolution& conv) {
  const std::vector<Transform> transforms = possible(conv);
  return !transforms.empty() && cost(conv, transforms[0]) < direct_cost(conv);
}

}  // namespace clgpu::ops::conv2d
