// Engine `tensor_halo`: NVIDIA's tensor cores; every pixel is copied to local memory once for all
// taps of the filter. See kernels/conv2d/tensor_halo_nvidia.cl.
#include <algorithm>

#include "ops/families/conv2d/convolution.hpp"
#include "ops/products/tensor_gemm.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// Macros of the kernel; see its head.
struct Tile {
  const char* name;  ///< rows x columns of pixels x channels of a work-group
  int rows, blocks, warps_x, warps_y, warps_n;
  int items() const { return 32 * warps_x * warps_y * warps_n; }
  int height() const { return rows * warps_y; }
  int width() const { return 16 * warps_x; }
  int channels() const { return 8 * blocks * warps_n; }
};

constexpr Tile kTiles[] = {
    {"16x16x64", 8, 4, 1, 2, 2}, {"8x16x128", 8, 4, 1, 1, 4}, {"8x32x64", 8, 4, 2, 1, 2},
    {"16x32x32", 8, 4, 2, 2, 1}, {"8x32x32", 8, 4, 2, 1, 1},  {"16x32x16", 8, 2, 2, 2, 1},
    {"16x32x8", 8, 1, 2, 2, 1},  {"8x16x8", 2, 1, 1, 4, 1},
};
constexpr std::size_t kMostCandidates = 4;
constexpr int kLocalBytes = 48 * 1024;          // of a work-group
constexpr int kMostFilterRows = 9;              // more do not fit the registers
constexpr double kLaunch = 3.1;                 // microseconds, as tensor_gemm has them
constexpr double kCyclesPerMicrosecond = 1980;  // of an H200

/// How a tile proceeds through the channels.
struct Chunks {
  int units, stages;
};

class Maker {
 public:
  explicit Maker(const Convolution& conv)
      : conv_(conv),
        storage_(conv.image_storage()),
        element_(static_cast<int>(size_of(storage_))) {}

  /// Why this convolution cannot be computed; empty if it can.
  std::string refusal() const {
    const ConvGeometry& g = conv_.geometry;
    if (g.stride_h != 1 || g.stride_w != 1) return "the stride is not 1";
    if (conv_.groups != 1) return "the convolution has groups";
    if (conv_.filter_h * conv_.filter_w == 1) return "a filter of 1 x 1 has no halo";
    const ir::Tensor& weights = conv_.node.input(kWeights);
    if (conv_.quantized() && (storage_ != DType::kI8 || weights.storage != DType::kI8))
      return std::string("tensor cores take int8, not ") + name_of(storage_);
    if (conv_.quantized() && g.reflect) return "an image of integers is not mirrored";
    if (std::string problem = bfloat_problem(conv_.node, kWeights); !problem.empty())
      return problem;
    if (storage_ == DType::kF32 && !conv_.node.allows_tf32())
      return "precision fp32 does not let factors be rounded";
    if (copy_bytes() == 0)
      return "pixels of " + std::to_string(conv_.in_c) + " " + name_of(storage_) +
             " channels are not aligned to 4 bytes";
    if (storage_ == DType::kF16 && is_float(weights.storage) && weights.storage != DType::kF16 &&
        !(weights.is_constant() && weights.constant->fits_half()))
      return "weights in float may not fit the half that the image is stored as";
    if (conv_.filter_h > kMostFilterRows)
      return "a filter of " + std::to_string(conv_.filter_h) + " rows needs too many registers";
    return {};
  }

  /// The chunks that suit a tile; no units if its halo does not fit local memory, or the launch is
  /// too large.
  Chunks chunks(const Tile& tile) const {
    if (std::int64_t{conv_.batch} * tiles_y(tile) > 65535) return {0, 0};
    const bool small = conv_.in_c * element_ <= 32;
    const auto fits = [&](int units, int stages) {
      return stage_bytes(tile, units) * stages <= kLocalBytes && registers(tile, units) < INT32_MAX;
    };
    if (!small) {
      if (chunk_count(4) > 1 && fits(4, 2)) return {4, 2};
      if (fits(4, 1)) return {4, 1};
    }
    // Chunks of two units are short: waiting for a copy would take as long as the products.
    if (chunk_count(2) > 1 && fits(2, 2)) return {2, 2};
    if (fits(2, 1)) return {2, 1};
    return {0, 0};
  }

