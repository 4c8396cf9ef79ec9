#include "ops/products/tensor_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/sm_90a.hpp"
#include "ops/products/channels.hpp"

namespace clgpu::ops {
namespace {

enum class Way {
  kWarps,      ///< a warp multiplies, operands are in local memory: tensor_gemm_nvidia.cl
  kFour,       ///< four warps multiply together, likewise: with kernels/common/wgmma.cl
  kRegisters,  ///< a warp multiplies, operands go to registers: registers_nvidia.cl
};

/// Macros of the kernel, see its head; and by which measured factor it is slower than others of its
/// size. Tiles of products by four warps take more local memory than the driver reports; the probe
/// of DeviceInfo::wgmma has found that it is there.
struct Tile {
  const char* name;
  int tm, tn, warps_m, warps_n, warps_k, step_bytes;
  int stages;  ///< steps that are read ahead, with kRegisters those of a warp
  double slowness;
  Way way = Way::kWarps;
  double slowness_tf32 = 0;  ///< where it was measured apart
  int items() const { return warps_m * warps_n * warps_k * 32; }
  int local_bytes() const {
    if (way == Way::kRegisters) return warps_k * tm * tn * static_cast<int>(sizeof(float));
    return (tm + tn) * step_bytes * stages;
  }
};

constexpr Tile kTiles[] = {
    {"128x128", 128, 128, 2, 4, 1, 64, 3, 1.08},
    {"128x64", 128, 64, 4, 1, 1, 64, 4, 0.82},
    {"64x128", 64, 128, 2, 2, 1, 64, 4, 0.81},
    {"64x64", 64, 64, 2, 2, 1, 128, 3, 0.88, Way::kWarps, 0.76},
    {"64x64_flat", 64, 64, 2, 2, 1, 64, 4, 0.93},
    {"64x32_deep", 64, 32, 2, 1, 2, 128, 4, 0.82, Way::kWarps, 0.9},
    {"64x32_flat", 64, 32, 4, 1, 1, 64, 4, 1.01},
    {"32x64", 32, 64, 2, 2, 1, 128, 4, 0.88},
    {"32x64_flat", 32, 64, 2, 2, 1, 64, 4, 1.01},
    {"32x32", 32, 32, 2, 2, 1, 128, 4, 0.98},
    {"32x32_deep", 32, 32, 2, 1, 2, 128, 6, 0.99},
    {"128x256_wgmma", 128, 256, 8, 1, 1, 128, 4, 0.35, Way::kFour},
    {"128x128_wgmma", 128, 128, 8, 1, 1, 128, 3, 0.62, Way::kFour},
    {"128x64_wgmma", 128, 64, 8, 1, 1, 128, 3, 1.01, Way::kFour},
    {"64x128_wgmma", 64, 128, 4, 1, 1, 128, 3, 0.83, Way::kFour},
    {"64x128_wgmma_flat", 64, 128, 4, 1, 1, 64, 4, 1.08, Way::kFour},
    {"64x64_wgmma", 64, 64, 4, 1, 1, 128, 4, 1.01, Way::kFour},
    {"64x32_wgmma", 64, 32, 4, 1, 1, 128, 4, 1.24, Way::kFour},
    {"16x16_registers", 16, 16, 1, 1, 8, 64, 8, 1, Way::kRegisters},
    {"16x32_registers", 16, 32, 1, 1, 8, 64, 5, 1, Way::kRegisters},
    {"32x16_registers", 32, 16, 1, 1, 8, 64, 5, 1, Way::kRegisters},
    {"32x32_registers", 32, 32, 1, 1, 8, 64, 4, 1, Way::kRegisters},
    {"32x64_registers", 32, 64, 2, 1, 4, 64, 3, 1, Way::kRegisters},
    {"64x32_registers", 64, 32, 2, 1, 4, 64, 4, 1, Way::kRegisters},
    {"64x64_registers", 64, 64, 4, 1, 2, 64, 3, 1, Way::kRegisters},
};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24};
constexpr int kMostSplits = 24;
constexpr std::size_t kMostCandidates = 7, kMostWithWgmma = 4;
constexpr std::int64_t kSmallResult = 256 << 10;  // bytes; see plan/bundles.cpp
constexpr int kUnitBytes = 227 * 1024;            // local memory of a compute unit
constexpr std::int64_t kStepsAlone = 16;
constexpr std::int64_t kManyProducts = 1 << 27;  // multiply-adds of a launch of some 10 us
constexpr std::int64_t kLongProducts = 1 << 29;

/// Estimate of the microseconds of a launch with `groups` work-groups of `steps` steps, and
/// `panels` different ones of weights; `chained`: of a stage of a chain, where a compute unit takes
/// fewer work-groups at once; `adds`: with a residual; `tf32`: of floats. Right within about an
/// eighth: a model of latency and throughput with coefficients fitted to launches on an H200, 10000
/// in general, and 1400 of products by four warps, with halves, in five networks. Tiles of
/// registers, which take the time of reading, are fitted to 400 stages of chains beside the same
/// stages with other tiles. It ranks tiles; on another device the ranks are a guess.
double microseconds(const Tile& tile, double groups, double panels, double steps, int splits,
                    int compute_units, bool chained, bool adds, bool tf32) {
  const double area = static_cast<double>(tile.tm) * tile.tn, rim = tile.tm + tile.tn;
  const double bytes = tile.step_bytes;
  if (tile.way == Way::kRegisters) {
    const double waves = std::ceil(groups / compute_units);
    // Bytes that the warps of a work-group read, and those of all weights.
    const double left = tile.warps_n * tile.tm * steps * bytes;
    const double right = tile.warps_m * tile.tn * steps * bytes;
    const double weights = panels * tile.tn * steps * bytes;
    return 2.8 + waves * (0.5 + left / 7.6e4 + right / 1.06e5) + weights / 2.5e6;
  }
  // Work-groups that fit a compute unit, by local memory, work-items and registers.
  const double by_registers =
      65536 / (tile.way == Way::kFour ? tile.items() * 45 + area : tile.items() * 40 + area * 1.5);
  const double resident = std::max(1.0, std::min({1.0 * kUnitBytes / (tile.local_bytes() + 1024),
                                                  2048.0 / tile.items(), by_registers}));
  const double share = groups / compute_units;
  const double at_once = chained
                             ? std::max(1.0, std::min(std::floor(256.0 / tile.items()),
                                                      std::floor(48.0 * 1024 / tile.local_bytes())))
                             : resident;
  const double slowness = tf32 && tile.slowness_tf32 > 0 ? tile.slowness_tf32 : tile.slowness;
  double latency = 0, throughput = 0, overlap = 0.15, sharing = 1.9;
  if (tile.way == Way::kFour) {
    const double slow_bytes = tile.slowness * steps * bytes * 1e-6;
    latency =
        std::ceil(share / std::floor(resident)) * (1.1 + area * (1.14e-4 + slow_bytes * 0.263));
    throughput = std::ceil(share) * (1.9e-5 * area + slow_bytes * (0.0785 * area + 4.38 * rim));
    // Few work-items wait for many elements of a residual.
    if (adds) latency += std::ceil(share / std::floor(resident)) * 0.035 * area / tile.items();
    overlap = 0.71;
    sharing = 0.1 + 2.08e-6 * groups * area;
  } else {
    latency = slowness * std::ceil(share / at_once) *
              (0.05 + steps * (0.042 * bytes / 64 + 0.51e-6 * area * bytes));
    // Some units have a work-group more than others; not fitted with floats.
    const double longest = tf32 ? share : 0.8 * share + 0.2 * std::ceil(share);
    throughput =
        slowness * longest * (1.43e-4 * area + steps * (0.36 * area + 9.9 * rim) * bytes * 1e-6);
    sharing += 4.8e-5 * splits * area;
  }
  const double work = std::max(latency, throughput) + overlap * std::min(latency, throughput);
  return 3.1 + work + (splits > 1 ? sharing : 0);
}

/// Multiplier and shift that divide numbers below 2^31 by `divisor`; see QUOTIENT.
void push_divisor(kernel::Launch& launch, std::int64_t divisor) {
  if (divisor == 1) {
    launch.i32(0).i32(0);
    return;
  }
  int bits = 0;  // 2^bits >= divisor
  while ((std::int64_t{1} << bits) < divisor) ++bits;
  const std::int64_t multiplier = ceil_div(std::int64_t{1} << (31 + bits), divisor);
  launch.i32(static_cast<std::int32_t>(static_cast<std::uint32_t>(multiplier))).i32(bits - 1);
}

class Maker {
 public:
  Maker(const NodeContext& node, const TensorGemm& product)
      : node_(node),
        p_(product),
        storage_(product.pairs && !quantized() ? DType::kF16 : node.input(product.src).storage) {}

