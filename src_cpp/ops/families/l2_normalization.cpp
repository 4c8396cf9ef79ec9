// Family of L2_NORMALIZATION, over the last axis.
#include "ops/families/l2_normalization.hpp"

#include "ops/quantized/quantized.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kL2Normalization = 11;
constexpr int kWeight = 1;  // input

std::optional<Refusal> check_quantized(const tfl::NodeView& node, const ir::Epilogue& epilogue) {
  const tfl::TensorView src = node.input(0), dst = node.output(0);
  if (auto refusal = check_type(dst, "output", {src.dtype()})) return refusal;
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const int zero = dst.dtype() == DType::kI8 ? 0 : 128;
  if (dst.scale() != 1.0F / 128 || dst.zero_point() != zero) {
    return wrong_scale(dst, "output", "1/128", zero);
  }
  if (!epilogue.empty())
    return Refusal{Why::kActivation, "its fused activation", "is not defined on integers"};
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI8, DType::kU8);
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  const auto* params = node.params<tfl::ActivationParams>();
  const auto epilogue = fused_activation(params == nullptr ? 0 : params->activation);
  if (!epilogue) return epilogue.refusal();
  if (node.input(0).dtype() != DType::kF32) {
    if (auto refusal = check_quantized(node, *epilogue)) return *refusal;
  }
  return Imported{std::make_shared<const ir::Attrs>(), *epilogue};
}

// A launch that has src and dst, in each way to share rows.
std::vector<kernel::Candidate> shared(const kernel::Launch& of_rows, const NodeContext& node,
                                      const DeviceInfo& device) {
  const ir::Shape& src = node.input(0).shape;
  const std::int64_t rows = src.elements() / src.back(0);
  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(rows, src.back(0), /*adjacent=*/true, device)) {
    kernel::Launch launch = of_rows;
    launch.macro("ROWS", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WG", static_cast<std::int64_t>(sharing.items));
    launch.range({sharing.range(rows)}, {sharing.group()});
    list.push_back(kernel::of_form(sharing.form, {sharing.name, {launch}, {}}));
  }
  return list;
}

// Without a length it is the one of L2_NORMALIZATION.
std::vector<kernel::Candidate> floats(const NodeContext& node, const DeviceInfo& device,
                                      const RowLength* length) {
  const ir::Tensor& src = node.input(0);
  const bool weighted = node.has_input(kWeight);
  kernel::Launch launch("l2_normalization/l2_normalization.cl", "l2_normalization_rows");
  launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
  launch.macro("EPSILON", length != nullptr ? 1 : 0).macro("WEIGHT", weighted ? 1 : 0);
  set_epilogue(launch, node.epilogue());
  launch.src(0);
  if (weighted) launch.type("WEIGHT_T", node.input(kWeight).storage).src(kWeight);
  launch.dst(0).i32(src.shape.elements() / src.shape.back(0)).i32(src.shape.back(0));
  if (length != nullptr) launch.f32(length->divisor).f32(length->epsilon);
  return shared(launch, node, device);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Tensor& src = node.input(0);
  if (is_float(src.dtype)) return floats(node, device, nullptr);
  kernel::Launch launch("l2_normalization/quantized.cl", "l2_normalization_quantized");
  launch.type("SRC_T", src.storage).src(0).dst(0);
  launch.i32(src.shape.elements() / src.shape.back(0)).i32(src.shape.back(0));
  return shared(launch.i32(src.zero_point()), node, device);
}

// Sum of squares and a product.
double flops(const NodeContext& node) {
  return 3.0 * static_cast<double>(node.output(0).shape.elements());
}

}  // namespace

std::vector<kernel::Candidate> row_norm_candidates(const NodeContext& node,
                                                   const DeviceInfo& device,
                                                   const RowLength& length) {
  auto list = floats(node, device, &length);
  // An item reads and writes the same elements of a row.
  for (kernel::Candidate& candidate : list) candidate.in_place = {0};
  return list;
}

extern const Family kL2NormalizationFamily;
const Family kL2NormalizationFamily = [] {
  Family family;
  family.name = "l2_normalization";
  family.has_epilogue = true;
  family.builtins = {{kL2Normalization, "L2_NORMALIZATION"}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRowwise;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
