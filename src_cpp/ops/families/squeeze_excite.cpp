// Family of squeeze-and-excitation (Hu, Shen and Sun, "Squeeze-and-Excitation Networks", 2018); the
// pass fuse_squeeze_excite makes the nodes, the runtimes know no such operation.
#include "ops/families/squeeze_excite.hpp"

#include <algorithm>

#include "ir/fields.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/fully_connected_fused.hpp"
#include "ops/families/pool.hpp"
#include "ops/families/reduce.hpp"
#include "ops/products/conv_geometry.hpp"
#include "ops/shared/mobile.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {

extern const Family kAddFamily, kBinaryFamily, kFullyConnectedFamily, kPoolFamily, kReduceFamily;

namespace {

// Inputs. The image is the source of the mean if there is no other one.
constexpr int kSource = 0, kAddend = 1, kFirst = 2, kFirstBias = 3, kSecond = 4, kSecondBias = 5,
              kImage = 6, kResidual = 7;
constexpr int kPartial = 0;  // scratch

struct SqueezeExciteAttrs : ir::Attrs {
  ir::Activation hidden = ir::Activation::kNone;  ///< of the first product
  ir::Activation gate = ir::Activation::kNone;    ///< of the second one
  bool hard = false;  ///< in its place the hard sigmoid, relu6(x + 3) / 6
  CLGPU_FIELDS(hidden, gate, hard)
  static const char* words(std::string_view member) {
    if (member == "hard") return "";
    return "none, relu, relu_n1_to_1, relu6, tanh, sign_bit, sigmoid, relu_0_to_1, hard_swish, "
           "leaky_relu, elu, gelu, gelu_tanh, swish";
  }
};

struct Sizes {
  std::int64_t images, source_pixels, source_channels, hidden, channels, pixels;

  explicit Sizes(const NodeContext& node) {
    const ir::Shape& source = node.input(kSource).shape;
    const ir::Shape& image = node.input(node.has_input(kImage) ? kImage : kSource).shape;
    images = image[0];
    source_channels = source[3];
    source_pixels = source.elements() / images / source_channels;
    channels = image[3];
    pixels = image.elements() / images / channels;
    hidden = node.has_input(kFirst) ? node.input(kFirst).shape[0] : 0;
  }
  std::int64_t numbers() const { return source_channels + hidden + channels; }
  /// Multiply-adds for the gate of an image.
  std::int64_t products() const {
    return hidden == 0 ? source_channels * channels : hidden * (source_channels + channels);
  }
};

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& source = node.input(kSource).shape;
  const ir::Shape& image = node.input(node.has_input(kImage) ? kImage : kSource).shape;
  const auto check = [&](bool fits) {
    if (!fits) {
      throw ShapeError("images " + source.str() + " and " + image.str() +
                       " do not fit the weights of their gate");
    }
  };
  check(source.rank() == 4 && image.rank() == 4 && source[0] == image[0]);
  if (node.has_input(kAddend)) check(node.input(kAddend).shape == source);
  const int depth = node.has_input(kFirst) ? node.input(kFirst).shape[0] : source[3];
  if (node.has_input(kFirst)) check(node.input(kFirst).shape.back(0) == source[3]);
  check(node.input(kSecond).shape.back(0) == depth && node.input(kSecond).shape[0] == image[3]);
  check_residual_shape(node, image);
  return {image};
}

struct Tiling {
  std::int64_t items;   ///< of a work-group
  std::int64_t lanes;   ///< that share a sum of products
  std::int64_t width;   ///< channels that an item reads at once
  std::int64_t groups;  ///< that all images should have, at least
};

std::int64_t power_of_two(std::int64_t at_least) {
  std::int64_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}

/// The sums of chunks of pixels; returns the number of chunks.
kernel::Launch sums_of(const NodeContext& node, const Sizes& size, const Tiling& tiling,
                       std::int64_t& chunks) {
  constexpr std::int64_t kMostLanes = 32;
  const std::int64_t width = size.source_channels % tiling.width == 0 ? tiling.width
                             : size.source_channels % 4 == 0
                                 ? std::min<std::int64_t>(4, tiling.width)
                                 : 1;
  const std::int64_t vectors = ceil_div(size.source_channels, width);
  const std::int64_t lanes = std::min({kMostLanes, tiling.items, power_of_two(vectors)});
  const std::int64_t rows = tiling.items / lanes, tiles = ceil_div(vectors, lanes);
  // Each work-item adds several pixels.
  const std::int64_t wanted = std::max<std::int64_t>(1, tiling.groups / (size.images * tiles));
  const std::int64_t chunk = std::max(ceil_div(size.source_pixels, wanted), rows * 4);
  chunks = ceil_div(size.source_pixels, chunk);
  const bool adds = node.has_input(kAddend);
  kernel::Launch sums("squeeze_excite/sums.cl", "squeeze_excite_sums");
  sums.type("SRC_T", node.input(kSource).storage).type("SUM_T", DType::kF32);
  sums.macro("VW", width).macro("LANES", lanes).macro("ROWS", rows).macro("ADDEND", adds ? 1 : 0);
  sums.src(kSource);
  if (adds) sums.type("ADDEND_T", node.input(kAddend).storage).src(kAddend);
  sums.scratch_out(kPartial).i32(size.source_pixels).i32(size.source_channels);
  sums.i32(chunk).i32(chunks);
  sums.range({uz(chunks * lanes * rows), uz(tiles), uz(size.images)}, {uz(lanes * rows)});
  return sums;
}