  DType storage() const { return storage_; }

  std::int64_t element() const { return static_cast<std::int64_t>(size_of(storage_)); }

  /// Bytes that one copy moves: 16, 8 or 4; if rows of channels are not aligned to 4, 1 for
  /// integers and 0 otherwise.
  int copy_bytes() const {
    for (const int bytes : {16, 8, 4}) {
      const auto whole = [&](std::int64_t elements) { return elements * element() % bytes == 0; };
      if (whole(p_.group_in) && whole(p_.in_c) && whole(p_.src_group)) return bytes;
    }
    return quantized() ? 1 : 0;
  }

  std::int64_t steps(const Tile& tile) const {
    return ceil_div(p_.depth() * element(), tile.step_bytes);
  }
  std::int64_t panels(const Tile& tile) const { return ceil_div(p_.group_out, tile.tn); }
  std::int64_t tiles(const Tile& tile) const {
    return ceil_div(p_.pixels(), tile.tm) * panels(tile) * p_.groups;
  }

  /// Why this product cannot be computed; empty if it can.
  std::string refusal() const {
    const ir::Tensor& weights = node_.input(p_.weights);
    if (quantized()) {
      if (storage_ != DType::kI8 || weights.storage != DType::kI8)
        return std::string("tensor cores take int8, not ") + name_of(storage_);
      if (weights.zero_point() != 0) return "the weights have a zero point";
      if (p_.reflect) return "an image of integers is not mirrored";
      if (p_.transposed || (p_.groups > 1 && p_.dst_group != p_.group_out))
        return "integers are not multiplied in groups of matrices";
    } else if (p_.widens) {
      if (storage_ != DType::kF16) return "weights of int8 are widened to half only";
      if (weights.zero_point() != 0) return "the weights have a zero point";
    } else if (!is_float(storage_) || !is_float(weights.storage)) {
      return std::string("the types differ: ") + name_of(storage_) + " and " +
             name_of(weights.storage);
    }
    if (std::string problem = bfloat_problem(node_, p_.weights); !problem.empty()) return problem;
    if (storage_ == DType::kF32 && !node_.allows_tf32() && !node_.allows_bf16_pairs())
      return "precision fp32 does not let factors be rounded";
    if (copy_bytes() == 0) {
      return "rows of " + std::to_string(p_.group_in) + " " + name_of(storage_) +
             " channels are not aligned to 4 bytes";
    }
    if (storage_ == DType::kF16 && is_float(weights.storage) && weights.storage != DType::kF16) {
      // The weights are no halves because they are few, or because they do not fit a half.
      if (!weights.is_constant() || !weights.constant->fits_half())
        return "weights in float may not fit the half that the image is stored as";
    }
    return {};
  }

