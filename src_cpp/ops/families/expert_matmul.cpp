// Family of products with matrices that are chosen by index, in place. A family without an
// operation: passes::gather_experts makes its nodes of a GATHER of matrices and a BATCH_MATMUL,
// passes::group_experts of FULLY_CONNECTED nodes.
#include "ops/families/expert_matmul.hpp"

#include <algorithm>

#include "ops/families/batch_matmul.hpp"
#include "ops/families/fully_connected_fused.hpp"
#include "ops/families/gather.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kX = 0, kMatrices = 1, kIndices = 2;

OrRefusal<Imported> import(const tfl::NodeView&) {
  return Refusal{Why::kNoKernels, "", "no operation is imported"};
}

/// Each index has `rows` rows of x, and `share` neighbouring indices have the same ones.
struct Size {
  int rows = 1, cols = 1, depth = 1, experts = 1;
  std::int64_t indices = 1, share = 1;
  std::int64_t all_rows() const { return indices * rows; }
};

/// Throws ShapeError if x does not have matrices for all indices, or for all that have the same
/// leading positions.
Size size_of(const ir::Shape& x, const ir::Shape& matrices, const ir::Shape& indices,
             const ExpertMatmulAttrs& attrs) {
  Size size;
  size.rows = x.back(attrs.x_column ? 0 : 1);
  size.depth = x.back(attrs.x_column ? 1 : 0);
  size.experts = matrices[0];
  size.cols = matrices[attrs.transposed ? 2 : 1];
  size.indices = indices.elements();
  const std::string what =
      "x " + x.str() + ", matrices " + matrices.str() + " and indices " + indices.str();
  if (matrices[attrs.transposed ? 1 : 2] != size.depth)
    throw ShapeError(what + " differ in the axis summed over");
  if (attrs.column && size.rows != 1) throw ShapeError(what + ": x has more than one column");
  const int missing = indices.rank() + 2 - x.rank();
  if (missing < 0) throw ShapeError(what + ": x has too many axes");
  bool shared = missing > 0;
  for (int axis = 0; axis < indices.rank(); ++axis) {
    const int extent = axis < missing ? 1 : x[axis - missing];
    // Axes of x that are not those of the indices are 1, and all behind them.
    shared = shared || extent != indices[axis];
    if (shared && extent != 1) throw ShapeError(what + " have no common positions");
    if (shared) size.share *= indices[axis];
  }
  return size;
}

Size size_of(const NodeContext& node) {
  return size_of(node.input(kX).shape, node.input(kMatrices).shape, node.input(kIndices).shape,
                 node.attrs<ExpertMatmulAttrs>());
}

ir::Shapes infer(const NodeContext& node) {
  const Size size = size_of(node);
  std::vector<int> dims = node.input(kIndices).shape.dims();
  dims.push_back(size.rows);
  dims.push_back(size.cols);
  if (node.attrs<ExpertMatmulAttrs>().column) std::swap(dims[dims.size() - 2], dims.back());
  return {ir::Shape(dims)};
}

/// How a kernel finds the rows of an expert.
enum class Order {
  kByIndex,
  kByIndexEarly,  ///< it reads indices and matrices before OPERANDS_READY
  kSorted,        ///< what expert_matmul_sort has written
};

/// A launch with its types.
kernel::Launch product(const NodeContext& node, const Size& size, const char* file,
                       const char* entry, Order order) {
  const bool sorted = order == Order::kSorted, early = order == Order::kByIndexEarly;
  kernel::Launch launch(file, entry);
  launch.type("X_T", node.input(kX).storage).type("WEIGHTS_T", node.input(kMatrices).storage);
  launch.type("INDEX_T", node.input(kIndices).storage).type("DST_T", node.output(0).storage);
  launch.macro("SORTED", sorted ? 1 : 0);
  set_epilogue(launch, node.epilogue());
  launch.src(kX).src(kMatrices);
  if (early) launch.early();
  if (sorted) {
    launch.scratch_in(0).scratch_in(1);
  } else {
    launch.src(kIndices);
    if (early) launch.early();
  }
  launch.dst(0).i32(size.cols).i32(size.depth).i32(size.experts).i32(size.rows).i32(size.share);
  return launch;
}

/// Tiles of at most `height` rows of one expert.
std::int64_t most_tiles(const Size& size, int height) {
  return std::min<std::int64_t>(size.experts + 1, size.all_rows()) + size.all_rows() / height;
}

