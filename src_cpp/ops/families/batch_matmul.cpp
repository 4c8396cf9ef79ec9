// Family of BATCH_MATMUL: products of matrices in the last two axes, the others broadcast.
#include "ops/families/batch_matmul.hpp"

#include <algorithm>
#include <utility>

#include "ops/products/half_sums.hpp"
#include "ops/products/matmul.hpp"
#include "ops/products/tensor_gemm.hpp"
#include "ops/shared/mobile.hpp"

namespace clgpu::ops {
namespace {

constexpr int kBatchMatmul = 126;
constexpr int kX = 0, kY = 1;
constexpr int kBatchAxes = 4;  // a tensor has at most 6 axes
constexpr bool kFloatProduct = true;

/// Axis of y that the columns of the result have.
int column_axis(int rank, bool adj_y) { return rank - (adj_y ? 2 : 1); }

/// Refuses unless the reference kernels have integer arithmetic for the operands: int8 by int8 to
/// int8, or to their sums in int32; int16 by int16 or int8 to int16. With a scale for each column
/// of y, columns are computed as the reference kernels compute a product with that scale.
std::optional<Refusal> check_quantized(const tfl::NodeView& node, bool adj_y) {
  const tfl::TensorView x = node.input(kX), y = node.input(kY), dst = node.output(0);
  if (auto refusal = check_type(x, "x", {DType::kI8, DType::kI16})) return refusal;
  const bool wide = x.dtype() == DType::kI16;
  if (wide) {
    if (auto refusal = check_type(y, "y", {DType::kI16, DType::kI8})) return refusal;
    if (auto refusal = check_type(dst, "output", {DType::kI16})) return refusal;
  } else {
    if (auto refusal = check_type(y, "y", {DType::kI8})) return refusal;
    if (auto refusal = check_type(dst, "output", {DType::kI8, DType::kI32})) return refusal;
  }
  if (auto refusal = check_per_tensor(x, "x")) return refusal;
  const auto scales = tfl::quantization_of(y);
  if (scales == nullptr || dst.dtype() == DType::kI32) {
    if (auto refusal = check_per_tensor(y, "y")) return refusal;
  } else if (const int axis = column_axis(y.rank(), adj_y);
             scales->per_axis() && scales->axis != axis) {
    return Refusal{Why::kQuantization,
                   "y",
                   {},
                   "scales along axis " + std::to_string(scales->axis),
                   {"axis " + std::to_string(axis) + ", that of the columns"}};
  }
  const bool shifted = std::any_of(scales->zero_points.begin(), scales->zero_points.end(),
                                   [](std::int32_t zero) { return zero != 0; });
  if (shifted && (wide || scales->per_axis()))
    return Refusal{Why::kQuantization, "y", "has a zero point other than 0"};
  return dst.dtype() == DType::kI32 ? std::nullopt : check_per_tensor(dst, "output");
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::BatchMatMulParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const bool quantized = node.input(kX).is_quantized() || node.output(0).is_quantized();
  const bool int8_weights = !quantized && node.input(kY).is_quantized();
  if (quantized) {
    if (auto refusal = check_quantized(node, params->adj_y)) return *refusal;
  } else if (int8_weights) {
    const int axis = column_axis(node.input(kY).rank(), params->adj_y);
    if (auto refusal = check_dynamic_range(node, {kX, kY, -1, axis})) return *refusal;
  }
  for (const int i : {kX, kY}) {
    const std::string what = i == kX ? "x" : "y";
    if (!quantized && !int8_weights) CLGPU_REFUSE_TYPE(node.input(i), what, DType::kF32);
    CLGPU_REFUSE_RANK(node.input(i), what, 2);
  }
  if (!quantized) CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  BatchMatmulAttrs attrs;
  attrs.adj_x = params->adj_x;
  attrs.adj_y = params->adj_y;
  attrs.asymmetric = params->asymmetric_quantize_inputs;
  attrs.depth = node.input(kY).dim(node.input(kY).rank() - (params->adj_y ? 1 : 2));
  // Otherwise a row of x is not a row of the result, or y has no sums of columns.
  attrs.allows_hybrid = !params->adj_x && node.input(kY).rank() == 2;
  return Imported{share(attrs), {}};
}

/// The axes before those of the matrix.
ir::Shape batch_shape(const ir::Shape& shape) {
  return ir::Shape(std::vector<int>(shape.dims().begin(), shape.dims().end() - 2));
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<BatchMatmulAttrs>();
  const ir::Shape &x = node.input(kX).shape, &y = node.input(kY).shape;
  if (x.back(attrs.adj_x ? 1 : 0) != y.back(attrs.adj_y ? 0 : 1)) {
    throw ShapeError("x " + x.str() + (attrs.adj_x ? " (transposed)" : "") + " and y " + y.str() +
                     (attrs.adj_y ? " (transposed)" : "") + " differ in the axis summed over");
  }
  const auto& scales = node.input(kY).quantization;
  const int columns = y.back(attrs.adj_y ? 1 : 0);
  if (scales != nullptr && scales->per_axis() && scales->block == 0 &&
      scales->scales.size() != uz(columns))
    throw ShapeError("y " + y.str() + " has " + std::to_string(scales->scales.size()) +
                     " scales for its columns");
  std::vector<int> dims = broadcast(batch_shape(x), batch_shape(y)).dims();
  dims.push_back(x.back(attrs.adj_x ? 0 : 1));
  dims.push_back(y.back(attrs.adj_y ? 1 : 0));
  return {ir::Shape(dims)};
}

bool quantized(const NodeContext& node) { return node.output(0).dtype != DType::kF32; }

/// A candidate with one launch that lacks only tile and adjoint macros and range. `words`: its
/// kernel multiplies words of int8, and sums rows and columns if there are zero points.
kernel::Candidate make_candidate(const NodeContext& node, const Products& size,
                                 const std::string& name, const char* file, const char* entry,
                                 bool words = false) {
  kernel::Launch launch(file, entry);
  const ir::Tensor &x = node.input(kX), &y = node.input(kY), &dst = node.output(0);
  const bool sums = dst.dtype == DType::kI32;  // of stored integers
  set_weights_type(launch.type("X_T", x.storage), "Y_T", node, y.storage);
  set_result_types(launch, node, /*bias=*/-1,
                   sums ? Requantization::kSums : Requantization::kShifts);
  launch.src(kX).src(kY);
  kernel::Candidate candidate{name, {}, {}};
  if (quantized(node) && !sums) {
    std::vector<Multiplier> multipliers;
    for (std::int64_t c = 0; c < (y.quantization->per_axis() ? size.cols : 1); ++c)
      multipliers.push_back(quantize_multiplier(product_scale(x, y, c, dst, kFloatProduct)));
    const std::int64_t start = words ? size.depth * x.zero_point() * y.zero_point() : 0;
    candidate.scratch.push_back(
        constant_channels(multipliers, size.cols, static_cast<std::int32_t>(start)));
    push_channels(launch, node, 0, size.cols);
  }
  if (is_hybrid(node)) {
    const bool adjoint = node.attrs<BatchMatmulAttrs>().adj_y;
    const ChannelTable table = channel_table(
        node, {kX, kY, /*bias=*/-1, 0},
        {size.cols, size.depth, adjoint ? size.depth : 1, adjoint ? 1 : size.cols}, 0);
    candidate.launches.push_back(table.launch);
    candidate.scratch = {table.scales, table.result};
    push_channels(launch, node, table);
    push_result(launch, result_layout(node));
  } else {
    push_result(launch, node, /*bias=*/-1);
  }
  launch.i32(size.rows).i32(size.cols).i32(size.depth);

  std::vector<int> dims = batch_shape(node.output(0).shape).dims();
  dims.insert(dims.begin(), uz(kBatchAxes) - dims.size(), 1);
  const ir::Shape batches(dims);
  for (int axis = 1; axis < kBatchAxes; ++axis) launch.i32(batches[axis]);
  for (const int i : {kX, kY}) {
    for (const int stride : broadcast_strides(batch_shape(node.input(i).shape), batches)) {
      launch.i32(stride);
    }
  }
  const bool zeros = quantized(node) && !sums && (x.zero_point() != 0 || y.zero_point() != 0);
  if (!words) launch.macro("ZEROS", zeros ? 1 : 0);
  for (const ir::Tensor* tensor : {&x, &y}) {
    if (zeros && (!words || tensor->zero_point() != 0)) launch.i32(tensor->zero_point());
  }
  candidate.launches.push_back(launch);
  return candidate;
}

/// Candidates on tensor cores; empty if x or the batches do not have the required layout.
std::vector<kernel::Candidate> tensor_candidates(const NodeContext& node, const DeviceInfo& device,
                                                 const Products& size) {
  const auto& attrs = node.attrs<BatchMatmulAttrs>();
  const ir::Shape x = batch_shape(node.input(kX).shape), y = batch_shape(node.input(kY).shape);
  const std::int64_t batches = size.count;
  if (attrs.adj_x) return {};
  TensorGemm product;
  if (y.elements() == 1 && x.elements() == batches) {
    product = TensorGemm::matmul({batches * size.rows, size.cols, size.depth, 1});
  } else if (y.elements() == batches && (x.elements() == batches || x.elements() == 1)) {
    product = TensorGemm::matmul(size);
    if (x.elements() == 1) product.src_group = 0;
  } else {
    return {};
  }
  product.src = kX, product.weights = kY, product.transposed = !attrs.adj_y;
  return tensor_gemms(node, device, product);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<BatchMatmulAttrs>();
  const ir::Shape& dst = node.output(0).shape;
  Products size{dst.back(1), dst.back(0), node.input(kX).shape.back(attrs.adj_x ? 1 : 0),
                batch_shape(dst).elements()};
  if (is_hybrid(node)) size.rows *= std::exchange(size.count, 1);  // of one matrix, y
  std::vector<kernel::Candidate> list;

  const auto add = [&](const std::string& name, const char* file, const char* entry,
                       bool words = false) -> kernel::Launch& {
    list.push_back(make_candidate(node, size, name, file, entry, words));
    return list.back().launches.back();
  };
  // Vectors of long cannot be requantised.
  if (device.is_cpu() && !attrs.adj_y && node.output(0).dtype != DType::kI16) {
    constexpr int kRows = 4, kVec = 16;
    auto& launch = add("strips", "batch_matmul/strips.cl", "batch_matmul_strips");
    launch.macro("ADJ_X", attrs.adj_x ? 1 : 0).macro("RM", kRows).macro("VEC", kVec);
    launch.range({uz(ceil_div(size.cols, kVec)), uz(ceil_div(size.rows, kRows)), uz(size.count)},
                 {1, 1, 1});
  }
  if (device.is_cpu() && attrs.adj_y && !attrs.adj_x) {
    auto& launch = add("dot", "batch_matmul/dot.cl", "batch_matmul_dot");
    set_dot_tile(launch, 4, 4, /*vec=*/16, size);
  }

  auto naive = make_candidate(node, size, "naive", "batch_matmul/naive.cl", "batch_matmul_naive");
  naive.form = kernel::Form::kReference;
  naive.launches.back()
      .macro("ADJ_X", attrs.adj_x ? 1 : 0)
      .macro("ADJ_Y", attrs.adj_y ? 1 : 0)
      .range({uz(size.rows) * uz(size.cols), 1, uz(size.count)}, {kElementwiseGroup, 1, 1});
  const bool int8 = quantized(node) && node.input(kX).dtype == DType::kI8;
  if (is_hybrid(node) || (quantized(node) && !int8)) {
    list.push_back(naive);
    return list;
  }
  const auto add_quads = [&] {
    auto& launch = add("quads", "batch_matmul/quads.cl", "batch_matmul_quads");
    launch.macro("ADJ_X", attrs.adj_x ? 1 : 0).macro("ADJ_Y", attrs.adj_y ? 1 : 0);
    set_mobile_range(launch, ceil_div(size.cols, 4), ceil_div(size.rows, 4), size.count, device);
    if (takes_half_sums(node, device)) list.insert(list.end() - 1, half_form(list.back()));
  };
  if (device.is_mobile()) add_quads();
  // Tiles of a few rows or columns would be mostly empty.
  const bool naive_first = !list.empty() || size.rows < 8 || size.cols < 8;
  if (naive_first) list.push_back(naive);
  // Matrices whose inner axis is the depth are read in vectors of 16.
  const auto vec = [&](int input, bool depth) {
    const int inner = node.input(input).shape.back(0);
    return int8 && depth && inner % 16 == 0 ? 2 : inner % 4 == 0 ? 1 : 0;
  };
  for (const GemmTile& tile : gemm_tiles(int8 ? in_words(size) : size, device)) {
    auto& launch = add("gemm_" + tile.name(), "batch_matmul/gemm.cl", "batch_matmul_gemm", int8);
    launch.macro("ADJ_X", attrs.adj_x ? 1 : 0).macro("ADJ_Y", attrs.adj_y ? 1 : 0);
    launch.macro("VEC_A", vec(kX, !attrs.adj_x)).macro("VEC_B", vec(kY, attrs.adj_y));
    set_tile(launch, tile, size.cols % 4 == 0, int8 ? TileArith::kInt8 : TileArith::kFloat, size);
    const bool sums = int8 && node.output(0).dtype != DType::kI32;
    if (int8) {
      set_words(launch, device, /*a_sums=*/sums && node.input(kY).zero_point() != 0);
      launch.macro("B_SUMS", sums && node.input(kX).zero_point() != 0 ? 1 : 0);
    }
  }
  if (!device.is_mobile()) add_quads();
  if (!naive_first) list.push_back(naive);
  if (int8 || has_int8_weights(node)) return list;
  const auto tensor = tensor_candidates(node, device, size);
  list.insert(naive_first ? list.end() : list.begin(), tensor.begin(), tensor.end());
  return list;
}

/// Their Prepare reads the one scale of y, which is 0 where there are several.
std::string stock_mistake(const NodeContext& node) {
  const ir::Tensor& y = node.input(kY);
  const bool several = quantized(node) && y.is_quantized() && y.quantization->per_axis();
  return several ? "multiply all sums by 0, as y has several scales," : "";
}

double flops(const NodeContext& node) {
  const int depth = node.input(kX).shape.back(node.attrs<BatchMatmulAttrs>().adj_x ? 1 : 0);
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * depth);
}

}  // namespace

extern const Family kBatchMatmulFamily;
const Family kBatchMatmulFamily = [] {
  Family family;
  family.name = "batch_matmul";
  family.attrs = ir::attrs_type<BatchMatmulAttrs>();
  family.has_epilogue = true;
  family.builtins = {{kBatchMatmul, "BATCH_MATMUL", 2, 0, 1, -1}};
  family.core = true;
  family.import = import;
  family.types = {"DST_T"};
  family.infer = infer;
  family.half_sums = true;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  family.stock_mistake = stock_mistake;
  family.weights.slot = kY;
  family.work_kind = WorkKind::kProduct;
  return family;
}();

std::optional<Adjoints> adjoints_of(const ir::Node& node) {
  if (node.kind != &kBatchMatmulFamily) return std::nullopt;
  const auto& attrs = static_cast<const BatchMatmulAttrs&>(*node.attrs);
  return Adjoints{attrs.adj_x, attrs.adj_y};
}

}  // namespace clgpu::ops
