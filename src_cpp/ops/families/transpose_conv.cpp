// Family of TRANSPOSE_CONV and of MediaPipe's custom operation Convolution2DTransposeBias. More of
// it is in transpose_conv/.
#include <algorithm>
#include <cstring>

#include "ops/families/quantize_rows.hpp"
#include "ops/families/transpose_conv/transpose_conv.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

using namespace transpose_conv;

constexpr int kTransposeConv = 67;

OrRefusal<Imported> import_builtin(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::TransposeConvParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto shape = node.input(0).ints();
  CLGPU_REFUSE_IF(!shape, Why::kRunTime, "the output shape");
  CLGPU_REFUSE_IF(shape->size() != 4, Why::kParameter, "the output shape",
                  "does not have 4 elements");
  TransposeConvAttrs attrs;
  attrs.geometry.padding = params->padding;
  attrs.geometry.stride_h = params->stride_height;
  attrs.geometry.stride_w = params->stride_width;
  attrs.out_h = static_cast<int>((*shape)[1]);
  attrs.out_w = static_cast<int>((*shape)[2]);
  CLGPU_REFUSE_IF(attrs.out_h < 1 || attrs.out_w < 1, Why::kParameter, "the output shape",
                  "has a size below 1");
  if (auto refusal =
          check_convolution(node, {attrs.image, kWeights, attrs.bias, 0}, attrs.geometry)) {
    return *refusal;
  }
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  if (node.output(0).is_quantized()) {
    if (auto refusal = check_clamping(*epilogue)) return *refusal;
  }
  return Imported{share(attrs), *epilogue};
}

OrRefusal<Imported> import_custom(const tfl::NodeView& node) {
  std::int32_t fields[3];  // padding, stride_width, stride_height
  CLGPU_REFUSE_IF(node.custom_data() == nullptr || node.custom_bytes() < sizeof fields,
                  Why::kParameter, "the custom options", "are shorter than 12 bytes");
  std::memcpy(fields, node.custom_data(), sizeof fields);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  TransposeConvAttrs attrs;
  attrs.image = 0;
  attrs.bias = 2;
  attrs.geometry.padding = fields[0];
  attrs.geometry.stride_w = fields[1];
  attrs.geometry.stride_h = fields[2];
  if (auto refusal =
          check_convolution(node, {attrs.image, kWeights, attrs.bias, 0}, attrs.geometry)) {
    return *refusal;
  }
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  return node.custom_name() == nullptr ? import_builtin(node) : import_custom(node);
}

int custom_size(const ConvGeometry& geometry, int in, int filter, int stride) {
  return in * stride + (geometry.padding == kPaddingValid ? std::max(filter - stride, 0) : 0);
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const ir::Shape& src = node.input(attrs.image).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  if (weights[3] != src[3]) {
    throw ShapeError("weights " + weights.str() + " do not fit an image of " +
                     std::to_string(src[3]) + " channels");
  }
  check_bias_shape(node, attrs.bias, weights[0]);
  ir::Shape dst{src[0], attrs.out_h, attrs.out_w, weights[0]};
  if (attrs.out_h == 0) {
    dst[1] = custom_size(attrs.geometry, src[1], weights[1], attrs.geometry.stride_h);
    dst[2] = custom_size(attrs.geometry, src[2], weights[2], attrs.geometry.stride_w);
  }
  if (attrs.rows) dst[1] = attrs.rows->out;
  check_residual_shape(node, dst);
  return {dst};
}

kernel::Candidate naive(const NodeContext& node) {
  kernel::Candidate candidate{"naive", {}, {}};
  candidate.form = kernel::Form::kReference;
  kernel::Launch launch = make_launch(node, "transpose_conv/naive.cl", "transpose_conv_naive");
  set_weights_type(launch, "WEIGHTS_T", node, node.input(kWeights).storage).src(kWeights);
  const std::int64_t elements = node.output(0).shape.elements();
  add_result(candidate, launch, node);
  launch.i32(elements);
  push_geometry(launch, node);
  push_zeros(launch, node);
  launch.range({uz(elements)}, {kElementwiseGroup});
  candidate.launches.push_back(launch);
  return candidate;
}

kernel::Candidate direct(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  const int width = cpu ? cpu_vector(dst[3]) : 4;
  const int tile = cpu ? 6 : 4;  // pixels per work-item
  const int stride = attrs.geometry.stride_w;
  const std::int64_t blocks = ceil_div(ceil_div(dst[2], stride), tile) * stride;
  const std::int64_t group = cpu ? 1 : 8;
  const auto packed = pack_weights(node, kWeights, 1, width, node.input(attrs.image).storage);
  kernel::Candidate candidate{"direct", {packed.launch}, {packed.scratch}};
  candidate.form = kernel::Form::kPlain;

  kernel::Launch launch = make_launch(node, "transpose_conv/direct.cl", "transpose_conv_direct");
  set_weights_type(launch, "PACKED_T", node, packed.storage).macro("VW", width).macro("PX", tile);
  launch.macro("WG_C", group).macro("WG_X", group).scratch_in(0);
  add_result(candidate, launch, node);
  launch.i32(blocks).i32(packed.zeros_at);
  push_geometry(launch, node);
  push_zeros(launch, node);
  // On a CPU only a whole row is worth starting a work-item.
  launch.range({uz(packed.panels), cpu ? 1 : uz(blocks), uz(dst.elements(0, 2))},
               {uz(group), uz(group), 1});
  candidate.launches.push_back(launch);
  return candidate;
}