  Mma operands(bool of_four) const {
    const bool pairs = storage_ == DType::kF32 && node_.allows_bf16_pairs();
    return pairs ? Mma::kPairs : mma_of(storage_, of_four);
  }

  /// Whether a lane's neighbouring results can be stored together.
  bool is_wide() const {
    return p_.group_out % 8 == 0 && p_.out_c % 8 == 0 && p_.dst_group % 8 == 0 &&
           result_layout(node_).aligned(8);
  }

  /// Whether products by four warps may pay. Such a launch is no member of a bundle, where small
  /// results are, and no stage of a chain, where a few microseconds matter.
  bool suits_wgmma() const {
    const std::int64_t results = p_.pixels() * p_.group_out * p_.groups;
    // Only what has been compared on a device: not widened weights and transposed ones.
    if (storage_ == DType::kF32 || p_.widens || p_.transposed) return false;
    return copy_bytes() == 16 && is_wide() && results * element() > kSmallResult &&
           results * p_.depth() >= kManyProducts;
  }

  /// Whether it may be a stage of a chain: a launch, as that of a tile with products by four warps,
  /// is too short to make up for leaving one.
  bool suits_chains(const DeviceInfo& device) const {
    const std::int64_t groups = ceil_div(p_.pixels(), 64) * ceil_div(p_.group_out, 64) * p_.groups;
    return groups <= 2 * std::int64_t{device.compute_units} &&
           p_.pixels() * p_.group_out * p_.groups * p_.depth() < kLongProducts;
  }