  /// Estimate of the clock cycles of the convolution, within about a quarter on an H200. The
  /// coefficients are fitted to the measured times of several hundred launches there. It ranks
  /// tiles.
  double cycles(const Tile& tile) const {
    const Chunks c = chunks(tile);
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const std::int64_t units = conv_.device.compute_units;
    const std::int64_t groups = conv_.batch * tiles_y(tile) * tiles_x(tile) * panels(tile);
    const std::int64_t count = chunk_count(c.units), stage = stage_bytes(tile, c.units);
    const std::int64_t warps = tile.items() / 32, steps = conv_.filter_w * (c.units / 2);

    // Cycles for products or reading their operands, for copies, for the result.
    const std::int64_t source_rows =
        tile.rows + std::int64_t{conv_.filter_h - 1} * conv_.geometry.dilation_h;
    const double products = real(steps * tile.rows * tile.blocks * conv_.filter_h);
    const double reads =
        real(steps * (4 * source_rows + std::int64_t{2} * conv_.filter_h * tile.blocks));
    const double stored =
        real(std::int64_t{tile.height()} * tile.width() * std::min(tile.channels(), conv_.out_c));
    // While a work-group waits for a chunk, only other work-groups can hide the copies.
    const double copies = (c.stages == 1 ? 0.02 : 0.01) * real(stage);
    const double busy = real(count) * (real(warps) * std::max(1.66 * products, reads) + copies) +
                        0.06 * element_ * stored + 375 * real(warps);

    // The time of one work-group, and how many a compute unit runs one after the other.
    const double copy = 1200 + 180 * real(ceil_div(stage / 16, tile.items()));
    const double compute = 6.6 * products;
    const double alone = real(count) * (c.stages == 2 ? std::max(copy, compute) : copy + compute);
    const std::int64_t by_registers = (tile.blocks == 4 ? 8 : tile.blocks == 2 ? 16 : 20) / warps;
    const std::int64_t by_memory = 227 * 1024 / (stage * c.stages);
    const std::int64_t resident = std::max<std::int64_t>(1, std::min(by_registers, by_memory));
    return std::max(real(ceil_div(groups, units)) * busy,
                    real(ceil_div(groups, units * resident)) * alone);
  }

  kernel::Candidate make(const Tile& tile) const {
    const Chunks c = chunks(tile);
    kernel::Launch pack("conv2d/tensor_halo_pack_nvidia.cl", "conv2d_tensor_halo_pack");
    set_filter(pack, tile, c);
    pack.type("SRC_T", conv_.node.input(kWeights).storage);
    pack.type("DST_T", storage_);
    const std::int64_t used = registers(tile, c.units);
    pack.src(kWeights).scratch_out(0).i32(used).i32(chunk_count(c.units));
    pack.i32(conv_.in_c).i32(conv_.out_c).range({uz(used)}, {kElementwiseGroup});

    kernel::Launch launch("conv2d/tensor_halo_nvidia.cl", "conv2d_tensor_halo");
    set_filter(launch, tile, c);
    launch.macro("DILATION_H", conv_.geometry.dilation_h);
    launch.macro("DILATION_W", conv_.geometry.dilation_w);
    launch.macro("ROWS", tile.rows).macro("STAGES", c.stages).macro("COPY", copy_bytes());
    launch.macro("WARPS_X", tile.warps_x).macro("WARPS_Y", tile.warps_y);
    launch.macro("WARPS_N", tile.warps_n);
    launch.macro("MMA_TYPE", static_cast<int>(mma_of(storage_)));
    const int wide = 2 * tile.blocks;
    const bool is_wide =
        tile.blocks > 1 && conv_.out_c % wide == 0 && result_layout(conv_.node).aligned(wide);
    launch.macro("WIDE", is_wide ? 1 : 0);
    set_border(launch, conv_.geometry);
    set_result_types(launch, conv_.node, kBias);
    // The kernel reads one step ahead.
    const std::int64_t ahead = std::int64_t{64} * conv_.filter_h * tile.blocks;
    std::vector<kernel::Scratch> scratch = {{(used + ahead) * 4}};
    std::vector<kernel::Launch> launches = {std::move(pack)};
    launch.src(kImage).scratch_in(0).early();
    launch.macro("FILL", conv_.quantized() ? 1 : 0);
    if (conv_.quantized()) launch.i32(fill_of(conv_.node.input(kImage)));
    if (conv_.quantized()) {
      ChannelTable channels = conv_.channels(static_cast<int>(scratch.size()));
      launches.push_back(std::move(channels.launch));
      scratch.push_back(std::move(channels.scales));
      scratch.push_back(std::move(channels.result));
      push_channels(launch, conv_.node, channels);
      ops::push_result(launch, result_layout(conv_.node));
    } else {
      conv_.push_result(launch);
    }
    launch.i32(chunk_count(c.units)).i32(tiles_y(tile)).i32(conv_.in_h).i32(conv_.in_w);
    launch.i32(conv_.in_c).i32(conv_.out_h).i32(conv_.out_w).i32(conv_.out_c);
    launch.i32(conv_.at.h.before).i32(conv_.at.w.before);
    const auto items = uz(tile.items());
    launch.range({uz(panels(tile)) * items, uz(tiles_x(tile)), uz(conv_.batch * tiles_y(tile))},
                 {items, 1, 1});
    launches.push_back(std::move(launch));
    kernel::Candidate candidate{std::string("tensor_halo_") + tile.name, std::move(launches),
                                std::move(scratch)};
    candidate.tensor_cores = true;
    return candidate;
  }