kernel::Candidate tiled(const NodeContext& node, const char* name, const Tiling& tiling) {
  const auto& attrs = node.attrs<SqueezeExciteAttrs>();
  const Sizes size(node);
  std::int64_t chunks = 0;
  const kernel::Launch sums = sums_of(node, size, tiling, chunks);
  const int image = node.has_input(kImage) ? kImage : kSource;
  const std::int64_t tile =
      ceil_div(size.pixels, std::clamp<std::int64_t>(tiling.groups / size.images, 1, size.pixels));

  kernel::Launch excite("squeeze_excite/excite.cl", "squeeze_excite_excite");
  set_result_types(excite, node, -1);
  const auto input = [&](const char* type, int slot) {
    const bool exists = node.has_input(slot);
    excite.type(type, exists ? node.input(slot).storage : DType::kF32);
    return exists;
  };
  const bool two = input("FIRST_T", kFirst);
  const bool first_bias = input("FIRST_BIAS_T", kFirstBias);
  const bool second_bias = input("SECOND_BIAS_T", kSecondBias);
  input("SECOND_T", kSecond);
  input("IMAGE_T", image);
  excite.macro("PRODUCTS", two ? 2 : 1).macro("FIRST_BIAS", first_bias ? 1 : 0);
  excite.macro("SECOND_BIAS", second_bias ? 1 : 0);
  if (two) excite.macro("HIDDEN_ACT", static_cast<int>(attrs.hidden));
  excite.macro("GATE_ACT", static_cast<int>(attrs.gate)).macro("HARD", attrs.hard ? 1 : 0);
  excite.macro("WG", tiling.items).macro("LANES", tiling.lanes).macro("VW", tiling.width);
  // Few distinct numbers, since each is a program of its own.
  excite.macro("NUMBERS", power_of_two(size.numbers()));
  excite.scratch_in(kPartial);
  if (two) excite.src(kFirst);
  if (first_bias) excite.src(kFirstBias);
  excite.src(kSecond);
  if (second_bias) excite.src(kSecondBias);
  push_result(excite.src(image), node, -1).i32(chunks).i32(size.source_pixels);
  excite.i32(size.source_channels).i32(size.hidden).i32(size.channels);
  excite.i32(size.pixels).i32(tile);
  excite.range({uz(ceil_div(size.pixels, tile) * tiling.items), uz(size.images)},
               {uz(tiling.items)});

  // An item reads and writes the same elements, and the sums have been computed before.
  std::vector<int> in_place;
  for (const int slot : {image, kResidual}) {
    if (node.output(0).placement) break;
    if (node.has_input(slot) && node.input(slot).storage == node.output(0).storage)
      in_place.push_back(slot);
  }
  const std::int64_t of_float = static_cast<std::int64_t>(size_of(DType::kF32));
  return {name,
          {sums, excite},
          {{size.images * chunks * size.source_channels * of_float}},
          {},
          in_place};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Sizes size(node);
  const auto divides = [&](int width) {
    return size.channels % width == 0 && result_layout(node).aligned(width);
  };
  const std::int64_t units = device.compute_units;
  const std::int64_t width = divides(4) ? 4 : 1;
  const auto items = static_cast<std::int64_t>(group_of(device.is_mobile() ? 64 : 256, device));
  const std::int64_t lanes = std::min<std::int64_t>(8, items);
  // On a CPU a work-item computes all of a group, with vectors.
  const Tiling alone{1, 1, device.is_cpu() && divides(16) ? 16 : width, 2 * units};
  const Tiling shared{items, lanes, width, 2 * units};
  std::vector<kernel::Candidate> list{tiled(node, "shared", shared)};
  list.insert(device.is_cpu() ? list.begin() : list.end(), tiled(node, "alone", alone));
  list.push_back(kernel::of_form(kernel::Form::kReference, tiled(node, "naive", {1, 1, 1, units})));
  return list;
}

double flops(const NodeContext& node) {
  const Sizes size(node);
  return static_cast<double>(size.images *
                             (2 * size.products() + size.source_channels * size.source_pixels +
                              size.channels * size.pixels));
}

bool has(const ir::Node& node, int slot) {
  return uz(slot) < node.inputs.size() && node.inputs[uz(slot)] >= 0;
}

/// Whether kernels of a gate apply this activation.
bool knows(const ir::Epilogue& epilogue) {
  return epilogue.activation != ir::Activation::kLeakyRelu && !epilogue.residual_after;
}

}  // namespace

