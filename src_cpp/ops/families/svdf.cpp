// Family of SVDF: a layer of filters that keep their last results.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSvdf = 27;
constexpr int kSrc = 0, kFeature = 1, kTime = 2, kBias = 3, kState = 4;  // inputs
constexpr int kDst = 0, kNewState = 1;                                   // outputs

struct SvdfAttrs : ir::Attrs {
  int rank = 1;
  ir::Activation activation = ir::Activation::kNone;
  CLGPU_FIELDS(rank, activation)
};

// int8 weights of floats are read as they are, and their scale is applied to the sums.
std::optional<Refusal> check_weights(const tfl::TensorView& weights, const std::string& what) {
  if (auto refusal = check_type(weights, what, {DType::kF32, DType::kI8})) return refusal;
  if (weights.dtype() == DType::kF32) return std::nullopt;
  if (!weights.has_data()) return Refusal{Why::kRunTime, what};
  if (auto refusal = check_per_tensor(weights, what)) return refusal;
  if (weights.zero_point() != 0) return wrong_scale(weights, what, "any", 0);
  return std::nullopt;
}

std::optional<Refusal> check_floats(const tfl::NodeView& node) {
  if (auto refusal = check_weights(node.input(kFeature), "weights of features")) return refusal;
  if (auto refusal = check_weights(node.input(kTime), "weights of time")) return refusal;
  if (auto refusal = check_type(node.input(kState), "state", {DType::kF32})) return refusal;
  if (!node.has_input(kBias)) return std::nullopt;
  return check_type(node.input(kBias), "bias", {DType::kF32});
}

