// Family of FULLY_CONNECTED: rows of the flattened input times a weights matrix [cols, depth].
#include "ops/families/fully_connected.hpp"

#include <algorithm>
#include <utility>

#include "ir/fields.hpp"
#include "ops/families/quantize_rows.hpp"
#include "ops/families/transpose.hpp"
#include "ops/products/tensor_gemm.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

using namespace fully_connected;

constexpr int kFullyConnected = 9;

struct FullyConnectedAttrs : DynamicRangeAttrs {
  bool keep_num_dims = false;
  int ones = 0;  ///< axes of size 1 in front of a result whose axes are not kept
  CLGPU_FIELDS(asymmetric, allows_hybrid, depth, keep_num_dims, ones)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::FullyConnectedParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  CLGPU_REFUSE_IF(params->weights_format != 0, Why::kLayout, "the weights",
                  "are shuffled (SHUFFLED4x16INT8)");
  CLGPU_REFUSE_RANK(node.input(kWeights), "weights tensor", 2, 2);
  const bool quantized = node.input(kSrc).is_quantized() || node.output(0).is_quantized();
  if (quantized) {
    if (auto refusal = check_quantized_product(node, kProduct)) return *refusal;
  } else if (node.input(kWeights).is_quantized()) {
    if (auto refusal = check_dynamic_range(node, kProduct)) return *refusal;
  } else {
    CLGPU_REFUSE_TYPE(node.input(kSrc), "input", DType::kF32);
    CLGPU_REFUSE_TYPE(node.input(kWeights), "weights tensor", DType::kF32);
    if (node.has_input(kBias)) CLGPU_REFUSE_TYPE(node.input(kBias), "bias", DType::kF32);
  }
  if (params->keep_num_dims) CLGPU_REFUSE_RANK(node.input(kSrc), "input", 1);
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  if (quantized) {
    if (auto refusal = check_clamping(*epilogue)) return *refusal;
  }
  FullyConnectedAttrs attrs;
  attrs.keep_num_dims = params->keep_num_dims;
  attrs.asymmetric = params->asymmetric_quantize_inputs;
  attrs.depth = node.input(kWeights).dim(1);
  attrs.allows_hybrid = !node.input(kWeights).is_blockwise();
  return Imported{share(attrs), *epilogue};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(kSrc).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const int cols = weights[0], depth = weights[1];
  if (depth == 0 || src.elements() % depth != 0) {
    throw ShapeError("input " + src.str() + " is not made of rows of " + std::to_string(depth) +
                     " as weights " + weights.str() + " ask for");
  }
  if (node.has_input(kBias) && node.input(kBias).shape.elements() != cols) {
    throw ShapeError("bias " + node.input(kBias).shape.str() + " does not fit weights " +
                     weights.str());
  }
  const auto& attrs = node.attrs<FullyConnectedAttrs>();
  if (!attrs.keep_num_dims) {
    std::vector<int> dims(uz(attrs.ones), 1);
    dims.insert(dims.end(), {static_cast<int>(src.elements() / depth), cols});
    const ir::Shape flat(dims);
    check_residual_shape(node, flat);
    return {flat};
  }
  if (src.back(0) != depth) {
    throw ShapeError("the last axis of input " + src.str() + " is not the " +
                     std::to_string(depth) + " of weights " + weights.str());
  }
  ir::Shape dst = src;
  dst[dst.rank() - 1] = cols;
  check_residual_shape(node, dst);
  return {dst};
}

bool quantized(const NodeContext& node) { return node.output(0).is_quantized(); }

bool has_weights_zero(const NodeContext& node) {
  const ir::Tensor& weights = node.input(kWeights);
  return weights.is_quantized() && weights.zero_point() != 0;
}

/// How a kernel reads the weights.
struct WeightsForm {
  bool as_int8 = false;  ///< uint8 less 128
  bool packed = false;   ///< scratch buffer 0
  bool has_zero = true;  ///< it has the macro WEIGHTS_ZERO
  bool early = false;    ///< read before OPERANDS_READY
};