bool averages_pixels(const ir::Graph& graph, const ir::Node& node) {
  return node.epilogue.empty() && node.inputs[0] >= 0 &&
         graph.tensor(node.inputs[0]).dtype == DType::kF32 &&
         graph.tensor(node.inputs[0]).shape.rank() == 4 &&
         (averages_all_pixels(graph, node) || is_mean_of_pixels(graph, node, /*any_rank=*/true));
}

bool multiplies_pixels(const ir::Graph& graph, const ir::Node& node) {
  const bool convolves = node.kind == &kConv2dFamily;
  if (!convolves && !is_fully_connected(node)) return false;
  if (node.tail != nullptr || !knows(node.epilogue) || node.inputs.size() > 3) return false;
  const ir::Tensor& weights = graph.tensor(node.inputs[1]);
  if (!weights.is_constant() || weights.dtype != DType::kF32 ||
      graph.tensor(node.outputs[0]).dtype != DType::kF32)
    return false;
  if (has(node, 2) && !graph.tensor(node.inputs[2]).is_constant()) return false;
  const ir::Shape& shape = graph.tensor(node.inputs[0]).shape;
  if (!convolves) return shape.rank() > 0 && shape.back(0) == weights.shape[1];
  const auto& geometry = static_cast<const ConvAttrs&>(*node.attrs).geometry;
  return shape.rank() == 4 && shape[1] == 1 && shape[2] == 1 && shape[3] == weights.shape[3] &&
         weights.shape[1] == 1 && weights.shape[2] == 1 && geometry.extra_top == 0 &&
         geometry.extra_bottom == 0 && geometry.extra_left == 0 && geometry.extra_right == 0;
}

std::optional<ir::Node> squeeze_excite(const ir::Graph& graph, const GateParts& parts) {
  const ir::Node& product = *parts.product;
  const int source = parts.mean->inputs[0];
  const ir::Shape& from = graph.tensor(source).shape;
  const ir::Tensor& image = graph.tensor(parts.image);
  if (image.dtype != DType::kF32 || image.shape.rank() != 4 || image.shape[0] != from[0] ||
      graph.tensor(product.outputs[0]).shape != image.shape)
    return std::nullopt;
  const auto weights = [&](const ir::Node& node) { return graph.tensor(node.inputs[1]).shape; };
  const int depth = parts.first != nullptr ? weights(*parts.first)[0] : from[3];
  if (weights(*parts.second).back(0) != depth || weights(*parts.second)[0] != image.shape[3])
    return std::nullopt;
  if (parts.first != nullptr && weights(*parts.first).back(0) != from[3]) return std::nullopt;

  ir::Node node = product;
  node.kind = &kSqueezeExciteFamily;
  node.inputs.assign(kResidual, -1);
  node.inputs[kSource] = source;
  if (parts.addend != nullptr) {
    node.inputs[kSource] = parts.addend->inputs[0];
    node.inputs[kAddend] = parts.addend->inputs[1];
  }
  if (node.inputs[kSource] != parts.image) node.inputs[kImage] = parts.image;
  SqueezeExciteAttrs attrs;
  if (parts.first != nullptr) {
    attrs.hidden = parts.first->epilogue.activation;
    node.inputs[kFirst] = parts.first->inputs[1];
    if (has(*parts.first, 2)) node.inputs[kFirstBias] = parts.first->inputs[2];
  }
  attrs.gate = parts.second->epilogue.activation;
  attrs.hard = parts.hard;
  node.inputs[kSecond] = parts.second->inputs[1];
  if (has(*parts.second, 2)) node.inputs[kSecondBias] = parts.second->inputs[2];
  node.attrs = share(attrs);
  return node;
}

bool squeeze_excite_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device) {
  const Sizes size(NodeContext(graph, node));
  // Every work-group computes the gate of its image.
  constexpr std::int64_t kMostOfCpu = 1 << 18, kMostOfGpu = 1 << 16, kMostOfMobile = 1 << 14;
  const std::int64_t most = device.is_cpu()      ? kMostOfCpu
                            : device.is_mobile() ? kMostOfMobile
                                                 : kMostOfGpu;
  constexpr std::int64_t kOthers = 256;  // numbers in local memory besides
  const std::int64_t bytes = (power_of_two(size.numbers()) + kOthers) * 4;
  return size.products() <= most && bytes <= static_cast<std::int64_t>(device.local_bytes);
}

const Family kSqueezeExciteFamily = [] {
  Family family;
  family.name = "squeeze_excite";
  family.attrs = ir::attrs_type<SqueezeExciteAttrs>();
  family.has_epilogue = true;
  family.residual = kResidual;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.stock_passes = 2;
  family.fuses = {&kAddFamily,    &kBinaryFamily, &kConv2dFamily, &kFullyConnectedFamily,
                  &kReduceFamily, &kPoolFamily};
  return family;
}();

}  // namespace clgpu::ops
