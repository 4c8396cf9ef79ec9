// Family of LOCAL_RESPONSE_NORMALIZATION, across neighbouring channels.
#include "ops/families/local_response_normalization.hpp"

#include "ops/shared/common.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kLocalResponseNormalization = 13;
constexpr int kVector = 4;  // channels that pooled.cl reads at once

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  const auto* params = node.params<tfl::LrnParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  CLGPU_REFUSE_IF(params->radius < 0, Why::kParameter, "the radius", "is negative");
  LrnAttrs attrs;
  attrs.radius = params->radius;
  attrs.bias = params->bias;
  attrs.alpha = params->alpha;
  attrs.beta = params->beta;
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<LrnAttrs>();
  const ir::Tensor& src = node.input(0);
  // The runtime's reference kernel omits the neighbour at +radius. Its optimised kernel and
  // TensorFlow do not, and we follow them.
  kernel::Launch launch("local_response_normalization/local_response_normalization.cl",
                        "local_response_normalization_direct");
  launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
  set_epilogue(launch, node.epilogue());
  launch.src(0).dst(0).i32(src.shape.elements()).i32(src.shape.back(0)).i32(attrs.radius);
  launch.f32(attrs.bias).f32(attrs.alpha).f32(attrs.beta);
  launch.range({uz(src.shape.elements())}, {kElementwiseGroup});
  std::vector<kernel::Candidate> list = normalization_kernels(node, attrs, nullptr);
  const bool last = device.is_cpu() || device.is_mobile();  // not measured there
  list.insert(last ? list.begin() : list.end(),
              kernel::of_form(kernel::Form::kPlain, {"direct", {launch}, {}}));
  return list;
}

// A square and a sum for each neighbour; factor, power, quotient.
double flops(const NodeContext& node) {
  const int neighbours = 2 * node.attrs<LrnAttrs>().radius + 1;
  return static_cast<double>(node.output(0).shape.elements() * (2 * neighbours + 3));
}

}  // namespace

bool reads_vectors(const LrnAttrs& attrs, const ir::Shape& image) {
  constexpr int kMostRadius = kVector;
  return attrs.radius <= kMostRadius && image.rank() == 4 && image[3] % kVector == 0;
}

std::vector<kernel::Candidate> normalization_kernels(const NodeContext& node, const LrnAttrs& attrs,
                                                     const PoolAttrs* pooling) {
  constexpr float kRoots = 0.75F;
  const ir::Shape &src = node.input(0).shape, &dst = node.output(0).shape;
  if (!reads_vectors(attrs, src)) return {};
  kernel::Launch launch("local_response_normalization/pooled.cl",
                        "local_response_normalization_pooled");
  launch.type("SRC_T", node.input(0).storage).type("DST_T", node.output(0).storage);
  set_epilogue(launch, node.epilogue());
  launch.macro("RADIUS", attrs.radius).macro("ROOTS", attrs.beta == kRoots ? 1 : 0);
  launch.macro("QUANTIZED", 0).macro("KIND", pooling ? pooling->kind : PoolAttrs::kAverage);
  launch.macro("FILTER_H", pooling ? pooling->filter_h : 1);
  launch.macro("FILTER_W", pooling ? pooling->filter_w : 1);
  launch.macro("STRIDE_H", pooling ? pooling->stride_h : 1);
  launch.macro("STRIDE_W", pooling ? pooling->stride_w : 1);
  const bool edges = pooling && pooling->padding != kPaddingValid;
  const auto before = [&](int axis, int filter, int stride) {
    return edges ? window(pooling->padding, src[axis], filter, stride, 1).before : 0;
  };
  launch.macro("EDGES", edges ? 1 : 0);
  push_result(launch.src(0), result_layout(node));
  launch.i32(dst[0]).i32(src[1]).i32(src[2]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  launch.i32(pooling ? before(1, pooling->filter_h, pooling->stride_h) : 0);
  launch.i32(pooling ? before(2, pooling->filter_w, pooling->stride_w) : 0);
  launch.f32(attrs.bias).f32(attrs.alpha).f32(attrs.beta);
  launch.range({uz(dst.elements() / kVector)}, {kElementwiseGroup});
  return {{pooling ? "fused" : "vec4", {launch}, {}}};
}

const Family kLocalResponseNormalizationFamily = [] {
  Family family;
  family.name = "local_response_normalization";
  family.attrs = ir::attrs_type<LrnAttrs>();
  family.has_epilogue = true;
  family.builtins = {{kLocalResponseNormalization, "LOCAL_RESPONSE_NORMALIZATION"}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.rows = &kRowwise;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