/// Appends a launch that lacks only tile macros and range, and the launches that must run before
/// it.
kernel::Launch& add_launch(kernel::Candidate& candidate, const NodeContext& node,
                           const Products& size, const char* file, const char* entry,
                           const WeightsForm& form = {}) {
  const auto [as_int8, packed, has_zero, early] = form;
  kernel::Launch launch(file, entry);
  const ir::Tensor& weights = node.input(kWeights);
  launch.type("SRC_T", node.input(kSrc).storage);
  if (!packed) set_weights_type(launch, "WEIGHTS_T", node, weights.storage);
  set_result_types(launch, node, kBias, Requantization::kReal);
  launch.src(kSrc);
  packed ? launch.scratch_in(0) : launch.src(kWeights);
  if (early) launch.early();
  const bool zero =
      quantized(node) && (as_int8 ? int8_zero_point(weights) : weights.zero_point()) != 0;
  if (quantized(node) || is_hybrid(node)) {
    const ChannelTable table =
        channel_table(node, kProduct, {size.cols, size.depth, size.depth, 1},
                      static_cast<int>(candidate.scratch.size()), Requantization::kReal, as_int8);
    candidate.launches.push_back(table.launch);
    candidate.scratch.insert(candidate.scratch.end(), {table.scales, table.result});
    push_channels(launch, node, table);
    push_result(launch, result_layout(node));
  } else {
    push_result(launch, node, kBias);
  }
  launch.i32(size.rows).i32(size.cols).i32(size.depth);
  if (zero) launch.i32(as_int8 ? int8_zero_point(weights) : weights.zero_point());
  if (has_zero) launch.macro("WEIGHTS_ZERO", zero ? 1 : 0);
  candidate.launches.push_back(launch);
  return candidate.launches.back();
}

kernel::Candidate naive(const NodeContext& node, const Products& size) {
  kernel::Candidate candidate{"naive", {}, {}};
  candidate.form = kernel::Form::kReference;
  add_launch(candidate, node, size, "fully_connected/naive.cl", "fully_connected_naive")
      .range({uz(size.rows) * uz(size.cols)}, {kElementwiseGroup});
  return candidate;
}

/// Rows for which a work-group reads a row of weights once.
std::int64_t rows_of_group(const Products& size) { return size.rows >= 3 ? 4 : size.rows; }

kernel::Candidate gemv(const NodeContext& node, const Products& size, const DeviceInfo& device) {
  kernel::Candidate candidate{"gemv", {}, {}};
  auto& launch =
      add_launch(candidate, node, size, "fully_connected/gemv.cl", "fully_connected_gemv");
  const std::size_t group = group_of(size.depth > 512 ? 128 : 32, device);
  // Each item finishes one row, and a few devices allow fewer items than four.
  const auto rows = std::min(rows_of_group(size), static_cast<std::int64_t>(group));
  launch.macro("WG", static_cast<std::int64_t>(group)).macro("ROWS", rows);
  launch.range({uz(size.cols) * group, uz(ceil_div(size.rows, rows))}, {group, 1});
  return candidate;
}

/// Elements of a row of weights whose 4 bits make a word.
constexpr std::int64_t kNibbles = 8;

/// Weights of int4 stay in 4 bits, those of int2 are widened to these: they are packed at load
/// time, to scratch buffer 0.
void add_packing(kernel::Candidate& candidate, const Products& size) {
  const std::int64_t words = ceil_div(size.depth, kNibbles);
  kernel::Launch pack("fully_connected/pack_nibbles.cl", "fully_connected_pack_nibbles");
  pack.src(kWeights).scratch_out(0).i32(size.cols).i32(size.depth).i32(words);
  pack.range({uz(size.cols) * uz(words)}, {kElementwiseGroup});
  candidate.launches.push_back(pack);
  candidate.scratch.push_back({size.cols * words * 4});
}

/// Elements that share a scale; 0: those of a row.
int block_of(const NodeContext& node) {
  const auto& quantization = node.input(kWeights).quantization;
  return quantization == nullptr ? 0 : quantization->block;
}