/// A candidate whose first launch sorts the rows by expert.
kernel::Candidate sorted(const NodeContext& node, const Size& size, const DeviceInfo& device,
                         int height, const std::string& name, const kernel::Launch& launch) {
  constexpr std::size_t kItems = 128;
  const std::size_t items = device.is_cpu() ? 1 : std::min(kItems, device.max_work_group_size);
  kernel::Launch sort("expert_matmul/sort.cl", "expert_matmul_sort");
  sort.type("INDEX_T", node.input(kIndices).storage).macro("EXPERTS", size.experts);
  sort.macro("WG", static_cast<std::int64_t>(items)).macro("HEIGHT", height);
  sort.src(kIndices).scratch_out(0).scratch_out(1);
  sort.i32(size.all_rows()).i32(size.rows).i32(most_tiles(size, height));
  sort.range({items}, {items});
  constexpr auto kInt = static_cast<std::int64_t>(sizeof(std::int32_t));
  return {name, {sort, launch}, {{size.all_rows() * kInt}, {3 * most_tiles(size, height) * kInt}}};
}

/// Tiles in registers; without sorting, of one row.
kernel::Candidate tiles(const NodeContext& node, const Size& size, const DeviceInfo& device,
                        int height) {
  const bool transposed = node.attrs<ExpertMatmulAttrs>().transposed;
  const int vec = device.is_cpu() ? 16 : 4, cols = transposed ? vec : 4;
  const bool is_sorted = height > 1;
  kernel::Launch launch = product(node, size, "expert_matmul/tiles.cl", "expert_matmul_tiles",
                                  is_sorted ? Order::kSorted : Order::kByIndex);
  launch.macro("TRANSPOSED", transposed ? 1 : 0);
  launch.macro("RN", 4).macro("VW", vec).macro("SUM_T", "float");
  const std::int64_t along = is_sorted ? most_tiles(size, height) : size.all_rows();
  const std::size_t group = device.is_cpu() ? 1 : kElementwiseGroup;
  launch.range({uz(ceil_div(size.cols, cols)), uz(along)}, {group, 1});
  if (!is_sorted) return kernel::of_form(kernel::Form::kReference, {"rows", {launch}, {}});
  return sorted(node, size, device, height, "grouped_" + std::to_string(height), launch);
}

/// Work-items share a dot product: they read neighbouring parts of a row of a matrix.
kernel::Candidate shared_rows(const NodeContext& node, const Size& size) {
  constexpr int kLanes = 32, kRows = 4;
  kernel::Launch launch =
      product(node, size, "expert_matmul/shared.cl", "expert_matmul_shared", Order::kByIndex);
  launch.macro("LANES", kLanes).macro("ROWS", kRows);
  launch.macro("VW", size.depth % 4 == 0 ? 4 : 1).macro("SUM_T", "float");
  launch.range({uz(ceil_div(size.cols, kRows)) * kLanes * kRows, uz(size.all_rows())},
               {kLanes * kRows, 1});
  return {"shared", {launch}, {}};
}

/// The same, with a matrix that is read once for several rows of its expert.
kernel::Candidate rows_by_expert(const NodeContext& node, const Size& size) {
  constexpr int kLanes = 32, kCols = 4, kHeight = 4;
  std::int64_t most = 32;  // few distinct numbers, since each is a program of its own
  while (most < size.all_rows()) most *= 2;
  kernel::Launch launch =
      product(node, size, "expert_matmul/by_expert.cl", "expert_matmul_by_expert", Order::kByIndex);
  launch.macro("LANES", kLanes).macro("COLS", kCols).macro("HEIGHT", kHeight);
  launch.macro("MOST", most).macro("VW", size.depth % 4 == 0 ? 4 : 1).macro("SUM_T", "float");
  launch.i32(size.all_rows());
  launch.range({uz(ceil_div(size.cols, kCols)) * kLanes * kCols, uz(size.experts) + 1},
               {kLanes * kCols, 1});
  return {"by_expert", {launch}, {}};
}

