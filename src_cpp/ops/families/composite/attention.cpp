// Attention: softmax(scale * q k^T + mask) v, of each head, as one kernel.
#include <algorithm>
#include <cmath>

#include "ops/families/composite/composite.hpp"
#include "ops/families/composite/limits.hpp"
#include "ops/products/tensor_gemm.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops::composite {
namespace {

constexpr int kQ = 0, kK = 1, kV = 2, kMask = 3;  // inputs
constexpr int kRank = 4;                          // batch, position, head, element

struct Sizes {
  int batches, queries, keys, heads, key_heads, depth, cols;

  explicit Sizes(const NodeContext& node) {
    const ir::Shape &q = node.input(kQ).shape, &k = node.input(kK).shape;
    batches = q[0], queries = q[1], heads = q[2], depth = q[3];
    keys = k[1], key_heads = k[2], cols = node.input(kV).shape[3];
  }
  /// Rows of scores that read the same keys.
  std::int64_t rows() const { return std::int64_t{queries} * (heads / key_heads); }
  ir::Shape scores() const { return ir::Shape({batches, heads, queries, keys}); }
};

/// Rows that share what is read of the keys.
constexpr std::int64_t kMostRows = 8;
/// Of a work-group whose work-items share keys.
constexpr int kMostItems = 128;

/// Types, and the buffers that all kernels read.
void set_operands(kernel::Launch& launch, const NodeContext& node) {
  const bool masked = node.has_input(kMask);
  launch.macro("MASK", masked ? 1 : 0);
  launch.type("Q_T", node.input(kQ).storage).type("K_T", node.input(kK).storage);
  launch.type("V_T", node.input(kV).storage);
  launch.type("MASK_T", masked ? node.input(kMask).storage : DType::kF32);
  // -FLT_MAX is -infinity in both floats of 16 bits.
  const bool rounded = masked && size_of(node.input(kMask).storage) == 2;
  launch.macro("HALF_MASK", rounded ? 1 : 0);
  launch.src(kQ).src(kK).src(kV);
  if (masked) launch.src(kMask);
}

void push_strides(kernel::Launch& launch, const NodeContext& node, const Sizes& size) {
  const std::vector<int> none(uz(kRank), 0);
  const std::vector<int> strides =
      node.has_input(kMask) ? broadcast_strides(node.input(kMask).shape, size.scores()) : none;
  for (const int stride : strides) launch.i32(stride);
  launch.f32(node.attrs<CompositeAttrs>().scale);
}

/// Appends the launch that merges the sums over chunks of keys in scratch buffer 0.
void merge(kernel::Candidate& candidate, const NodeContext& node, const Sizes& size,
           std::int64_t chunks) {
  const std::int64_t rows = std::int64_t{size.batches} * size.queries * size.heads;
  candidate.scratch = {
      {rows * chunks * (size.cols + 2) * static_cast<std::int64_t>(sizeof(float))}};
  kernel::Launch launch("composite/merge.cl", "composite_merge");
  launch.type("DST_T", node.output(0).storage);
  launch.scratch_in(0).dst(0).i32(rows).i32(size.cols).i32(chunks);
  launch.range({uz(rows * size.cols)}, {kElementwiseGroup});
  candidate.launches.push_back(launch);
}

/// A work-group of `items` takes `rows` rows, and `chunk` keys if that is not 0.
kernel::Candidate tiled(const NodeContext& node, const Sizes& size, std::int64_t rows,
                        std::int64_t items, std::int64_t chunk = 0) {
  kernel::Candidate candidate{(chunk > 0 ? "split_" : "rows_") + std::to_string(rows), {}, {}};
  const std::int64_t chunks = chunk > 0 ? ceil_div(size.keys, chunk) : 1;
  kernel::Launch launch("composite/attention.cl", "composite_attention");
  launch.macro("ROWS", rows).macro("WG", items).macro("DEPTH", size.depth);
  launch.macro("PARTS", ceil_div(size.cols, items)).macro("SPLIT", chunk > 0 ? 1 : 0);
  launch.type("DST_T", node.output(0).storage);
  set_operands(launch, node);
  chunk > 0 ? launch.scratch_out(0) : launch.dst(0);
  launch.i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads).i32(size.cols);
  push_strides(launch, node, size);
  if (chunk > 0) launch.i32(chunk);
  launch.range(
      {uz(ceil_div(size.rows(), rows) * chunks * items), uz(size.key_heads), uz(size.batches)},
      {uz(items)});
  candidate.launches.push_back(launch);
  if (chunk > 0) merge(candidate, node, size, chunks);
  return candidate;
}