constexpr int kWarpsColumns = 16;  // of a work-group of warps_nvidia.cl: two runs
constexpr int kRun = kWarpsColumns / 2;

void set_blocks(kernel::Launch& launch, int block) {
  launch.macro("BLOCKS", block > 0 ? 1 : 0);
  if (block == 0) return;
  launch.i32(block);
  // The kernel scales the sum of each block instead of the whole sum.
  for (auto& [name, value] : launch.macros) {
    if (name == "SCALED") value = "0";
  }
}

kernel::Candidate nibbles(const NodeContext& node, const Products& size, const DeviceInfo& device) {
  kernel::Candidate candidate{"nibbles", {}, {}};
  add_packing(candidate, size);
  auto& launch = add_launch(candidate, node, size, "fully_connected/nibbles.cl",
                            "fully_connected_nibbles", {false, true, false});
  set_blocks(launch, block_of(node));
  const std::int64_t rows = rows_of_group(size);
  // A CPU reads eight elements at once with one item.
  const std::size_t group = device.is_cpu() ? 1 : group_of(size.depth > 2048 ? 128 : 32, device);
  launch.macro("WG", static_cast<std::int64_t>(group)).macro("ROWS", rows);
  launch.range({uz(size.cols) * group, uz(ceil_div(size.rows, rows))}, {group, 1});
  return candidate;
}

/// Packs weights for warps_nvidia.cl at load time, to the next scratch buffer; the runs of a
/// work-group begin `apart` columns from each other.
void add_warps_packing(kernel::Candidate& candidate, const NodeContext& node, int weights,
                       std::int64_t bits, int digits, const Products& size, int apart) {
  const int scratch = static_cast<int>(candidate.scratch.size());
  const std::int64_t words = round_up(size.cols, kWarpsColumns) * size.depth * bits / 32;
  kernel::Launch pack("fully_connected/pack_warps_nvidia.cl", "fully_connected_pack_warps");
  pack.type("SRC_T", node.input(weights).storage).macro("BITS", bits);
  pack.macro("DIGITS", digits);
  pack.src(weights).scratch_out(scratch).i32(words).i32(size.cols).i32(size.depth).i32(apart);
  pack.range({uz(words)}, {kElementwiseGroup});
  candidate.launches.push_back(pack);
  candidate.scratch.push_back({words * 4});
}

/// Tiles of a work-group of warps_nvidia.cl, warps of each, and the steps that each of them has
/// begun to read.
struct WarpsTile {
  std::int64_t tiles, warps, ahead;
};

/// Measured on an H200 with rows of 3072 and 8192 elements, in chains. More steps take registers,
/// of which a slim stage has 128; two matrices are two reads in each step, and int8 and half two
/// and four. Work-groups of 16 warps read and normalise the input once for all their tiles.
WarpsTile warps_tile(std::int64_t bits, const Products& size, const fully_connected::Fusion& fusion,
                     const DeviceInfo& device) {
  constexpr std::int64_t kDeep = 2048, kLongRow = 4096;
  const bool deep = size.depth >= kDeep;
  if (fusion.gated) return {deep ? 4 : 1, 4, bits == 4 ? 4 : bits == 8 ? 3 : 2};
  const std::int64_t ahead = bits == 16 ? 3 : bits == 4 && size.depth >= kLongRow ? 8 : 6;
  if (fusion.normed && deep) return {4, 4, ahead};
  const std::int64_t tiles = ceil_div(size.cols, kWarpsColumns);
  return {tiles > device.compute_units ? 2 : 1, 8, ahead};
}

/// Columns and work-items of a work-group of wide.cl.
struct WideTile {
  std::int64_t cols, items;
};

