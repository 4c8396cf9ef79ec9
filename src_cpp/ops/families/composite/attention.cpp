// Attention: softmax(scale * q k^T + mask) v, of each head, as one kernel.
#include <algorithm>
#include <cmath>

#include "ops/families/composite/composite.hpp"
#include "ops/families/composite/limits.hpp"
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

/// Macros and arguments that kernels share; range and tile macros are missing. `any_columns`: the
/// kernel has their number as an argument.
kernel::Launch launch_of(const NodeContext& node, const Sizes& size, const char* file,
                         const char* entry, bool any_columns) {
  kernel::Launch launch(file, entry);
  const bool masked = node.has_input(kMask);
  launch.macro("DEPTH", size.depth).macro("MASK", masked ? 1 : 0);
  launch.type("Q_T", node.input(kQ).storage).type("K_T", node.input(kK).storage);
  launch.type("V_T", node.input(kV).storage).type("DST_T", node.output(0).storage);
  launch.type("MASK_T", masked ? node.input(kMask).storage : DType::kF32);
  launch.macro("HALF_MASK", masked && node.input(kMask).storage == DType::kF16 ? 1 : 0);
  launch.src(kQ).src(kK).src(kV);
  if (masked) launch.src(kMask);
  launch.dst(0).i32(size.queries).i32(size.keys).i32(size.heads).i32(size.key_heads);
  if (any_columns) launch.i32(size.cols);
  const std::vector<int> none(uz(kRank), 0);
  const std::vector<int> strides =
      masked ? broadcast_strides(node.input(kMask).shape, size.scores()) : none;
  for (const int stride : strides) launch.i32(stride);
  launch.f32(node.attrs<CompositeAttrs>().scale);
  return launch;
}

/// A work-group of `items` takes `rows` rows.
kernel::Candidate tiled(const NodeContext& node, const Sizes& size, std::int64_t rows,
                        std::int64_t items) {
  kernel::Candidate candidate{"rows_" + std::to_string(rows), {}, {}};
  kernel::Launch launch =
      launch_of(node, size, "composite/attention.cl", "composite_attention", true);
  launch.macro("ROWS", rows).macro("WG", items).macro("PARTS", ceil_div(size.cols, items));
  launch.range({uz(ceil_div(size.rows(), rows) * items), uz(size.key_heads), uz(size.batches)},
               {uz(items)});
  candidate.launches.push_back(launch);
  return candidate;
}

/// Whether tensor cores multiply halves here: only where a plan stores the queries as such.
bool has_tensor_cores(const NodeContext& node, const Sizes& size, const DeviceInfo& device) {
  constexpr int kFewRows = 32;  // most rows of a work-group would be empty
  return device.mma_f16 && node.input(kQ).storage == DType::kF16 && size.cols == size.depth &&
         (size.depth == 64 || size.depth == 128) && size.rows() >= kFewRows &&
         node.attrs<CompositeAttrs>().scale > 0.0F;
}

kernel::Candidate tensor_rows(const NodeContext& node, const Sizes& size) {
  constexpr int kWarps = 4, kItems = kWarps * 32, kRows = kWarps * 16;
  kernel::Candidate candidate{"tensor_rows", {}, {}};
  candidate.tensor_cores = true;
  kernel::Launch launch =
      launch_of(node, size, "composite/attention_nvidia.cl", "composite_attention_nvidia", false);
  launch.macro("WARPS", kWarps).macro("MMA_TYPE", 0);
  launch.range({uz(ceil_div(size.rows(), kRows)) * kItems, uz(size.key_heads), uz(size.batches)},
               {kItems});
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
  if (has_tensor_cores(node, size, device)) list.insert(list.begin(), tensor_rows(node, size));
  return list;
}

double attention_flops(const NodeContext& node) {
  const Sizes size(node);
  return 2.0 * static_cast<double>(size.scores().elements()) * (size.depth + size.cols);
}

}  // namespace clgpu::ops::composite
