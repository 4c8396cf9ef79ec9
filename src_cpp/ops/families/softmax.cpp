// Family of SOFTMAX and LOG_SOFTMAX, over the last axis.
#include "ops/families/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "ir/fields.hpp"
#include "ops/quantized/fixed_point.hpp"
#include "ops/quantized/interpolation.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSoftmax = 25, kLogSoftmax = 50;

struct SoftmaxAttrs : ir::Attrs {
  float beta = 1.0F;
  bool log = false;
  CLGPU_FIELDS(beta, log)
};

/// A difference of 1 between inputs of 8 bits, in Q5 (ops/quantized/fixed_point.hpp).
Multiplier step_of(float beta, float scale) {
  const double real = static_cast<double>(beta) * static_cast<double>(scale) * (1 << 26);
  return quantize_multiplier(std::min(real, 2147483647.0));
}

/// The largest difference that the reference kernel takes into account.
int reach_of(Multiplier step) {
  return static_cast<int>(31.0 * (1 << 26) / static_cast<double>(std::int64_t{1} << step.shift));
}

/// exp(beta * scale * -d) in Q0 for differences d of 8-bit inputs; 0 above that limit.
std::vector<std::int32_t> exponentials(Multiplier step) {
  std::vector<std::int32_t> table(256, 0);
  for (int d = 0; d < 256 && d <= reach_of(step); ++d)
    table[uz(d)] = exp_of_negative(rescaled(-d, step));
  return table;
}

std::optional<Refusal> check_quantized(const tfl::NodeView& node, const SoftmaxAttrs& attrs) {
  using T = DType;
  const tfl::TensorView src = node.input(0), dst = node.output(0);
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const bool wide = src.dtype() == T::kI16;
  if (wide && src.zero_point() != 0) return wrong_scale(src, "input", "any", 0);
  if (auto refusal = wide ? check_type(dst, "output", {T::kI16})
                          : check_type(dst, "output", {src.dtype(), T::kI16}))
    return refusal;
  const Multiplier step = step_of(attrs.beta, src.scale());
  if (!wide && (step.shift < 1 || attrs.beta <= 0.0F))
    return Refusal{attrs.log ? Why::kQuantization : Why::kAborts,
                   "beta times the scale of the input", "is 2^-26 or less"};
  const bool fixed = dst.dtype() == src.dtype() && dst.dtype() != T::kU8;
  const int zero = attrs.log ? 127 : dst.dtype() == T::kI8 ? -128 : 0;
  const int parts = attrs.log ? 16 : wide ? 32768 : 256;
  const float unit = 1.0F / static_cast<float>(parts);
  const float off = std::abs(dst.scale() - unit);
  if (fixed && (dst.zero_point() != zero || off > (attrs.log ? 0.0F : 0.001F * unit))) {
    return wrong_scale(dst, "output", "1/" + std::to_string(parts), zero);
  }
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  SoftmaxAttrs attrs;
  attrs.log = node.builtin() == kLogSoftmax;
  if (attrs.log) {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI8);
  } else {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
                      DType::kU8, DType::kI16);
  }
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  if (const auto* params = node.params<tfl::SoftmaxParams>(); params != nullptr && !attrs.log) {
    attrs.beta = params->beta;
  }
  if (!is_float(node.input(0).dtype())) {
    if (auto refusal = check_quantized(node, attrs)) return *refusal;
  }
  return Imported{share(attrs), {}};
}

/// Appends the arguments TABLES_PARAM of kernels/softmax/quantized.cl.
void push_tables(kernel::Candidate& candidate, kernel::Launch& launch, const SoftmaxAttrs& attrs,
                 const ir::Tensor& src) {
  if (src.dtype != DType::kI16) {
    const Multiplier step = step_of(attrs.beta, src.scale());
    candidate.scratch = {kernel::table(exponentials(step))};
    launch.scratch_in(0);
    if (!attrs.log) return;
    const auto inverse = quantize_multiplier(static_cast<double>(1LL << (31 - step.shift)) /
                                             static_cast<double>(step.value));
    launch.i32(step.value).i32(step.shift).i32(-reach_of(step));
    launch.i32(inverse.value).i32(inverse.shift);
    return;
  }
  // exp from -10 to 0, 1 / (1 + x) from 0 to 1, both stored with a range of -1 to 1
  const auto exp = [](double x) { return std::exp(x); };
  const auto inverse = [](double x) { return 1.0 / (1.0 + x); };
  constexpr double kRange = 65535.0;
  candidate.scratch = {
      kernel::table(interpolation_table<double>(10.0 / kRange, 32767, 2.0 / kRange, 0, exp)),
      kernel::table(interpolation_table<double>(1.0 / kRange, -32768, 2.0 / kRange, 0, inverse))};
  const Multiplier m =
      quantize_multiplier(static_cast<double>(src.scale() * attrs.beta) / (10.0 / kRange));
  launch.scratch_in(0).scratch_in(1).i32(m.value).i32(m.shift);
}