kernel::Candidate wide(const NodeContext& node, const Products& size, const WideTile& tile,
                       bool packed) {
  kernel::Candidate candidate{
      "wide_" + std::to_string(tile.cols) + "x" + std::to_string(tile.items), {}, {}};
  if (packed) add_packing(candidate, size);
  auto& launch = add_launch(candidate, node, size, "fully_connected/wide.cl",
                            "fully_connected_wide", {false, packed, false});
  if (packed) launch.macro("WEIGHTS_T", "uint");
  set_blocks(launch, packed ? block_of(node) : 0);
  std::int64_t bits = 4;
  if (!packed) bits = 8 * static_cast<std::int64_t>(size_of(node.input(kWeights).storage));
  const std::int64_t rows = rows_of_group(size);
  launch.macro("WG", tile.items).macro("COLS", tile.cols).macro("ROWS", rows).macro("BITS", bits);
  launch.range({uz(ceil_div(size.cols, tile.cols) * tile.items), uz(ceil_div(size.rows, rows))},
               {uz(tile.items), 1});
  return candidate;
}

/// Kernels whose work-items read 16 bytes of the weights at once, best guess first; none for sums
/// of integers and for other depths.
std::vector<kernel::Candidate> wides(const NodeContext& node, const Products& size, bool packed,
                                     const DeviceInfo& device) {
  const DType storage = node.input(kWeights).storage;
  const std::int64_t step = packed ? 32 : size_of(storage) == 1 ? 16 : 8;
  std::vector<kernel::Candidate> list;
  if (quantized(node) || is_hybrid(node) || size.depth % step != 0) return list;
  if (packed && block_of(node) % step != 0) return list;
  for (const WideTile& tile : {WideTile{4, 128}, WideTile{2, 128}, WideTile{4, 32}}) {
    if (uz(tile.items) <= group_of(uz(tile.items), device))
      list.push_back(wide(node, size, tile, packed));
  }
  return list;
}

kernel::Candidate dot(const NodeContext& node, const Products& size, int rm, int rn) {
  kernel::Candidate candidate{"dot_" + std::to_string(rm) + "x" + std::to_string(rn), {}, {}};
  auto& launch = add_launch(candidate, node, size, "fully_connected/dot.cl", "fully_connected_dot");
  set_dot_tile(launch, rm, rn, /*vec=*/16, size);
  return candidate;
}

/// One row of weights per work-item of a CPU, for few rows of floats; none for other sums.
std::vector<kernel::Candidate> row(const NodeContext& node, const Products& size, bool packs,
                                   const DeviceInfo& device) {
  constexpr int kUnit = 32;          // elements whose 4 bits lie in the same bytes as two planes
  constexpr std::size_t kGroup = 8;  // small, because a CPU distributes whole groups to its cores
  if (!device.is_cpu() || quantized(node) || is_hybrid(node) || has_weights_zero(node)) return {};
  if (packs && (size.depth % kUnit != 0 || block_of(node) % kUnit != 0)) return {};
  kernel::Candidate candidate{"row", {}, {}};
  if (packs) {
    const std::int64_t bytes = size.cols * size.depth / 2;
    kernel::Launch pack("fully_connected/pack_planes.cl", "fully_connected_pack_planes");
    pack.src(kWeights).scratch_out(0).i32(bytes);
    pack.range({uz(bytes)}, {kElementwiseGroup});
    candidate.launches.push_back(pack);
    candidate.scratch.push_back({bytes});
  }
  auto& launch = add_launch(candidate, node, size, "fully_connected/row.cl", "fully_connected_row",
                            {false, packs, false});
  set_blocks(launch, packs ? block_of(node) : 0);
  launch.macro("PLANES", packs ? 1 : 0);
  launch.range({uz(size.cols), uz(size.rows)}, {kGroup, 1});
  return {candidate};
}

