// Family of TRANSPOSE: any permutation of up to six axes.
#include "ops/families/transpose.hpp"

#include <algorithm>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/mobile.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kTranspose = 39;
constexpr int kTile = 32, kTileRows = 8;
/// With shorter sides, most of a tile is empty.
constexpr int kWorthATile = 8;

struct TransposeAttrs : ir::Attrs {
  std::vector<int> perm;  ///< axis of the input for each axis of the output
  CLGPU_FIELDS(perm)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const int rank = node.input(0).rank();
  const auto perm = node.input(1).ints();
  CLGPU_REFUSE_IF(!perm, Why::kRunTime, "the permutation");
  CLGPU_REFUSE_IF(
      static_cast<int>(perm->size()) != rank, Why::kParameter, "the permutation",
      "has " + std::to_string(perm->size()) + " axes, the input " + std::to_string(rank));
  TransposeAttrs attrs;
  std::vector<bool> used(uz(rank));
  for (const std::int64_t p : *perm) {
    const auto axis = normalize_axis(p, rank);
    CLGPU_REFUSE_IF(!axis || used[uz(*axis)], Why::kParameter, "the permutation",
                    "does not name every axis once");
    used[uz(*axis)] = true;
    attrs.perm.push_back(*axis);
  }
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  ir::Shape dst = node.input(0).shape;
  const auto& perm = node.attrs<TransposeAttrs>().perm;
  for (int i = 0; i < dst.rank(); ++i) dst[i] = node.input(0).shape[perm[uz(i)]];
  return {dst};
}

/// The batch of matrices that a copy transposes: src is [batches, rows, cols].
struct Matrices {
  std::int64_t batches;
  int rows, cols;
};

/// nullopt unless `copy` (merged) is only a transposition of matrices.
std::optional<Matrices> matrices(const StridedCopy& copy) {
  const std::size_t n = copy.dims.size();
  if (n < 2 || n > 3) return std::nullopt;
  const int cols = copy.dims[n - 2], rows = copy.dims[n - 1];
  if (copy.strides[n - 2] != 1 || copy.strides[n - 1] != cols) return std::nullopt;
  if (n == 3 && copy.strides[0] != rows * cols) return std::nullopt;
  return Matrices{n == 3 ? copy.dims[0] : 1, rows, cols};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const std::vector<int> strides = src.shape.strides();
  StridedCopy copy{dst.shape.dims(), {}, 0};
  for (const int axis : node.attrs<TransposeAttrs>().perm)
    copy.strides.push_back(strides[uz(axis)]);

  std::vector<kernel::Candidate> result;
  result.push_back(kernel::of_form(kernel::Form::kReference,
                                   {"naive", {strided_copy(copy, src.storage, dst.storage)}, {}}));
  const auto m = matrices(merged(copy));
  if (!m || device.max_work_group_size < kTile * kTileRows) return result;

  const MoveUnit unit = move_unit(src.storage, dst.storage, 1);
  const std::int64_t tiles = ceil_div(m->rows, kTile) * ceil_div(m->cols, kTile);
  kernel::Launch tiled("transpose/tiled.cl", "transpose_tiled");
  tiled.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  tiled.macro("TILE", kTile).macro("TILE_ROWS", kTileRows);
  tiled.src(0).dst(0).i32(m->rows).i32(m->cols);
  tiled.range({uz(m->batches * tiles * kTile), kTileRows}, {kTile, kTileRows});
  // If local memory is a part of the caches, the caches do the work of the tile, and barriers only
  // add cost.
  const bool worth = has_local_memory(device) && std::min(m->rows, m->cols) >= kWorthATile;
  result.insert(worth ? result.begin() : result.end(), {"tiled", {tiled}, {}});
  return result;
}

}  // namespace

extern const Family kTransposeFamily;
const Family kTransposeFamily = [] {
  Family family;
  family.name = "transpose";
  family.attrs = ir::attrs_type<TransposeAttrs>();
  family.builtins = {{kTranspose, "TRANSPOSE", 2}};
  family.core = true;
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kMovedIntegers;
  family.flops = no_flops;
  return family;
}();

bool transposes_matrix(const ir::Node& node) {
  return node.kind == &kTransposeFamily &&
         static_cast<const TransposeAttrs&>(*node.attrs).perm == std::vector<int>{1, 0};
}

bool is_known_matrix(const ir::Graph& graph, int tensor) {
  if (graph.tensor(tensor).is_constant()) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return transposes_matrix(node) && node.outputs[0] == tensor &&
           graph.tensor(node.inputs[0]).is_constant();
  });
}

const std::vector<int>* permutation_of(const ir::Node& node) {
  if (node.kind != &kTransposeFamily) return nullptr;
  return &static_cast<const TransposeAttrs&>(*node.attrs).perm;
}

}  // namespace clgpu::ops
