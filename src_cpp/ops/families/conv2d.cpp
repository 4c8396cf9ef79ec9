// Family of CONV_2D: 2-D convolution with strides, dilations and groups. Its engines are in
// conv2d/.
#include <cstdint>
#include <map>

#include "base/sm_90a.hpp"
#include "ops/families/conv2d/convolution.hpp"
#include "ops/products/conv_rows.hpp"

namespace clgpu::ops {
namespace {

using namespace conv2d;

constexpr int kConv2d = 3;

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const int group_in = weights[3];
  if (group_in < 1 || src[3] % group_in != 0 || weights[0] % (src[3] / group_in) != 0) {
    throw ShapeError("an image of " + std::to_string(src[3]) +
                     " channels does not split into groups for weights " + weights.str());
  }
  check_bias_shape(node, kBias, weights[0]);
  const ConvWindows at =
      checked_windows(node.attrs<ConvAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
  const ir::Shape dst{src[0], at.h.out, at.w.out, weights[0]};
  check_residual_shape(node, dst);
  return {dst};
}

using Candidates = std::vector<kernel::Candidate>;

/// With so few products, each work-item has only some, and the time of a single work-item
/// determines the total.
bool few_products(const Convolution& conv) {
  return conv.pixels * conv.out_c * conv.depth <= 2 << 20;
}

// Engines with the parameters that suit the device.

Candidates plainest(const Convolution& conv) { return {naive(conv)}; }

Candidates plain(const Convolution& conv) {
  int width = 4, vectors = 1, pixels = 4;
  if (conv.quantized() && !conv.is_int8()) {
    width = 1, vectors = 4;
  } else if (!conv.quantized() && conv.device.is_cpu()) {
    width = cpu_vector(conv.group_out), pixels = 6;
  }
  return {kernel::of_form(kernel::Form::kPlain, direct(conv, "direct", width, vectors, pixels))};
}

/// Twice the sums, on CPUs: faster if they fit the registers, slower if they do not.
Candidates wide(const Convolution& conv) {
  const int width = cpu_vector(conv.group_out);
  if (conv.group_out <= width) return {};
  return {direct(conv, "direct_wide", width, 2, 6)};
}

Candidates dots(const Convolution& conv) {
  if (!few_products(conv)) return {};
  const int tile = conv.pixels < 4 ? 1 : 4;  // pixels for which a work-item reads its weights once
  const bool short_sums = conv.depth < 64;
  if (has_int8_weights(conv.node)) return {dot(conv, short_sums ? 8 : 32, tile)};
  if (short_sums && !conv.device.is_cpu()) return {dot(conv, 8, tile), dot(conv, 32, tile)};
  return {dot(conv, 32, tile)};
}

Candidates gemms(const Convolution& conv) {
  const bool cpu = conv.device.is_cpu(), mobile = conv.device.is_mobile();
  if (conv.quantized()) return int8_gemms(conv, cpu ? 1 : mobile ? 2 : 6);
  if (has_int8_weights(conv.node)) return implicit_gemms(conv, cpu ? 1 : 4);
  return implicit_gemms(conv, cpu || mobile ? 2 : 6);
}

/// The node, and the candidates that its engines have given so far.
class Case {
 public:
  using Engine = Candidates (*)(const Convolution&);

  explicit Case(const Convolution& convolution) : conv(convolution) {}

  const Candidates& made_by(Engine engine) { return offer(engine).made; }

  /// Appends the next candidates of an engine, up to `most`; each candidate is appended once.
  void append(Engine engine, std::size_t most, Candidates& list) {
    Offer& found = offer(engine);
    for (; most > 0 && found.taken < found.made.size(); --most)
      list.push_back(found.made[found.taken++]);
  }

  const Convolution& conv;

 private:
  struct Offer {
    Candidates made;
    std::size_t taken = 0;
  };

  Offer& offer(Engine engine) {
    const auto [entry, is_new] = offers_.try_emplace(engine);
    if (is_new) entry->second.made = engine(conv);
    return entry->second;
  }