kernel::Candidate gemm(const NodeContext& node, const Products& size, const GemmTile& tile,
                       const DeviceInfo& device) {
  const bool int8 = quantized(node);
  kernel::Candidate candidate{"gemm_" + tile.name(), {}, {}};
  auto& launch = add_launch(candidate, node, size, "fully_connected/gemm.cl",
                            "fully_connected_gemm", {int8, false, !int8});
  const int vec = int8 && size.depth % 16 == 0 ? 2 : size.depth % 4 == 0 ? 1 : 0;
  launch.macro("VEC_A", vec).macro("VEC_B", vec);
  const bool vec_n = size.cols % 4 == 0 && result_layout(node).aligned(4);
  set_tile(launch, tile, vec_n, int8 ? TileArith::kInt8 : TileArith::kFloat, size);
  // The table of the channels includes the zero point of src.
  if (int8) {
    const bool zero = int8_zero_point(node.input(kWeights)) != 0;
    set_words(launch, device, /*a_sums=*/zero);
    launch.macro("B_SUMS", 0);
  }
  return candidate;
}

/// Rows for which tensor cores gain more than it costs to widen weights of int8 to half: in a layer
/// of 3 billion parameters on an H200, 64 rows take 0.84 ms without them, widening takes 0.26 ms.
constexpr std::int64_t kWidenedRows = 32;

TensorGemm tensor_product(const NodeContext& node, const Products& size) {
  TensorGemm product = TensorGemm::matmul(size);
  product.src = kSrc, product.weights = kWeights, product.bias = kBias;
  product.requantization = Requantization::kReal;
  product.widens = has_int8_weights(node) && !is_hybrid(node) && size.rows >= kWidenedRows;
  return product;
}

std::vector<kernel::Candidate> of_int8(const NodeContext& node, const Products& size,
                                       const DeviceInfo& device) {
  const bool int8 = quantized(node) && size_of(node.output(0).dtype) == 1;
  std::vector<kernel::Candidate> tiled;
  if (!is_hybrid(node) && (int8 || !quantized(node))) {
    for (const GemmTile& tile : gemm_tiles(int8 ? in_words(size) : size, device)) {
      tiled.push_back(gemm(node, size, tile, device));
    }
  }
  const std::vector<kernel::Candidate> vectors = quads(node, size, device);
  std::vector<kernel::Candidate> list;
  if (device.is_cpu()) {
    list = {dot(node, size, 4, 4), dot(node, size, 1, 4), naive(node, size),
            gemv(node, size, device)};
    if (size.rows < 3) std::swap(list[0], list[1]);
    const auto fast = pairs(node, size, device);
    list.insert(list.begin(), fast.begin(), fast.end());
    list.insert(list.end(), tiled.begin(), tiled.end());
    list.insert(list.end(), vectors.begin(), vectors.end());
    return list;
  }
  constexpr int kGemvRows = 8;    // more rows would read the weights too often
  constexpr int kGemvDepth = 32;  // a shorter sum leaves work-items without a term
  list = {gemv(node, size, device), naive(node, size)};
  if (size.depth < kGemvDepth) std::swap(list[0], list[1]);
  const TensorGemm product = tensor_product(node, size);
  if (!has_weights_zero(node) && (product.widens || !has_int8_weights(node))) {
    const auto tensor = tensor_gemms(node, device, product);
    tiled.insert(tiled.begin(), tensor.begin(), tensor.end());
  }
  list.insert(size.rows > kGemvRows ? list.begin() : list.end(), tiled.begin(), tiled.end());
  list.insert(device.is_mobile() ? list.begin() : list.end(), vectors.begin(), vectors.end());
  return list;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Shape& weights = node.input(kWeights).shape;
  const Products size{node.input(kSrc).shape.elements() / weights[1], weights[0], weights[1], 1};
  const auto& quantization = node.input(kWeights).quantization;
  const bool packs = quantization != nullptr && quantization->narrow && !is_hybrid(node) &&
                     node.input(kWeights).is_constant();
  std::vector<kernel::Candidate> list = warps(node, size, device);
  const auto wide = wides(node, size, packs, device);
  list.insert(list.end(), wide.begin(), wide.end());
  if (packs) list.push_back(nibbles(node, size, device));
  if (packs && quantization->block > 0) {
    if (device.is_cpu()) std::rotate(list.begin(), list.end() - 1, list.end());
  } else {
    // More rows would read the weights too often. A CPU's time depends less on what it reads, and
    // mobile GPUs have kernels of their own for all but packed weights.
    constexpr int kFewRows = 8;
    const bool last = size.rows > kFewRows || device.is_cpu() || (device.is_mobile() && !packs);
    std::vector<kernel::Candidate> others = of_int8(node, size, device);
    list.insert(last ? list.begin() : list.end(), others.begin(), others.end());
  }
  // More rows would widen the weights too often, and floats need no widening.
  constexpr int kRowsOfRow = 2;
  const bool widens = node.input(kWeights).storage != DType::kF32;
  const auto single = row(node, size, packs, device);
  list.insert(widens && size.rows <= kRowsOfRow ? list.begin() : list.end(), single.begin(),
              single.end());
  return list;
}