/// The keys of a chunk, a multiple of `step`, with which `wanted` work-groups share the work, if
/// there are enough keys.
std::int64_t chunk_of(const Sizes& size, std::int64_t rows, std::int64_t step,
                      std::int64_t wanted) {
  const std::int64_t groups = ceil_div(size.rows(), rows) * size.key_heads * size.batches;
  const std::int64_t most = ceil_div(size.keys, step);
  const std::int64_t chunks = std::clamp<std::int64_t>(ceil_div(wanted, groups), 1, most);
  return round_up(ceil_div(size.keys, chunks), step);
}

/// Several work-items share a key; for heads of which 16 divides the elements.
kernel::Candidate in_lanes(const NodeContext& node, const Sizes& size, const DeviceInfo& device) {
  const int lanes = size.depth % 32 == 0 ? 8 : 4;
  const auto items = static_cast<std::int64_t>(group_of(device.is_cpu() ? 32 : kMostItems, device));
  const std::int64_t rows = std::min(kMostRows, size.rows());
  const std::int64_t chunk = chunk_of(size, rows, items / lanes, 4 * device.compute_units);
  const std::int64_t chunks = ceil_div(size.keys, chunk);
  kernel::Candidate candidate{"lanes_" + std::to_string(lanes), {}, {}};
  kernel::Launch launch("composite/lanes.cl", "composite_lanes");
  launch.macro("ROWS", rows).macro("WG", items).macro("LANES", lanes);
  launch.macro("DEPTH", size.depth).macro("PARTS", ceil_div(size.cols, items));
  set_operands(launch, node);
  launch.scratch_out(0).i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads);
  push_strides(launch.i32(size.cols), node, size);
  launch.i32(chunk);
  launch.range(
      {uz(ceil_div(size.rows(), rows) * chunks * items), uz(size.key_heads), uz(size.batches)},
      {uz(items)});
  candidate.launches.push_back(launch);
  merge(candidate, node, size, chunks);
  return candidate;
}

/// Work-items on their own, with vectors of `vec` elements.
kernel::Candidate in_vectors(const NodeContext& node, const Sizes& size, const DeviceInfo& device,
                             int vec) {
  constexpr std::int64_t kStep = 16;
  const std::int64_t rows = std::min(kMostRows, size.rows());
  const std::int64_t chunk = chunk_of(size, rows, 4 * kStep, 4 * device.compute_units);
  const std::int64_t chunks = ceil_div(size.keys, chunk);
  kernel::Candidate candidate{"vectors_" + std::to_string(vec), {}, {}};
  kernel::Launch launch("composite/vectors.cl", "composite_vectors");
  launch.macro("ROWS", rows).macro("VEC", vec);
  launch.macro("DEPTH", size.depth).macro("COLS", size.cols);
  set_operands(launch, node);
  launch.scratch_out(0).i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads);
  push_strides(launch, node, size);
  launch.i32(chunk);
  launch.range({uz(ceil_div(size.rows(), rows) * chunks), uz(size.key_heads), uz(size.batches)},
               {1, 1, 1});
  candidate.launches.push_back(launch);
  merge(candidate, node, size, chunks);
  return candidate;
}