/// Matrices as operands of NVIDIA's tensor cores, each read once for several rows of its expert;
/// none for other matrices and for many rows. Measured on an H200.
std::vector<kernel::Candidate> warps(const NodeContext& node, const Size& size,
                                     const DeviceInfo& device) {
  constexpr std::int64_t kStep = 64, kTileCols = 16, kWarps = 8, kAhead = 2, kWord = 32;
  constexpr std::int64_t kMostLocal = (48 << 10) - 256, kMostRows = 2 * kWord;
  const bool split = node.input(kX).storage == DType::kF32;
  const std::int64_t parts_of_row = split ? 2 : 1, rows = size.all_rows();
  if (!device.mma_f16 || node.attrs<ExpertMatmulAttrs>().transposed || rows == 0 ||
      rows > kMostRows || node.input(kMatrices).storage != DType::kF16 || size.depth % kStep != 0 ||
      !(split ? node.allows_half() : node.input(kX).storage == DType::kF16))
    return {};
  // With few rows, hardly two have the same expert. Work-groups of 16 warps then read the input
  // once for two tiles, and all of them run at once; with more rows, several share a compute unit.
  const bool few = 2 * rows <= size.experts;
  const std::int64_t tiles = few ? 2 : 1;
  const auto local_bytes = [&](std::int64_t height) {
    return height * parts_of_row *
           ((size.depth + 8) * 2 + tiles * kWarps * kTileCols * std::int64_t{sizeof(float)});
  };
  std::int64_t height = few ? 1 : 4;
  while (height > 1 && local_bytes(height) > kMostLocal) height /= 2;
  if (local_bytes(height) > kMostLocal) return {};
  kernel::Launch launch = product(node, size, "expert_matmul/warps_nvidia.cl",
                                  "expert_matmul_warps", Order::kByIndexEarly);
  launch.macro("WARPS", kWarps).macro("TILES", tiles).macro("AHEAD", kAhead);
  launch.macro("HEIGHT", height).macro("WORDS", ceil_div(rows, kWord));
  launch.macro("SPLIT", split ? 1 : 0).macro("DEPTH", size.depth).macro("MMA_TYPE", 0);
  launch.i32(rows);
  launch.slim = true;
  const std::int64_t items = tiles * kWarps * 32;
  launch.range({uz(ceil_div(size.cols, kTileCols * tiles) * items), uz(rows)}, {uz(items), 1});
  kernel::Candidate candidate{"warps", {launch}, {}};
  candidate.tensor_cores = true;
  candidate.makes_halves = split;
  return {candidate};
}

/// Tiles in local memory.
kernel::Candidate gemm(const NodeContext& node, const Size& size, const DeviceInfo& device,
                       int height) {
  constexpr int kCols = 64, kItems = 16;
  kernel::Launch launch =
      product(node, size, "expert_matmul/gemm.cl", "expert_matmul_gemm", Order::kSorted);
  launch.macro("TRANSPOSED", node.attrs<ExpertMatmulAttrs>().transposed ? 1 : 0);
  launch.macro("HEIGHT", height);
  launch.range({uz(ceil_div(size.cols, kCols)) * kItems, uz(most_tiles(size, height)) * kItems},
               {kItems, kItems});
  return sorted(node, size, device, height, "gemm_" + std::to_string(height), launch);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Size size = size_of(node);
  const std::int64_t rows = size.all_rows();
  const bool transposed = node.attrs<ExpertMatmulAttrs>().transposed;
  std::vector<kernel::Candidate> alone = {tiles(node, size, device, 1)};
  // A matrix is read once for all rows of a tile: it stays in the cache meanwhile.
  std::vector<kernel::Candidate> grouped = {tiles(node, size, device, 16)};
  const auto shared_at =
      device.is_cpu() ? alone.end() : alone.begin();  // dot products that work-items share
  if (!transposed) alone.insert(shared_at, shared_rows(node, size));
  const std::vector<kernel::Candidate> gemms = {gemm(node, size, device, 64),
                                                gemm(node, size, device, 32)};
  // Rows of the same expert share its matrix where several have it. A GPU reads it once more from
  // its cache sooner than it computes tiles that are mostly empty.
  const bool sorts = rows > 1 && rows >= (device.is_cpu() ? 1 : 4) * std::int64_t{size.experts};
  grouped.insert(device.is_cpu() ? grouped.end() : grouped.begin(), gemms.begin(), gemms.end());
  if (!device.is_cpu() && rows < 48 * std::int64_t{size.experts}) std::swap(grouped[0], grouped[1]);
  std::vector<kernel::Candidate>& first = sorts ? grouped : alone;
  const std::vector<kernel::Candidate>& second = sorts ? alone : grouped;
  first.insert(first.end(), second.begin(), second.end());
  // Each work-group looks through all indices.
  constexpr std::int64_t kMostRows = 1024;
  if (!transposed && rows <= kMostRows) {
    // Not the first choice before a GPU has shown what it gains; tuning compares the two.
    const bool may_pay = !device.is_cpu() && rows >= size.experts && rows <= 16LL * size.experts;
    first.insert(may_pay ? first.begin() + 1 : first.end(), rows_by_expert(node, size));
  }
  const std::vector<kernel::Candidate> fast = warps(node, size, device);
  first.insert(first.begin(), fast.begin(), fast.end());
  return first;
}