double flops(const NodeContext& node) {
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * node.input(kWeights).shape[1]);
}

const IntegerForm kIntegers{{0}, false, clamping_problem};

}  // namespace

namespace fully_connected {

std::vector<kernel::Candidate> warps(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device, const Fusion& fusion) {
  constexpr int kStep = 64, kDigits = 3;
  const ir::Tensor& weights = node.input(kWeights);
  const bool narrow = weights.quantization != nullptr && weights.quantization->narrow;
  const bool bytes = weights.storage == DType::kI8;
  const bool known = is_known_matrix(node.graph(), node.node().inputs[kWeights]);
  const bool split = node.input(kSrc).storage == DType::kF32;
  const int most_rows = fusion.normed || fusion.apart > 0 ? 1 : split ? 4 : 8;
  constexpr std::int64_t kMostBytes = 40 << 10;  // of local memory, with some left for the sums
  const std::int64_t row_bytes = (size.depth + 8) * 2 * (split ? 2 : 1);
  if (!device.mma_f16 || !bfloat_problem(node, kWeights).empty() || quantized(node) ||
      is_hybrid(node) || (split && !node.allows_half()) || !known || size.rows > most_rows ||
      size.rows * row_bytes > kMostBytes || size.depth % kStep != 0 ||
      !(bytes || weights.storage == DType::kF16) || block_of(node) % (kStep / 2) != 0 ||
      fusion.apart % kRun != 0)
    return {};
  kernel::Candidate candidate{"warps", {}, {}};
  candidate.tensor_cores = true;
  candidate.makes_halves = split;
  const std::int64_t bits = narrow ? 4 : bytes ? 8 : 16;
  const int apart = fusion.apart > 0 ? fusion.apart : kRun;
  // Bytes of the input in place of halves: weights are bytes already, or widened with a third of
  // the instructions.
  const std::int64_t bytes_of_digits = size.rows * kDigits * (size.depth + 128);
  const bool by_digits = bits != 16 && block_of(node) == 0 && device.mma_s8 && size.rows <= 2 &&
                         bytes_of_digits <= kMostBytes;
  const int digits = by_digits ? kDigits : 0;
  WarpsTile tile = warps_tile(bits, size, fusion, device);
  // Local memory has the input and the sums of all tiles, each from a multiple of 128 bytes on.
  constexpr std::int64_t kMostLocal = (48 << 10) - 256;
  const std::int64_t parts = size.rows * (by_digits ? kDigits : split ? 2 : 1);
  const std::int64_t input_bytes = by_digits ? bytes_of_digits : size.rows * row_bytes;
  const std::int64_t sums_bytes =
      tile.warps * kWarpsColumns * parts * std::int64_t{sizeof(float)} * (fusion.gated ? 2 : 1);
  while (tile.tiles > 1 && input_bytes + tile.tiles * sums_bytes > kMostLocal) tile.tiles /= 2;
  add_warps_packing(candidate, node, kWeights, bits, digits, size, apart);
  if (fusion.gated) add_warps_packing(candidate, node, kWeights2, bits, digits, size, apart);
  auto& launch = add_launch(candidate, node, size, "fully_connected/warps_nvidia.cl",
                            "fully_connected_warps", {false, true, false, true});
  set_blocks(launch, block_of(node));
  launch.slim = true;
  launch.macro("WARPS", tile.warps).macro("TILES", tile.tiles);
  launch.macro("AHEAD", tile.ahead).macro("ROWS", size.rows);
  launch.macro("DIGITS", digits)
      .macro("SPLIT", split && !by_digits ? 1 : 0)
      .macro("DEPTH", size.depth)
      .macro("BITS", bits);
  launch.macro("NORM", fusion.normed ? 1 : 0).macro("GATED", fusion.gated ? 1 : 0);
  launch.macro("MMA_TYPE", by_digits ? 2 : 0)
      .macro("TURN", fusion.apart > 0 ? 1 : 0)
      .macro("APART", apart);
  const bool full =
      fusion.apart > 0 && node.input(kCosines).shape.back(0) == 2 * std::int64_t{apart};
  launch.macro("FULL", full ? 1 : 0);
  if (fusion.normed) {
    launch.type("NORM_T", node.input(kNormWeight).storage);
    launch.src(kNormWeight).f32(fusion.epsilon);
  }
  if (fusion.gated) {
    launch.scratch_in(1).early();
    if (bytes) launch.src(kWeightScales2);
  }
  if (fusion.apart > 0) {
    launch.type("COS_T", node.input(kCosines).storage).type("SIN_T", node.input(kSines).storage);
    launch.src(kCosines).src(kSines);
  }
  const std::int64_t items = tile.tiles * tile.warps * 32;
  const std::int64_t tiles = ceil_div(size.cols, kWarpsColumns);
  launch.range({uz(ceil_div(tiles, tile.tiles) * items)}, {uz(items)});
  if (!fusion.update) {
    launch.macro("UPDATE", 0);
    return {candidate};
  }
  launch.type("INDEX_T", node.input(kStart).storage).src(kStart);
  launch.i32(fusion.update->axis).i32(fusion.update->most).i32(fusion.update->row);
  // What is changed in place needs no copy of the rest.
  candidate.in_place = {kOld};
  launch.asks_to_keep = true;
  candidate.over_input = launch;
  candidate.over_input->macro("UPDATE", 1);
  launch.macro("UPDATE", 2).src(kOld).i32(node.input(kOld).shape.elements());
  return {candidate};
}

}  // namespace fully_connected