/// Few rows in one launch on NVIDIA's GPUs: the last work-group of a head merges the sums of all.
std::vector<kernel::Candidate> decoding(const NodeContext& node, const Sizes& size,
                                        const DeviceInfo& device) {
  constexpr int kMostRowsOfGroup = 4;  // the registers of an item hold no more
  constexpr int kMostChunks = 64, kEach = 4, kWarp = 32, kKeys = 16;
  // A probe has found that PTX works (kernels/common/mma.cl), of which the kernel uses shuffles.
  const bool fits = size.depth == 64 || size.depth == 128 || size.depth == 256;
  if (!device.mma_f16 || !fits || size.cols != size.depth || size.rows() > kMostRows ||
      !bfloat_problem(node, -1).empty())
    return {};
  const std::int64_t tiles = ceil_div(size.rows(), kMostRowsOfGroup);
  const std::int64_t rows = ceil_div(size.rows(), tiles);
  const std::int64_t warps = size.depth == 128 ? 8 : 4;
  constexpr int kMostDepth = 128;  // of which the registers hold what the tensor cores add up
  const bool tensor = node.input(kK).storage == DType::kF16 &&
                      node.input(kV).storage == DType::kF16 && size.depth <= kMostDepth;
  const std::int64_t step = warps * (tensor ? kKeys : kWarp * 8 / size.depth * kEach);
  const std::int64_t groups = std::int64_t{size.batches} * size.key_heads * tiles;
  // As many work-groups as run at once.
  const std::int64_t wanted = std::clamp<std::int64_t>(
      device.compute_units / groups, 1, std::min<std::int64_t>(kMostChunks, size.keys));
  const std::int64_t chunk = round_up(ceil_div(size.keys, wanted), step);
  const std::int64_t chunks = ceil_div(size.keys, chunk);
  const std::int64_t parts = groups * chunks * rows;
  constexpr std::int64_t kFloat = sizeof(float);
  kernel::Candidate candidate{"decode", {}, {}};
  candidate.tensor_cores = tensor;
  candidate.makes_halves = tensor && node.input(kQ).storage == DType::kF32;
  candidate.scratch = {
      {parts * size.depth * kFloat}, {parts * 2 * kFloat}, {groups * kFloat, /*counters=*/true}};
  kernel::Launch launch("composite/decode_nvidia.cl", "composite_decode");
  launch.macro("ROWS", rows).macro("WARPS", warps).macro("DEPTH", size.depth).macro("MMA_TYPE", 0);
  launch.macro("TENSOR", tensor ? 1 : 0);
  launch.slim = tensor;
  if (tensor) launch.macro("SPLIT", node.input(kQ).storage == DType::kF32 ? 1 : 0);
  launch.type("DST_T", node.output(0).storage);
  set_operands(launch, node);
  if (node.has_input(kMask)) launch.early();
  launch.scratch_inout(0).scratch_inout(1).scratch_inout(2).dst(0);
  launch.i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads);
  push_strides(launch, node, size);
  launch.i32(chunk);
  const std::int64_t items = warps * kWarp;
  launch.range({uz(tiles * chunks * items), uz(size.key_heads), uz(size.batches)}, {uz(items)});
  candidate.launches.push_back(launch);
  return {candidate};
}

/// Whether tensor cores multiply halves here: only where a plan stores the queries as such.
bool has_tensor_cores(const NodeContext& node, const Sizes& size, const DeviceInfo& device) {
  constexpr int kFewRows = 32;  // most rows of a work-group would be empty
  return device.mma_f16 && bfloat_problem(node, -1).empty() &&
         node.input(kQ).storage == DType::kF16 && size.cols == size.depth &&
         (size.depth == 64 || size.depth == 128) && size.rows() >= kFewRows &&
         node.attrs<CompositeAttrs>().scale > 0.0F;
}

