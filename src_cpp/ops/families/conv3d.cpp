// Family of CONV_3D and CONV_3D_TRANSPOSE.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kConv3d = 132, kConv3dTranspose = 141;

/// Along depth, height and width.
struct VolumeAttrs : ir::Attrs {
  bool transposed = false;
  int padding = 1;
  std::vector<int> stride, dilation;
  std::vector<int> shape;  ///< of the result, if transposed
  CLGPU_FIELDS(transposed, padding, stride, dilation, shape)
  static const char* words(std::string_view member) {
    return member == "padding" ? ", SAME, VALID" : "";
  }
  int image() const { return transposed ? 2 : 0; }
  int bias() const { return transposed ? 3 : 2; }
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  VolumeAttrs attrs;
  attrs.transposed = node.builtin() == kConv3dTranspose;
  const tfl::TensorView image = node.input(attrs.image()), weights = node.input(1);
  CLGPU_REFUSE_TYPE(image, "input", DType::kF32);
  CLGPU_REFUSE_TYPE(weights, "weights", DType::kF32);
  CLGPU_REFUSE_RANK(image, "input", 5, 5);
  CLGPU_REFUSE_RANK(weights, "weights", 5, 5);
  if (node.has_input(attrs.bias())) {
    CLGPU_REFUSE_TYPE(node.input(attrs.bias()), "bias", DType::kF32);
    CLGPU_REFUSE_RANK(node.input(attrs.bias()), "bias", 1, 1);
  }
  const auto* params = node.params<tfl::Conv3dParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  if (params->padding != 1 && params->padding != 2)
    return wrong_value("the padding", params->padding, kPaddings);
  attrs.padding = params->padding;
  attrs.stride = {params->stride_depth, params->stride_height, params->stride_width};
  attrs.dilation = {params->dilation_depth, params->dilation_height, params->dilation_width};
  for (const auto* factors : {&attrs.stride, &attrs.dilation}) {
    for (const int factor : *factors) {
      CLGPU_REFUSE_IF(factor < 1, Why::kParameter, "a stride or dilation", "is below 1");
    }
  }
  if (attrs.transposed) {
    const auto shape = node.input(0).ints();
    CLGPU_REFUSE_IF(!shape, Why::kRunTime, "the output shape");
    CLGPU_REFUSE_IF(shape->size() != 5, Why::kParameter, "the output shape",
                    "does not have 5 elements");
    for (const std::int64_t size : *shape) {
      if (size < 1 || size > INT32_MAX)
        return wrong_value("a size of the output", size, "1 to 2147483647");
      attrs.shape.push_back(static_cast<int>(size));
    }
  }
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  return Imported{share(attrs), *epilogue};
}

/// Along one of the three axes; of a transposed convolution, from its result to its input.
Window window_along(const VolumeAttrs& attrs, const ir::Shape& whole, const ir::Shape& weights,
                    int axis) {
  const std::size_t at = uz(axis);
  return window(attrs.padding, whole[axis + 1], weights[axis], attrs.stride[at],
                attrs.dilation[at]);
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<VolumeAttrs>();
  const ir::Shape &src = node.input(attrs.image()).shape, &weights = node.input(1).shape;
  const ir::Shape dst =
      attrs.transposed ? ir::Shape(attrs.shape) : ir::Shape{src[0], 1, 1, 1, weights[4]};
  const bool has_bias = node.has_input(attrs.bias());
  if (src[4] != weights[attrs.transposed ? 4 : 3] ||
      (attrs.transposed && (dst[0] != src[0] || dst[4] != weights[3])) ||
      (has_bias && node.input(attrs.bias()).shape[0] != dst[4])) {
    throw ShapeError("input " + src.str() + ", weights " + weights.str() +
                     " and bias or output do not fit together");
  }
  const ir::Shape& whole = attrs.transposed ? dst : src;
  ir::Shape result = dst;
  for (int axis = 0; axis < 3; ++axis) {
    const int out = window_along(attrs, whole, weights, axis).out;
    if (out < 1) throw ShapeError("the weights " + weights.str() + " are larger than the input");
    if (attrs.transposed && out != src[axis + 1]) {
      throw ShapeError("the output " + dst.str() + " is not made from the input " + src.str());
    }
    if (!attrs.transposed) result[axis + 1] = out;
  }
  return {result};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<VolumeAttrs>();
  const ir::Tensor &src = node.input(attrs.image()), &weights = node.input(1);
  const ir::Tensor& dst = node.output(0);
  const bool has_bias = node.has_input(attrs.bias());
  kernel::Launch launch("conv3d/conv3d.cl", "conv3d_naive");
  launch.macro("TRANSPOSED", attrs.transposed ? 1 : 0).macro("HAS_BIAS", has_bias ? 1 : 0);
  launch.type("SRC_T", src.storage).type("WEIGHTS_T", weights.storage);
  launch.type("DST_T", dst.storage);
  set_epilogue(launch, node.epilogue());
  launch.src(attrs.image()).src(1);
  if (has_bias) launch.type("BIAS_T", node.input(attrs.bias()).storage).src(attrs.bias());
  launch.dst(0).i32(dst.shape.elements());
  for (int axis = 1; axis < 5; ++axis) launch.i32(src.shape[axis]);
  for (int axis = 1; axis < 5; ++axis) launch.i32(dst.shape[axis]);
  for (int axis = 0; axis < 3; ++axis) launch.i32(weights.shape[axis]);
  for (const int stride : attrs.stride) launch.i32(stride);
  for (const int dilation : attrs.dilation) launch.i32(dilation);
  const ir::Shape& whole = attrs.transposed ? dst.shape : src.shape;
  for (int axis = 0; axis < 3; ++axis)
    launch.i32(window_along(attrs, whole, weights.shape, axis).before);
  launch.range({uz(dst.shape.elements())}, {kElementwiseGroup});
  return {kernel::of_form(kernel::Form::kReference, {"naive", {launch}, {}})};
}

double flops(const NodeContext& node) {
  const auto& attrs = node.attrs<VolumeAttrs>();
  const ir::Shape& weights = node.input(1).shape;
  const ir::Shape& from = attrs.transposed ? node.input(2).shape : node.output(0).shape;
  const auto voxels = static_cast<double>(from.elements() / from.back(0));
  return 2 * voxels * static_cast<double>(weights.elements());
}

}  // namespace

extern const Family kConv3dFamily;
const Family kConv3dFamily = [] {
  Family family;
  family.name = "conv3d";
  family.attrs = ir::attrs_type<VolumeAttrs>();
  family.builtins = {{kConv3d, "CONV_3D", 2, 1},
                     {kConv3dTranspose, "CONV_3D_TRANSPOSE", 3, 1, 1, 2}};
  family.builtins[1].settings = {0};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.work_kind = WorkKind::kProduct;
  return family;
}();

}  // namespace clgpu::ops