  /// Whether a tile suits the product at all.
  bool suits(const Tile& tile) const {
    if (tile.way == Way::kFour && !suits_wgmma()) return false;
    if (tile.way == Way::kRegisters) {
      // A lane reads 16 bytes of a pixel at once.
      if (copy_bytes() != 16 || p_.reflect || operands(false) > Mma::kInt8) return false;
    }
    // Where a work-group takes a compute unit alone, nothing multiplies while it stores.
    if (tile.local_bytes() > kUnitBytes / 2 && steps(tile) < kStepsAlone) return false;
    // With small copies, work-items have too many of them, or too few rows in common.
    if (copy_bytes() < 16 && (tile.step_bytes > 64 || tile.tm > 64)) return false;
    const std::int64_t packed =
        p_.groups * panels(tile) * steps(tile) * tile.tn * tile.step_bytes / element();
    return packed <= INT32_MAX - 64 && p_.groups <= 65535 / kMostSplits;
  }

  kernel::Candidate make(const Tile& tile, std::int64_t wanted_splits, std::string name) const {
    const std::int64_t split_steps = ceil_div(steps(tile), wanted_splits);
    const std::int64_t splits = ceil_div(steps(tile), split_steps);
    const bool of_four = tile.way == Way::kFour, registers = tile.way == Way::kRegisters;
    const int blocks = registers || tile.tn / tile.warps_n == 16 ? 2 : 4;
    const std::int64_t packed =
        p_.groups * panels(tile) * steps(tile) * tile.tn * tile.step_bytes / element();

    const std::int64_t pieces = packed * element() / 16;  // a work-item writes 16 bytes
    kernel::Launch pack =
        of_four ? kernel::Launch("tensor_gemm/pack_rows_nvidia.cl", "tensor_gemm_pack_rows")
        : operands(false) == Mma::kPairs
            ? kernel::Launch("tensor_gemm/pack_float_pairs_nvidia.cl",
                             "tensor_gemm_pack_float_pairs")
            : kernel::Launch("tensor_gemm/pack_nvidia.cl", "tensor_gemm_pack");
    pack.macro("TN", tile.tn);
    if (of_four) {
      pack.macro("STEP_BYTES", tile.step_bytes);
    } else {
      pack.macro("TK", tile.step_bytes / element()).macro("BLOCKS", blocks);
      if (operands(false) != Mma::kPairs) pack.macro("NEIGHBOURS", registers ? 1 : 0);
    }
    pack.macro("TRANSPOSED", p_.transposed ? 1 : 0);
    if (p_.pairs) {
      pack.type("SRC_T", storage_).type("DST_T", storage_).scratch_in(kPairedWeights);
    } else {
      set_weights_type(pack, "SRC_T", node_, node_.input(p_.weights).storage);
      pack.type("DST_T", storage_).src(p_.weights);
    }
    pack.scratch_out(0).i32(packed).i32(p_.depth()).i32(p_.group_out);
    pack.i32(panels(tile)).i32(steps(tile));
    pack.range({uz(pieces)}, {kElementwiseGroup});

    kernel::Launch launch =
        registers ? kernel::Launch("tensor_gemm/registers_nvidia.cl", "tensor_gemm_registers")
                  : kernel::Launch("tensor_gemm/tensor_gemm_nvidia.cl", "tensor_gemm");
    launch.macro("TM", tile.tm).macro("TN", tile.tn);
    launch.macro("WARPS_M", tile.warps_m).macro("WARPS_N", tile.warps_n);
    launch.macro("WARPS_K", tile.warps_k);
    if (registers) {
      launch.macro("AHEAD", tile.stages);
      launch.macro("FILTER_H", p_.filter_h).macro("FILTER_W", p_.filter_w);
      launch.macro("STRIDE_H", p_.stride_h).macro("STRIDE_W", p_.stride_w);
      launch.macro("DILATION_H", p_.dilation_h).macro("DILATION_W", p_.dilation_w);
    } else {
      launch.macro("STEP_BYTES", tile.step_bytes).macro("STAGES", tile.stages);
      launch.macro("COPY", copy_bytes()).macro("SPLIT", splits > 1 ? 1 : 0);
      launch.macro("REFLECT", p_.reflect ? 1 : 0);
    }
    launch.macro("WIDE", is_wide() ? 1 : 0);
    launch.macro("MMA_TYPE", static_cast<int>(operands(of_four)));
    if (of_four) {
      launch.build_flags = kSm90aFlag;
      launch.is_alone = true;  // its local memory is at a multiple of 1024
    }
    set_result_types(launch, node_, p_.bias, p_.requantization);
    std::vector<kernel::Scratch> scratch = {{packed * element()}};
    scratch[0].transient = p_.widens;
    std::vector<kernel::Launch> launches;
    if (p_.pairs) {
      const TensorGemm::Pairs& pairs = *p_.pairs;
      const std::int64_t filters = std::int64_t{p_.group_out} * p_.filter_h * p_.filter_w;
      const std::int64_t pixels = std::int64_t{p_.batch} * p_.in_h * p_.in_w;
      const std::int64_t pair_bytes = 8 * element();
      launches.push_back(pair_columns(p_.weights, kPairedWeights, filters, pairs.columns,
                                      pairs.skipped, p_.filter_w, /*outside=*/0));
      launches.push_back(std::move(pack));
      const ir::Tensor& src = node_.input(p_.src);
      launches.push_back(pair_columns(p_.src, kPairedImage, pixels, pairs.width, 0, p_.in_w,
                                      src.is_quantized() ? src.zero_point() : 0));
      scratch.insert(scratch.end(), {{filters * pair_bytes}, {pixels * pair_bytes}});
      launch.scratch_in(kPairedImage).scratch_in(0).early();
    } else {
      launches.push_back(std::move(pack));
      launch.src(p_.src).scratch_in(0).early();
    }
    launch.macro("FILL", quantized() ? 1 : 0);  // of all: one program for images with and without
    if (quantized()) launch.i32(fill_of(node_.input(p_.src)));
    if (quantized()) {
      const std::int64_t count = std::int64_t{p_.groups} * p_.group_out;
      const std::int64_t depth = node_.input(p_.weights).shape.elements() / count;  // without pairs
      ChannelTable channels =
          channel_table(node_, {p_.src, p_.weights, p_.bias, 0}, {count, depth, depth, 1},
                        static_cast<int>(scratch.size()), p_.requantization);
      launches.push_back(std::move(channels.launch));
      scratch.push_back(std::move(channels.scales));
      scratch.push_back(std::move(channels.result));
      const bool by_floats = is_wide() && may_end_by_floats(node_, channels);
      launch.macro("BY_FLOATS", by_floats ? 1 : 0);
      push_channels(launch, node_, channels, by_floats);
      push_result(launch, result_layout(node_));
    } else {
      push_result(launch, node_, p_.bias);
    }
    if (splits > 1) {
      const int sums = static_cast<int>(scratch.size());
      launch.scratch_inout(sums).scratch_inout(sums + 1).i32(splits).i32(split_steps);
      const auto word = static_cast<std::int64_t>(sizeof(float));
      scratch.push_back({tiles(tile) * splits * tile.tm * tile.tn * word});
      scratch.push_back({tiles(tile) * word, /*counters=*/true});
    }
    launch.i32(p_.pixels()).i32(panels(tile)).i32(steps(tile)).i32(p_.group_in).i32(p_.group_out);
    launch.i32(p_.src_group).i32(p_.dst_group);
    for (const int n : {p_.in_h, p_.in_w, p_.in_c, p_.out_h, p_.out_w, p_.out_c}) launch.i32(n);
    if (!registers) {
      for (const int n :
           {p_.filter_h, p_.filter_w, p_.stride_h, p_.stride_w, p_.dilation_h, p_.dilation_w})
        launch.i32(n);
    }
    launch.i32(p_.top).i32(p_.left);
    push_divisor(launch, p_.out_w);
    push_divisor(launch, p_.out_h);
    if (!registers) push_divisor(launch, p_.filter_w);
    const auto items = uz(tile.items());
    launch.range(
        {uz(ceil_div(p_.pixels(), tile.tm) * panels(tile)) * items, 1, uz(p_.groups * splits)},
        {items, 1, 1});
    launches.push_back(std::move(launch));
    kernel::Candidate candidate{std::move(name), std::move(launches), std::move(scratch)};
    candidate.tensor_cores = true;
    candidate.makes_halves = p_.pairs.has_value();
    return candidate;
  }