double flops(const NodeContext& node) {
  const Size size = size_of(node);
  return 2.0 * static_cast<double>(size.all_rows()) * size.cols * size.depth;
}

}  // namespace

extern const Family kFullyConnectedFamily;
const Family kExpertMatmulFamily = [] {
  Family family;
  family.name = "expert_matmul";
  family.attrs = ir::attrs_type<ExpertMatmulAttrs>();
  family.has_epilogue = true;
  family.core = true;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.work_kind = WorkKind::kProduct;
  family.fuses = {&kFullyConnectedFamily};
  return family;
}();

std::optional<ir::Node> expert_matmul(const ir::Graph& graph, const ir::Node& gather,
                                      const ir::Node& product, int slot) {
  const auto* chosen = dynamic_cast<const GatherAttrs*>(gather.attrs.get());
  const auto* matmul = dynamic_cast<const BatchMatmulAttrs*>(product.attrs.get());
  if (chosen == nullptr || matmul == nullptr || product.inputs.size() != 2) return std::nullopt;
  if (chosen->axis != 0 || chosen->batch_dims != 0 || chosen->table != 0) return std::nullopt;
  const int x = product.inputs[uz(1 - slot)];
  const ir::Tensor &matrices = graph.tensor(gather.inputs[0]), &rows = graph.tensor(x);
  const ir::Tensor& indices = graph.tensor(gather.inputs[1]);
  if (matrices.dtype != DType::kF32 || rows.dtype != DType::kF32) return std::nullopt;
  if (matrices.model_rank != 3 || indices.model_rank < 1 || indices.is_constant())
    return std::nullopt;
  ExpertMatmulAttrs attrs;
  attrs.x_column = slot == 0 && !matmul->adj_y;
  attrs.column = slot == 0;
  attrs.transposed = slot == 0 ? matmul->adj_x : !matmul->adj_y;
  if (slot == 1 && matmul->adj_x) return std::nullopt;
  try {
    size_of(rows.shape, matrices.shape, indices.shape, attrs);
  } catch (const ShapeError&) {
    return std::nullopt;
  }
  ir::Node node = product;
  node.kind = &kExpertMatmulFamily;
  node.attrs = share(attrs);
  node.inputs = {x, gather.inputs[0], gather.inputs[1]};
  return node;
}

bool is_expert_product(const ir::Graph& graph, const ir::Node& product) {
  if (!is_fully_connected(product) || product.tail != nullptr ||
      product.epilogue.activation == ir::Activation::kPrelu)
    return false;
  for (int slot = kMatrices + 1; slot < static_cast<int>(product.inputs.size()); ++slot) {
    if (product.inputs[uz(slot)] >= 0 && slot != product.kind->weights.bias) return false;
  }
  if (const int bias = ir::input_of(product, product.kind->weights.bias); bias >= 0) {
    const ir::Tensor& tensor = graph.tensor(bias);
    if (!tensor.is_constant() || tensor.dtype != DType::kF32 || tensor.is_quantized() ||
        tensor.shape.rank() != 1)
      return false;
  }
  const ir::Tensor &x = graph.tensor(product.inputs[kX]), &y = graph.tensor(product.outputs[0]);
  const ir::Tensor& matrix = graph.tensor(product.inputs[kMatrices]);
  return matrix.is_constant() && matrix.constant->dtype != DType::kBF16 &&
         matrix.dtype == DType::kF32 && !matrix.is_quantized() && matrix.shape.rank() == 2 &&
         x.dtype == DType::kF32 && y.dtype == DType::kF32 && x.shape.back(0) == matrix.shape[1] &&
         y.shape.back(0) == matrix.shape[0];
}

ir::Node expert_product(const ir::Node& product, int x, int matrices, int indices, int result) {
  ir::Node node = product;
  node.kind = &kExpertMatmulFamily;
  node.attrs = share(ExpertMatmulAttrs{});
  node.inputs = {x, matrices, indices};
  node.outputs = {result};
  node.predicate = -1;
  return node;
}

}  // namespace clgpu::ops