kernel::Candidate quantized(const NodeContext& node, const Sharing& sharing) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const int cols = src.shape.back(0);
  const std::int64_t rows = src.shape.elements() / cols;
  kernel::Candidate candidate{sharing.name, {}, {}};
  candidate.form = sharing.form;
  kernel::Launch launch("softmax/quantized.cl", "softmax_quantized_rows");
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.macro("ROWS", static_cast<std::int64_t>(sharing.outputs));
  launch.macro("WG", static_cast<std::int64_t>(sharing.items));
  const auto& attrs = node.attrs<SoftmaxAttrs>();
  launch.macro("WIDE", src.dtype == DType::kI16 ? 1 : 0).macro("LOG", attrs.log ? 1 : 0);
  push_tables(candidate, launch.src(0).dst(0), attrs, src);
  const IntRange range = range_of(dst.dtype);
  launch.i32(rows).i32(cols).i32(range.low).i32(range.high);
  launch.range({sharing.range(rows)}, {sharing.group()});
  candidate.launches.push_back(launch);
  if (src.storage_bytes() == dst.storage_bytes()) candidate.in_place = {0};
  return candidate;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<SoftmaxAttrs>();
  const ir::Tensor& src = node.input(0);
  const int cols = src.shape.back(0);
  const std::int64_t rows = src.shape.elements() / cols;
  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(rows, cols, /*adjacent=*/true, device)) {
    if (!is_float(src.dtype)) {
      list.push_back(quantized(node, sharing));
      continue;
    }
    kernel::Launch launch("softmax/softmax.cl", "softmax_rows");
    launch.slim = true;
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("ROWS", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WG", static_cast<std::int64_t>(sharing.items)).macro("LOG", attrs.log ? 1 : 0);
    launch.src(0).dst(0).i32(rows).i32(cols).f32(attrs.beta);
    launch.range({sharing.range(rows)}, {sharing.group()});
    list.push_back(kernel::of_form(sharing.form, {sharing.name, {launch}, {}}));
    list.back().in_place = {0};  // an item reads and writes the same elements of a row
  }
  return list;
}

// Maximum, difference, exponential, sum, quotient.
double flops(const NodeContext& node) {
  return 5.0 * static_cast<double>(node.output(0).shape.elements());
}

std::string adapt(const ir::Graph& graph, ir::Node& node) {
  const auto& attrs = static_cast<const SoftmaxAttrs&>(*node.attrs);
  const ir::Tensor &src = graph.tensor(node.inputs[0]), &dst = graph.tensor(node.outputs[0]);
  if (attrs.log) return "LOG_SOFTMAX has no form of int8 here";
  if (attrs.beta <= 0.0F || step_of(attrs.beta, src.scale()).shift < 1)
    return "beta times the scale of the input is 2^-26 or less";
  if (dst.scale() != 1.0F / 256 || dst.zero_point() != -128)
    return "the output's scale and zero point have to be 1/256 and -128";
  return {};
}

const IntegerForm kIntegers{{0}, false, adapt};

}  // namespace

extern const Family kSoftmaxFamily;
const Family kSoftmaxFamily = [] {
  Family family;
  family.name = "softmax";
  family.attrs = ir::attrs_type<SoftmaxAttrs>();
  family.builtins = {{kSoftmax, "SOFTMAX"}, {kLogSoftmax, "LOG_SOFTMAX"}};
  family.import = import;
  family.types = {"DST_T", {"SRC_T"}};
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.int16_zero_points = true;
  family.rows = &kRowwise;
  family.flops = flops;
  return family;
}();

std::optional<float> softmax_factor(const ir::Node& node) {
  if (node.kind != &kSoftmaxFamily) return std::nullopt;
  const auto& attrs = static_cast<const SoftmaxAttrs&>(*node.attrs);
  return attrs.log ? std::nullopt : std::optional(attrs.beta);
}

}  // namespace clgpu::ops