 private:
  static constexpr int kPairedWeights = 1, kPairedImage = 2;  // scratch
  /// Writes `count` pairs of columns of an input; see kernels/conv2d/pair_columns_nvidia.cl.
  kernel::Launch pair_columns(int input, int scratch, std::int64_t count, int width, int skipped,
                              int pairs, int outside) const {
    kernel::Launch launch("conv2d/pair_columns_nvidia.cl", "conv2d_pair_columns");
    launch.type("SRC_T", node_.input(input).storage).type("DST_T", storage_);
    launch.src(input).scratch_out(scratch).i32(count).i32(width).i32(p_.pairs->channels);
    launch.i32(skipped).i32(pairs).i32(outside).range({uz(count)}, {kElementwiseGroup});
    return launch;
  }
  bool quantized() const { return node_.output(0).is_quantized(); }
  const NodeContext& node_;
  const TensorGemm& p_;
  DType storage_;  ///< of src
};

struct Ranked {
  const Tile* tile;
  int splits;
  double cost;
};

}  // namespace

std::string bfloat_problem(const NodeContext& node, int weights) {
  bool found = node.output(0).storage == DType::kBF16;
  for (int i = 0; i < node.input_count(); ++i) {
    found = found || (i != weights && node.has_input(i) && node.input(i).storage == DType::kBF16);
  }
  return found ? "kernels for tensor cores take no bfloat16 besides weights" : "";
}