kernel::Candidate tensor_rows(const NodeContext& node, const Sizes& size) {
  constexpr int kWarps = 4, kItems = kWarps * 32, kRows = kWarps * 16, kKeys = 64;
  constexpr int kManyKeys = 512;  // from which on the tiles that a mask hides are worth a launch
  const std::int64_t row_tiles = ceil_div(size.rows(), kRows);
  const std::int64_t key_tiles = ceil_div(size.keys, kKeys);
  kernel::Candidate candidate{"tensor_rows", {}, {}};
  candidate.tensor_cores = true;
  const bool masked = node.has_input(kMask);
  const bool skips = masked && size.keys >= kManyKeys;
  int of_batch = 0, of_head = 0;  // elements of tiles between batches, and between heads of keys
  if (skips) {
    const std::vector<int> strides = broadcast_strides(node.input(kMask).shape, size.scores());
    const std::int64_t all = row_tiles * key_tiles;
    const int mask_heads = strides[1] == 0 ? 1 : size.key_heads;
    const int mask_batches = strides[0] == 0 ? 1 : size.batches;
    of_head = mask_heads > 1 ? static_cast<int>(all) : 0;
    of_batch = mask_batches > 1 ? static_cast<int>(all * mask_heads) : 0;
    const std::int64_t groups = std::int64_t{mask_heads} * mask_batches;
    candidate.scratch = {{all * groups}};
    kernel::Launch look("composite/mask_tiles.cl", "composite_mask_tiles");
    // Whether eight neighbouring elements are one aligned load.
    bool wide = strides[3] == 1 && size.keys % 8 == 0;
    for (int axis = 0; axis < 3; ++axis) wide = wide && strides[uz(axis)] % 8 == 0;
    look.macro("ROWS", kRows).macro("KEYS", kKeys).macro("WIDE", wide ? 1 : 0);
    look.type("MASK_T", node.input(kMask).storage);
    look.src(kMask).scratch_out(0).i32(size.queries).i32(size.keys);
    look.i32(size.heads / size.key_heads).i32(mask_heads);
    for (const int stride : strides) look.i32(stride);
    look.range({uz(key_tiles * kKeys), uz(row_tiles), uz(groups)}, {kKeys, 1, 1});
    candidate.launches.push_back(look);
  }
  kernel::Launch launch("composite/attention_nvidia.cl", "composite_attention_nvidia");
  launch.macro("WARPS", kWarps).macro("DEPTH", size.depth);
  launch.macro("KEYS", kKeys).macro("TILES", skips ? 1 : 0).macro("MMA_TYPE", 0);
  launch.type("DST_T", node.output(0).storage);
  set_operands(launch, node);
  if (skips) launch.scratch_in(0);
  launch.dst(0).i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads);
  push_strides(launch, node, size);
  launch.i32(of_batch).i32(of_head);
  launch.range({uz(size.key_heads) * kItems, uz(row_tiles), uz(size.batches)}, {kItems, 1, 1});
  // With tiles of the mask it calls group_any, which waits for all items of the work-group; those
  // of a chain or a bundle can be more than the items of this launch.
  launch.is_alone = skips;
  candidate.launches.push_back(launch);
  return candidate;
}

}  // namespace

OrRefusal<CompositeAttrs> import_attention(const tfl::NodeView& node, const Numbers& numbers) {
  const int inputs = node.input_count();
  CLGPU_REFUSE_IF(inputs < 3 || inputs > 4, Why::kOperands, "",
                  "it has " + std::to_string(inputs) + " inputs; attention takes 3 or 4");
  constexpr const char* kNames[] = {"queries", "keys", "values", "mask"};
  for (int i = 0; i < inputs; ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), kNames[i], DType::kF32);
    CLGPU_REFUSE_RANK(node.input(i), kNames[i], i == kMask ? 0 : kRank, kRank);
  }
  const int depth = node.input(kQ).dim(3);
  CLGPU_REFUSE_IF(depth > kMostHeadDepth, Why::kShape, "a head", "",
                  std::to_string(depth) + " elements", {"up to " + std::to_string(kMostHeadDepth)});
  CompositeAttrs attrs;
  attrs.kind = kAttention;
  const auto scale = numbers.find("scale");
  attrs.scale = scale == numbers.end() ? 1.0F / std::sqrt(static_cast<float>(depth))
                                       : static_cast<float>(scale->second);
  return attrs;
}