std::optional<Refusal> check_integers(const tfl::NodeView& node, ir::Activation activation) {
  // State and weights of time are int16, or, in models for TensorFlow Lite Micro, int8.
  const DType type = node.input(kTime).dtype();
  if (auto refusal = check_type(node.input(kFeature), "weights of features", {DType::kI8}))
    return refusal;
  if (auto refusal = check_type(node.input(kTime), "weights of time", {DType::kI16, DType::kI8}))
    return refusal;
  if (auto refusal = check_type(node.input(kState), "state", {type})) return refusal;
  if (node.has_input(kBias)) {
    if (auto refusal = check_type(node.input(kBias), "bias", {DType::kI32})) return refusal;
  }
  for (const int slot : {kSrc, kFeature, kTime, kState}) {
    const tfl::TensorView tensor = node.input(slot);
    const std::string what = "input " + std::to_string(slot);
    if (auto refusal = check_per_tensor(tensor, what)) return refusal;
    const bool may_shift = slot == kSrc || (slot == kState && type == DType::kI8);
    if (!may_shift && tensor.zero_point() != 0) return wrong_scale(tensor, what, "any", 0);
  }
  if (auto refusal = check_per_tensor(node.output(kDst), "output 0")) return refusal;
  if (activation != ir::Activation::kRelu) {
    return Refusal{Why::kActivation,
                   "the fused activation",
                   {},
                   std::to_string(static_cast<int>(activation)),
                   {"1"}};
  }
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::SvdfParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  CLGPU_REFUSE_TYPE(node.input(kSrc), "input", DType::kF32, DType::kI8);
  CLGPU_REFUSE_RANK(node.input(kSrc), "input", 2, 2);
  CLGPU_REFUSE_RANK(node.input(kFeature), "weights of features", 2, 2);
  CLGPU_REFUSE_RANK(node.input(kTime), "weights of time", 2, 2);
  CLGPU_REFUSE_RANK(node.input(kState), "state", 2, 2);
  CLGPU_REFUSE_IF(!node.input(kState).raw().is_variable, Why::kParameter, "the state",
                  "is not a variable tensor");
  CLGPU_REFUSE_IF(params->rank < 1, Why::kParameter, "the rank", {}, std::to_string(params->rank),
                  {"1 and more"});
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  const bool integers = node.input(kSrc).dtype() == DType::kI8;
  if (auto refusal = integers ? check_integers(node, epilogue->activation) : check_floats(node))
    return *refusal;
  SvdfAttrs attrs;
  attrs.rank = params->rank;
  attrs.activation = epilogue->activation;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const int rank = node.attrs<SvdfAttrs>().rank;
  const ir::Shape &src = node.input(kSrc).shape, &feature = node.input(kFeature).shape;
  const ir::Shape &time = node.input(kTime).shape, &state = node.input(kState).shape;
  const int filters = feature[0], units = filters / rank;
  if (filters % rank != 0 || time[0] != filters || feature[1] != src[1] || state[0] != src[0] ||
      state[1] != time[1] * filters) {
    throw ShapeError("input " + src.str() + ", weights " + feature.str() + " and " + time.str() +
                     " and state " + state.str() + " of SVDF with rank " + std::to_string(rank) +
                     " do not fit together");
  }
  if (node.has_input(kBias) && node.input(kBias).shape.elements() != units) {
    throw ShapeError("bias " + node.input(kBias).shape.str() + " does not fit " +
                     std::to_string(units) + " units");
  }
  return {ir::Shape({src[0], units}), state};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<SvdfAttrs>();
  const ir::Tensor &src = node.input(kSrc), &feature = node.input(kFeature);
  const ir::Tensor &time = node.input(kTime), &state = node.input(kState), &dst = node.output(kDst);
  const bool integers = src.dtype == DType::kI8;
  const std::int64_t units = dst.shape[1];
  const auto set_weights = [&](kernel::Launch& launch, const char* macro,
                               const ir::Tensor& weights) {
    if (weights.is_quantized() && !integers) {
      launch.macro(macro, "weight8");
    } else {
      launch.type(macro, weights.storage);
    }
  };
  const auto make = [&](const char* name, std::size_t group) {
    kernel::Launch launch("svdf/svdf.cl", "svdf_step");
    launch.macro("INTEGER", integers ? 1 : 0).type("ACC_T", integers ? DType::kI32 : DType::kF32);
    launch.macro("WG", static_cast<std::int64_t>(group));
    launch.type("SRC_T", src.storage).type("STATE_T", state.storage).type("DST_T", dst.storage);
    set_weights(launch, "WF_T", feature);
    set_weights(launch, "WT_T", time);
    set_epilogue(launch, {attrs.activation});
    launch.macro("BIAS", node.has_input(kBias) ? 1 : 0);
    launch.type("BIAS_T", node.has_input(kBias) ? node.input(kBias).storage : DType::kF32);
    launch.src(kSrc).src(kFeature).src(kTime);
    if (node.has_input(kBias)) launch.src(kBias);
    launch.src(kState).dst(kNewState).dst(kDst);
    launch.i32(src.shape[1]).i32(time.shape[1]).i32(attrs.rank).i32(units);
    if (integers) {
      // The reference kernel divides in float.
      const Multiplier product = quantize_multiplier(src.scale() * feature.scale() / state.scale());
      const Multiplier result = quantize_multiplier(state.scale() * time.scale() / dst.scale());
      launch.i32(src.zero_point()).i32(state.zero_point()).i32(product.value).i32(product.shift);
      launch.i32(result.value).i32(result.shift).i32(dst.zero_point());
    } else {
      launch.f32(feature.is_quantized() ? feature.scale() : 1.0F);
      launch.f32(time.is_quantized() ? time.scale() : 1.0F);
    }
    launch.range({uz(units) * group, uz(src.shape[0])}, {group, 1});
    return kernel::Candidate{name, {launch}, {}};
  };
  auto naive = make("naive", 1);
  naive.form = kernel::Form::kReference;
  return {make("tree", group_of(device.is_cpu() ? 16 : 64, device)), naive};
}

/// Those of TensorFlow Lite and LiteRT read and write a state of int8 as one of int16.
std::string stock_mistake(const NodeContext& node) {
  return node.input(kState).dtype == DType::kI8 ? "write beyond the state of int8" : "";
}

double flops(const NodeContext& node) {
  const ir::Shape &feature = node.input(kFeature).shape, &time = node.input(kTime).shape;
  return 2.0 * node.input(kSrc).shape[0] *
         static_cast<double>(feature.elements() + time.elements());
}

}  // namespace

extern const Family kSvdfFamily;
const Family kSvdfFamily = [] {
  Family family;
  family.name = "svdf";
  family.attrs = ir::attrs_type<SvdfAttrs>();
  family.builtins = {{kSvdf, "SVDF", 3, 2, 1, 0, false, -1, {kState}}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.widens_weights = true;
  family.flops = flops;
  family.stock_mistake = stock_mistake;
  family.stock_overruns = true;
  return family;
}();

}  // namespace clgpu::ops