extern const Family kFusedFullyConnectedFamily;
const Family kFusedFullyConnectedFamily = [] {
  Family family = fused_family();
  family.name = "fully_connected";
  return family;
}();

extern const Family kEndedFullyConnectedFamily;
const Family kEndedFullyConnectedFamily = [] {
  Family family = ended_family();
  family.name = "fully_connected";
  return family;
}();

extern const Family kFullyConnectedFamily;
const Family kFullyConnectedFamily = [] {
  Family family;
  family.name = "fully_connected";
  family.bundled = true;
  family.attrs = ir::attrs_type<FullyConnectedAttrs>();
  family.has_epilogue = true;
  family.residual = 3;
  family.slopes = 4;
  family.types = {"DST_T"};
  family.writes_slices = true;
  family.builtins = {{kFullyConnected, "FULLY_CONNECTED", 2, 1}};
  family.core = true;
  family.import = import;
  family.infer = infer;
  family.half_sums = true;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.narrow = kWeights;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.bias = kBias;
  family.weights.out_axis = 0;
  family.weights.divisible = true;
  family.work_kind = WorkKind::kProduct;
  family.variants = {&kFusedFullyConnectedFamily, &kEndedFullyConnectedFamily};
  return family;
}();

ir::AttrsPtr fully_connected::with_ones(const ir::Node& node, int ones) {
  if (node.kind != &kFullyConnectedFamily) return nullptr;
  FullyConnectedAttrs attrs = static_cast<const FullyConnectedAttrs&>(*node.attrs);
  if (attrs.keep_num_dims) return nullptr;
  attrs.ones += ones;
  return share(attrs);
}

}  // namespace clgpu::ops