std::vector<kernel::Candidate> tensor_gemms(const NodeContext& node, const DeviceInfo& device,
                                            const TensorGemm& product) {
  const Maker maker(node, product);
  if (!has_mma(device, mma_of(maker.storage()))) return {};
  if (const std::string why = maker.refusal(); !why.empty())
    return {{product.pairs ? "tensor_pairs" : "tensor_gemm", {}, {}, why}};

  // With several images the launches of a network have been seen to be faster than its chain.
  const bool chained = product.batch == 1 && maker.suits_chains(device);
  const bool adds = node.residual() >= 0, tf32 = maker.storage() == DType::kF32;
  std::vector<Ranked> ranked;
  for (const Tile& tile : kTiles) {
    if (!maker.suits(tile)) continue;
    if (tile.way == Way::kFour && (!device.wgmma || maker.suits_chains(device))) continue;
    const std::int64_t steps = maker.steps(tile), tiles = maker.tiles(tile);
    for (const int splits : kSplits) {
      const std::int64_t split_steps = ceil_div(steps, splits);
      const bool whole = ceil_div(steps, split_steps) == splits;
      if (splits > 1 && tile.way == Way::kRegisters) continue;
      // More work-groups than a few per compute unit gain nothing, and only add the cost of
      // sharing.
      if (splits > 1 && (!whole || split_steps < 2 || tiles * splits > 8 * device.compute_units))
        continue;
      ranked.push_back({&tile, splits,
                        microseconds(tile, static_cast<double>(tiles * splits),
                                     static_cast<double>(maker.panels(tile) * product.groups),
                                     static_cast<double>(split_steps), splits, device.compute_units,
                                     chained, adds, tf32)});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.cost < b.cost; });
  std::vector<kernel::Candidate> result;
  // A driver may refuse a kernel with wgmma although the probe worked, so some do without.
  std::size_t with_wgmma = 0;
  for (const Ranked& r : ranked) {
    if (result.size() == kMostCandidates) break;
    if (r.tile->way == Way::kFour && with_wgmma++ >= kMostWithWgmma) continue;
    std::string name =
        (product.pairs ? "tensor_pairs_" : "tensor_gemm_") + std::string(r.tile->name);
    if (r.splits > 1) name += "_split" + std::to_string(r.splits);
    result.push_back(maker.make(*r.tile, r.splits, std::move(name)));
    result.back().microseconds = r.cost;
  }
  return result;
}

}  // namespace clgpu::ops