  std::map<Engine, Offer> offers_;
};

// Conditions for rows of the table.

bool always(Case&) { return true; }

bool many_products(Case& node) { return !few_products(node.conv); }

/// Few channels leave most of a tensor core's block empty, few products most of the device.
bool fills_blocks(Case& node) {
  return node.conv.group_out >= 8 && node.conv.depth >= 16 && !few_products(node.conv);
}

/// The best guess of tensor_halo has work-groups for at least half of the compute units, and should
/// take no longer than that of tensor_gemm. With images as narrow as a tile or filters of one row,
/// it loads more than it multiplies.
bool halo_is_faster(Case& node) {
  constexpr double kTie = 1.03, kClear = 0.8, kLate = 1.15, kLong = 40;  // microseconds
  const Candidates& found = node.made_by(tensor_halo);
  if (found.empty() || found.front().launches.empty()) return false;
  const Candidates& others = node.made_by(tensor_gemm);
  // The times that the models were fitted to are of images with zeros around them.
  const bool compares = fills_blocks(node) && !node.conv.geometry.reflect && !others.empty() &&
                        !others.front().launches.empty();
  const kernel::Launch& launch = found.front().launches.back();
  std::size_t groups = 1;
  for (std::size_t i = 0; i < 3; ++i) groups *= launch.global[i] / launch.local[i];
  const std::size_t units = uz(node.conv.device.compute_units);
  // Launches of few work-groups take up to half as long again as the model of tensor_halo says,
  // while that of products by four warps is right; the latter's long launches take an eighth
  // longer.
  const auto by_four_warps = [](const kernel::Candidate& candidate) {
    return candidate.launches.back().build_flags.find(kSm90aFlag) != std::string::npos;
  };
  const bool warps = compares && by_four_warps(others.front());
  const bool doubtful = warps && groups < 2 * units;
  const bool is_long = warps && others.front().microseconds > kLong;
  const double share = doubtful ? kClear : is_long ? kLate : kTie;
  if (compares && found.front().microseconds > share * others.front().microseconds) return false;
  return 2 * groups >= units;
}

bool transform_pays(Case& node) { return winograd_pays(node.conv); }

bool transform_by_quads_pays(Case& node) { return winograd_quads_pays(node.conv); }

/// Image tiles read the least, but there are few of them and they do not share the depth; a matrix
/// product pads channels to at least 16.
bool tiles_are_best(Case& node) {
  constexpr int kPieceArea = 128, kNarrow = 32;
  const Convolution& conv = node.conv;
  const std::int64_t pieces =
      ceil_div(conv.pixels, kPieceArea) * ceil_div(conv.group_out, 64) * conv.groups;
  return pieces >= 4 * conv.device.compute_units &&
         (conv.group_out <= kNarrow || conv.filter_h * conv.filter_w > 9);
}

/// Whether copies of short pixels take longer than a launch that makes them longer: measured on an
/// H200, it saves a third with filters of 7x7, and costs a third more with 3x3.
bool pairs_pay(Case& node) {
  constexpr std::int64_t kManyProducts = 1 << 28, kFewTaps = 25;
  const Convolution& conv = node.conv;
  return conv.pixels * conv.out_c * conv.depth >= kManyProducts &&
         conv.filter_h * conv.filter_w > kFewTaps;
}

bool wide_registers(Case& node) { return has_512_bit_registers(node.conv.device); }

/// The operands of the product, as flags.
enum Numbers : unsigned {
  O = 0,    ///< none
  F = 1,    ///< floats
  W = 2,    ///< floats times int8 weights, by engines whose kernels scale sums
  I8 = 4,   ///< integers of 8 bits
  I16 = 8,  ///< integers of 16 bits: simple forms only
  H = 16,   ///< floats quantised row by row, times int8 weights
  Q = I8 | I16,
};

unsigned numbers_of(const Convolution& conv) {
  if (conv.hybrid()) return H;
  if (conv.quantized()) return conv.is_int8() ? I8 : I16;
  return has_int8_weights(conv.node) ? W : F;
}

constexpr std::size_t kAll = SIZE_MAX;

struct Row {
  Case::Engine engine;
  unsigned cpu, mobile, gpu;  ///< Numbers for which it is offered on these devices
  bool (*where)(Case&);
  std::size_t most = kAll;  ///< of its candidates
};

/// Best guess first. An engine may be in several rows: each row appends candidates that no row
/// above has. Mobile GPUs have less bandwidth for the tiles of Winograd's transforms than their
/// rule assumes. Engines with private arrays or local memory do not come first there, since Mali
/// has no local memory; see docs/devices.md.
// clang-format off
constexpr Row kOrder[] = {
    // engine          CPU      mobile       GPU      where
    {tensor_pairs,     F | I8,  F | I8,      F | I8,  pairs_pay},
    {tensor_gemm,      Q,       Q,           Q,       always},
    {tensor_halo,      F,       F,           F,       halo_is_faster},
    {tensor_gemm,      F,       F,           F,       fills_blocks},
    {tensor_halo,      Q,       Q,           Q,       always},
    {winograd_quads,   O,       F,           O,       transform_by_quads_pays},
    {winograd,         F,       O,           F,       transform_pays, 1},
    {pairs,            Q,       O,           O,       always},
    {quads,            O,       F | W | I8,  O,       always},
    {plainest,         O,       I16,         O,       always},  // the sums of `plain` are an array
    {dots,             O,       W,           F | W,   always},
    {image_tiles,      O,       O,           F,       tiles_are_best},
    {gemms,            O,       O,           F,       always},
    {gemms,            O,       W,           W,       many_products},
    {gemms,            Q,       O,           Q,       always},
    {image_tiles,      O,       O,           F,       always},
    {wide,             F | W,   O,           O,       wide_registers},
    {plain,            F|W|Q,   F|W|Q,       F|W|Q,   always},
    {wide,             F | W,   O,           O,       always},
    {dots,             W,       O,           O,       always},
    {gemms,            F | W,   F|W|Q,       W,       always},
    {image_tiles,      F,       O,           O,       always, 1},
    {dots,             F,       O,           O,       always},
    {quads,            F|W|Q,   O,           F|W|Q,   always},
    {winograd,         F,       F,           F,       always},
    {winograd_quads,   F,       F,           F,       always},
    {tensor_gemm,      F,       F,           F,       always},
    {tensor_halo,      F,       F,           F,       always},
    {tensor_pairs,     F | I8,  F | I8,      F | I8,  always},
    {half_gemms,       F,       F,           F,       always},
    {plainest,         F|W|Q|H, F|W|Q|H,     F|W|Q|H, always},
};
// clang-format on

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Convolution conv(node, device);
  const unsigned numbers = numbers_of(conv);
  Case found(conv);
  Candidates result;
  for (const Row& row : kOrder) {
    const unsigned offered = device.is_cpu() ? row.cpu : device.is_mobile() ? row.mobile : row.gpu;
    if ((offered & numbers) != 0 && row.where(found)) found.append(row.engine, row.most, result);
  }
  return result;
}

double flops(const NodeContext& node) {
  const ir::Shape& weights = node.input(kWeights).shape;
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * weights.elements(1, 4));
}

const IntegerForm kIntegers{{0}, false, clamping_problem};

}  // namespace

const Family kConv2dFamily = [] {
  Family family;
  family.name = "conv2d";
  family.attrs = ir::attrs_type<ConvAttrs>();
  family.has_epilogue = true;
  family.residual = kResidual;
  family.slopes = kSlopes;
  family.writes_slices = true;
  family.builtins = {{kConv2d, "CONV_2D", 2, 1}};
  family.core = true;
  family.import = import_convolution<tfl::ConvParams, /*channel_axis=*/0>;
  family.types = {"DST_T"};
  family.infer = infer;
  family.half_sums = true;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.narrow = kWeights;
  family.rows = &kConvRows;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.bias = kBias;
  family.weights.out_axis = 0;
  family.weights.in_axis = 3;
  family.weights.divisible = true;
  family.weights.stock_needs_bias = true;
  family.work_kind = WorkKind::kProduct;
  return family;
}();

}  // namespace clgpu::ops