ir::Shape attention_shape(const NodeContext& node) {
  const ir::Shape &q = node.input(kQ).shape, &k = node.input(kK).shape;
  const ir::Shape& v = node.input(kV).shape;
  const bool fit = q[0] == k[0] && q[3] == k[3] && v[0] == k[0] && v[1] == k[1] && v[2] == k[2];
  if (!fit || k[2] == 0 || q[2] % k[2] != 0) {
    throw ShapeError("queries " + q.str() + ", keys " + k.str() + " and values " + v.str() +
                     " do not fit; the axes are batch, position, head and element");
  }
  if (node.has_input(kMask)) {
    const Sizes size(node);
    const ir::Shape& mask = node.input(kMask).shape;
    if (broadcast(mask, size.scores()) != size.scores())
      throw ShapeError("the mask " + mask.str() + " does not fit scores " + size.scores().str());
  }
  return ir::Shape({q[0], q[1], q[2], v[3]});
}

std::vector<kernel::Candidate> attention(const NodeContext& node, const DeviceInfo& device) {
  const Sizes size(node);
  const auto items = static_cast<std::int64_t>(group_of(device.is_cpu() ? 16 : 64, device));
  std::vector<kernel::Candidate> list;
  for (const std::int64_t rows : {8, 4, 1}) {
    // Rows beyond the last one would only cost time.
    if (rows > 1 && rows / 2 >= size.rows()) continue;
    const std::int64_t local = rows * (size.depth + items) * 4;
    const std::int64_t sums = rows * ceil_div(size.cols, items);
    constexpr std::int64_t kMostSums = 64;  // more do not fit into the registers of an item
    if (rows > 1 && (sums > kMostSums || uz(local) > device.local_bytes / 2)) continue;
    list.push_back(tiled(node, size, rows, items));
  }
  list.back().form = kernel::Form::kPlain;
  // Few rows leave most of the device idle.
  const std::int64_t rows = size.rows() > 4 ? 8 : size.rows() > 1 ? 4 : 1;
  const std::int64_t chunk = chunk_of(size, rows, items, 4 * device.compute_units);
  if (chunk < size.keys && rows * ceil_div(size.cols, items) <= 64 &&
      uz(rows * (size.depth + items) * 4) <= device.local_bytes / 2) {
    list.insert(device.is_cpu() ? list.end() : list.begin(), tiled(node, size, rows, items, chunk));
  }
  constexpr int kMostElements = 512;  // of a head in local memory
  constexpr int kMostLanes = 8;       // of a key
  if (size.rows() <= kMostRows && size.depth % 16 == 0 &&
      group_of(kMostItems, device) >= kMostLanes &&
      std::max(size.depth, size.cols) <= kMostElements &&
      uz(kMostRows * (size.depth + kMostItems + kMostItems / 4) * 4) <= device.local_bytes / 2) {
    const bool first = !device.is_cpu() && chunk < size.keys;
    list.insert(first ? list.begin() : list.end(), in_lanes(node, size, device));
  }
  if (device.is_cpu()) {
    constexpr int kMostFloats = 256;  // of a row in private memory
    for (const int vec : {16, 8, 4}) {
      if (size.depth % vec != 0 || size.cols % vec != 0) continue;
      if (std::max(size.depth, size.cols) > kMostFloats) break;
      list.insert(list.begin(), in_vectors(node, size, device, vec));
      break;
    }
  }
  const auto single = decoding(node, size, device);
  list.insert(list.begin(), single.begin(), single.end());
  if (has_tensor_cores(node, size, device)) list.insert(list.begin(), tensor_rows(node, size));
  return list;
}

double attention_flops(const NodeContext& node) {
  const Sizes size(node);
  return 2.0 * static_cast<double>(size.scores().elements()) * (size.depth + size.cols);
}

}  // namespace clgpu::ops::composite
