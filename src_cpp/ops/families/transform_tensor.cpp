// Family of MediaPipe's TransformTensorBilinear: the part of an image that a matrix selects.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"
#include "tfl/flexbuffer.hpp"

namespace clgpu::ops {
namespace {

/// A larger side is a damaged option.
constexpr std::int64_t kMostPixels = 1 << 15;

struct TransformTensorAttrs : ir::Attrs {
  int height = 1, width = 1;  ///< of the output
  bool centers = false;       ///< the matrix maps centres of pixels (version 2 of the operation)
  CLGPU_FIELDS(height, width, centers)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.input(1), "the matrix", DType::kF32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  const auto options =
      tfl::FlexMap::read(node.custom_data(), node.custom_bytes(), "its custom options");
  if (!options) return options.refusal();
  // Runtimes without the operation do not tell its version; the names of the options do.
  std::int64_t height = options->integer("output_height").value_or(0);
  std::int64_t width = options->integer("output_width").value_or(0);
  TransformTensorAttrs attrs;
  attrs.centers = !options->has("output_size");
  if (const auto* mode = options->find("mode"); mode != nullptr && !attrs.centers) {
    const auto* text = std::get_if<std::string>(mode);
    CLGPU_REFUSE_IF(text == nullptr || *text != "bilinear", Why::kParameter, "the option mode",
                    "is not bilinear");
  }
  if (!attrs.centers) {
    const auto* size = std::get_if<std::vector<std::int64_t>>(options->find("output_size"));
    CLGPU_REFUSE_IF(size == nullptr || size->size() != 2, Why::kParameter, "the option output_size",
                    "is not a height and a width");
    height = size->front();
    width = size->back();
  }
  for (const std::int64_t side : {height, width}) {
    if (side < 1 || side > kMostPixels)
      return wrong_value("a side of the output", side, "1 to " + std::to_string(kMostPixels));
  }
  attrs.height = static_cast<int>(height);
  attrs.width = static_cast<int>(width);
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<TransformTensorAttrs>();
  const ir::Shape &src = node.input(0).shape, &matrix = node.input(1).shape;
  if (src[0] != 1) throw ShapeError("the batch of the input is not 1");
  if (matrix.elements() != 16) throw ShapeError("the matrix " + matrix.str() + " is not 4 x 4");
  return {ir::Shape{1, attrs.height, attrs.width, src[3]}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<TransformTensorAttrs>();
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const int vec = src.shape[3] % 4 == 0 ? 4 : 1;
  const std::int64_t n = dst.shape.elements() / vec;
  kernel::Launch launch("transform_tensor/bilinear.cl", "transform_tensor_bilinear");
  launch.type("SRC_T", src.storage).type("MATRIX_T", node.input(1).storage);
  launch.type("DST_T", dst.storage).macro("VEC", vec).macro("CENTERS", attrs.centers ? 1 : 0);
  launch.src(0).src(1).dst(0).i32(n).i32(src.shape[3] / vec).i32(attrs.width);
  launch.i32(src.shape[1]).i32(src.shape[2]);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"bilinear", {launch}, {}}};
}

/// Three interpolations between two values.
double flops(const NodeContext& node) {
  return 9.0 * static_cast<double>(node.output(0).shape.elements());
}

}  // namespace

extern const Family kTransformTensorFamily;
const Family kTransformTensorFamily = [] {
  Family family;
  family.name = "transform_tensor";
  family.attrs = ir::attrs_type<TransformTensorAttrs>();
  family.customs = {{kTfLiteBuiltinCustom, "TransformTensorBilinear", 2},
                    {kTfLiteBuiltinCustom, "TransformTensor", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