// Tiles of `pixels` x `channels`; input channels are read in vectors of 4.
kernel::Candidate gemm(const NodeContext& node, int pixels, int channels) {
  constexpr std::size_t kItems = 256;
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const auto& g = attrs.geometry;
  const ir::Shape& dst = node.output(0).shape;
  const auto packed = pack_weights(node, kWeights, 1, channels, node.input(attrs.image).storage);
  const std::int64_t phase_h = ceil_div(dst[1], g.stride_h);
  const std::int64_t phase_w = ceil_div(dst[2], g.stride_w);
  const std::int64_t phase_pixels = dst[0] * phase_h * phase_w;

  kernel::Launch launch = make_launch(node, "transpose_conv/gemm.cl", "transpose_conv_gemm");
  launch.type("PACKED_T", packed.storage).macro("TM", pixels).macro("TN", channels);
  push_result(launch.scratch_in(0), node, attrs.bias).i32(phase_pixels).i32(phase_h).i32(phase_w);
  push_geometry(launch, node);
  launch.range({uz(ceil_div(phase_pixels, pixels)) * kItems, uz(packed.panels),
                uz(std::int64_t{g.stride_h} * g.stride_w)},
               {kItems});
  const std::string name = "gemm_" + std::to_string(pixels) + "x" + std::to_string(channels);
  return {name, {packed.launch, launch}, {packed.scratch}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Shape& dst = node.output(0).shape;
  // Sums of 64 bits are computed one at a time.
  if (node.output(0).dtype == DType::kI16 || is_hybrid(node)) return {naive(node)};
  // With fewer channels than a vector has, most of its work would be wasted.
  if (dst[3] < 3) return {naive(node), direct(node, device)};
  std::vector<kernel::Candidate> result{direct(node, device)};
  const int in_c = node.input(node.attrs<TransposeConvAttrs>().image).shape[3];
  if (!quantized(node) && !has_int8_weights(node) && in_c % 4 == 0) {
    const bool tiles_first = !device.is_cpu() && dst[3] >= 16;
    const bool large = dst.elements(0, 3) * dst[3] >= 128LL * 64 * device.compute_units;
    result.insert(tiles_first ? result.begin() : result.end(), gemm(node, large ? 64 : 128, 64));
    result.insert(tiles_first ? result.begin() : result.end(), gemm(node, large ? 128 : 64, 64));
  }
  const auto named = quads(node, device);
  result.insert(device.is_mobile() ? result.begin() : result.end(), named.begin(), named.end());
  result.push_back(naive(node));
  return result;
}

int unit(const NodeContext&) { return 1; }

RowNeed need(const NodeContext& node, int input, RowRange rows) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  if (input == node.residual()) return {RowNeed::Kind::kExact, rows};
  if (input != attrs.image) return {};
  const int top = windows_of(node).h.before, stride = attrs.geometry.stride_h;
  const int filter = node.input(kWeights).shape[1];
  // A row may have no taps at all; the kernels start at the first one at or above it.
  const int above = floor_of(rows.first + top, stride);
  return {RowNeed::Kind::kRows,
          {std::min(ceil_of(rows.first + top - filter + 1, stride), above),
           floor_of(rows.end - 1 + top, stride) + 1}};
}

ir::AttrsPtr band_attrs(const NodeContext& node, const RowBand& band) {
  TransposeConvAttrs result = node.attrs<TransposeConvAttrs>();
  result.out_w = node.output(0).shape[2];
  const int skipped = band.inputs.at(uz(result.image)).first * result.geometry.stride_h;
  result.rows = Window{band.rows.count(), windows_of(node).h.before + band.rows.first - skipped};
  return share(result);
}

const RowRules kRows{unit, need, band_attrs};

// Each pixel of the result meets one of stride_h * stride_w weights of a filter.
double flops(const NodeContext& node) {
  const auto& geometry = node.attrs<TransposeConvAttrs>().geometry;
  const ir::Shape& weights = node.input(kWeights).shape;
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * weights.elements(1, 4)) /
         (geometry.stride_h * geometry.stride_w);
}

}  // namespace

extern const Family kTransposeConvFamily;
const Family kTransposeConvFamily = [] {
  Family family;
  family.name = "transpose_conv";
  family.attrs = ir::attrs_type<TransposeConvAttrs>();
  family.has_epilogue = true;
  family.residual = 4;
  family.slopes = 7;  // behind ops::kRowFactors
  family.writes_slices = true;
  family.builtins = {{kTransposeConv, "TRANSPOSE_CONV", 3, 1, 1, 2}};
  family.builtins[0].settings = {0};
  family.customs = {{kTfLiteBuiltinCustom, "Convolution2DTransposeBias", 3, 0, 1, -1}};
  family.core = true;
  family.import = import;
  family.types = {"DST_T"};
  family.infer = infer;
  family.half_sums = true;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRows;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.out_axis = 0;
  family.work_kind = WorkKind::kProduct;
  return family;
}();

int transposed_image(const ir::Node& node) {
  return static_cast<const TransposeConvAttrs&>(*node.attrs).image;
}

}  // namespace clgpu::ops