 private:
  void set_filter(kernel::Launch& launch, const Tile& tile, Chunks c) const {
    launch.macro("FILTER_H", conv_.filter_h).macro("FILTER_W", conv_.filter_w);
    launch.macro("BLOCKS", tile.blocks).macro("UNITS", c.units);
  }

  /// Bytes that one copy moves: 16, 8, 4, or 0 if pixels are not aligned to 4.
  int copy_bytes() const {
    for (const int bytes : {16, 8, 4}) {
      if (conv_.in_c * element_ % bytes == 0) return bytes;
    }
    return 0;
  }
  std::int64_t chunk_count(int units) const {
    return ceil_div(std::int64_t{conv_.in_c} * element_, units * 16);
  }
  std::int64_t panels(const Tile& tile) const { return ceil_div(conv_.out_c, tile.channels()); }
  std::int64_t tiles_x(const Tile& tile) const { return ceil_div(conv_.out_w, tile.width()); }
  std::int64_t tiles_y(const Tile& tile) const { return ceil_div(conv_.out_h, tile.height()); }
  std::int64_t stage_bytes(const Tile& tile, int units) const {
    const ConvGeometry& g = conv_.geometry;
    const std::int64_t height = tile.height() + std::int64_t{conv_.filter_h - 1} * g.dilation_h;
    const std::int64_t width = tile.width() + std::int64_t{conv_.filter_w - 1} * g.dilation_w;
    return height * round_up(width, 2) * units * 16;
  }
  /// 32-bit registers for all right operands.
  std::int64_t registers(const Tile& tile, int units) const {
    return panels(tile) * tile.warps_n * chunk_count(units) * conv_.filter_w * (units / 2) *
           conv_.filter_h * tile.blocks * 64;
  }

  const Convolution& conv_;
  DType storage_;  ///< of the image
  int element_;    ///< bytes
};

}  // namespace

std::vector<kernel::Candidate> tensor_halo(const Convolution& conv) {
  if (!has_mma(conv.device, mma_of(conv.image_storage()))) return {};
  const Maker maker(conv);
  if (const std::string why = maker.refusal(); !why.empty()) return {{"tensor_halo", {}, {}, why}};

  std::vector<std::pair<double, const Tile*>> ranked;
  for (const Tile& tile : kTiles) {
    // Blocks of channels that stay empty are wasted; half of the panel may be wasted.
    const bool empty = tile.channels() >= 2 * round_up(conv.out_c, 8);
    const bool narrow = tile.blocks < 4 && conv.out_c > 2 * tile.channels();
    if (empty || narrow || maker.chunks(tile).units == 0) continue;
    ranked.emplace_back(maker.cycles(tile), &tile);
  }
  if (ranked.empty()) {
    return {{"tensor_halo",
             {},
             {},
             "no tile's halo fits " + std::to_string(kLocalBytes) + " bytes of local memory"}};
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > kMostCandidates) ranked.resize(kMostCandidates);
  std::vector<kernel::Candidate> result;
  for (const auto& [cycles, tile] : ranked) {
    result.push_back(maker.make(*tile));
    result.back().microseconds = kLaunch + cycles / kCyclesPerMicrosecond;
  }
  return result;
}

}  // namespace clgpu::ops::conv2d
