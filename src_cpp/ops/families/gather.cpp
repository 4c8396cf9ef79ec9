// Family of GATHER and EMBEDDING_LOOKUP: positions along one axis, chosen by indices. A table of
// integers with scales may give floats.
#include "ops/families/gather.hpp"

#include <algorithm>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::ops {
namespace {

constexpr int kEmbeddingLookup = 7, kGather = 36;
constexpr int kBefore = 2;  // input of the part of a table

// Whether floats are looked up in a table of integers.
bool is_scaled(DType table, DType output) { return table == DType::kI8 && output == DType::kF32; }

// A table whose rows give floats: each row, or all, or blocks of a row have a scale.
std::optional<Refusal> check_scaled(const tfl::TensorView& table) {
  const auto q = tfl::quantization_of(table);
  const auto is_shifted = [](int zero_point) { return zero_point != 0; };
  if (std::any_of(q->zero_points.begin(), q->zero_points.end(), is_shifted))
    return Refusal{Why::kQuantization, "the table", "has zero points that are not 0"};
  if (q->per_axis() && q->block == 0 && q->axis != 0)
    return Refusal{
        Why::kQuantization, "the table", {}, "scales along axis " + std::to_string(q->axis), {"0"}};
  // The runtimes' kernels read rows that begin at whole bytes.
  const int each = table.tflite_type() == kTfLiteInt2 ? 4 : table.is_narrow() ? 2 : 1;
  if (table.dim(table.rank() - 1) % each != 0)
    return Refusal{Why::kOperands, "the table", "has rows that do not begin at whole bytes"};
  return std::nullopt;
}

OrRefusal<Imported> import_lookup(const tfl::NodeView& node) {
  const tfl::TensorView table = node.input(1);
  const bool scaled = table.is_quantized() && node.output(0).dtype() == DType::kF32;
  if (scaled && !table.is_narrow()) CLGPU_REFUSE_TYPE(table, "the table", DType::kI8);
  CLGPU_REFUSE_IF(!scaled && table.is_narrow(), Why::kType, "the table", {},
                  tfl::type_name(table.tflite_type()), {"int8"});
  if (auto refusal = scaled ? check_scaled(table) : check_moved(node, 1)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "the tensor of indices", DType::kI32);
  CLGPU_REFUSE_IF(node.input(0).rank() != 1, Why::kRank, "the tensor of indices", {},
                  std::to_string(node.input(0).rank()), {"1"});
  CLGPU_REFUSE_RANK(node.input(1), "the table", 2);
  GatherAttrs attrs;
  attrs.table = 1;
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (node.builtin() == kEmbeddingLookup) return import_lookup(node);
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const tfl::TensorView src = node.input(0), indices = node.input(1);
  CLGPU_REFUSE_TYPE(indices, "the tensor of indices", DType::kI32, DType::kI64, DType::kI16);
  const auto* params = node.params<tfl::GatherParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto axis = checked_axis(params->axis, src.rank());
  if (!axis) return axis.refusal();
  const int batch_dims =
      params->batch_dims < 0 ? params->batch_dims + indices.rank() : params->batch_dims;
  CLGPU_REFUSE_IF(batch_dims < 0 || batch_dims > indices.rank() || batch_dims > *axis,
                  Why::kParameter, "",
                  "there are " + std::to_string(params->batch_dims) +
                      " batch axes, more than the indices have or than lie in front of the axis");
  GatherAttrs attrs;
  attrs.axis = *axis;
  attrs.batch_dims = batch_dims;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<GatherAttrs>();
  const ir::Shape& src = node.input(attrs.table).shape;
  const ir::Shape& indices = node.input(1 - attrs.table).shape;
  std::vector<int> dims;
  for (int i = 0; i < src.rank(); ++i) {
    if (i < attrs.batch_dims && src[i] != indices[i]) {
      throw ShapeError("input " + src.str() + " and indices " + indices.str() +
                       " differ in batch axis " + std::to_string(i));
    }
    if (i != attrs.axis) {
      dims.push_back(src[i]);
      continue;
    }
    for (int k = attrs.batch_dims; k < indices.rank(); ++k) dims.push_back(indices[k]);
  }
  return {ir::Shape(dims)};
}

// The last arguments of kernels that may read a part of the table.
void push_part(kernel::Candidate& candidate, kernel::Launch& launch, const NodeContext& node) {
  const int first = node.attrs<GatherAttrs>().first;
  launch.macro("PART", first < 0 ? 0 : node.has_input(kBefore) ? 2 : 1);
  if (first < 0) return;
  launch.i32(first);
  if (!node.has_input(kBefore)) return;
  launch.src(kBefore);
  candidate.in_place = {kBefore};
}

std::vector<kernel::Candidate> scaled(const NodeContext& node) {
  const ir::Tensor &table = node.input(1), &dst = node.output(0);
  const ir::Quantization& q = *table.quantization;
  const std::int64_t inner = table.shape.elements(1, table.shape.rank());
  const std::int64_t n = dst.shape.elements();
  kernel::Candidate candidate{"scaled", {}, {kernel::table(q.scales)}};
  kernel::Launch launch("gather/scaled.cl", "gather_scaled");
  launch.type("DST_T", dst.storage);
  launch.src(1).src(0).dst(0).scratch_in(0).i32(n).i32(table.shape[0]).i32(inner);
  launch.i32(q.block > 0 ? q.block : q.per_axis() ? inner : table.shape.elements());
  launch.range({uz(n)}, {kElementwiseGroup});
  push_part(candidate, launch, node);
  candidate.launches.push_back(launch);
  return {candidate};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<GatherAttrs>();
  const ir::Tensor& src = node.input(attrs.table);
  const ir::Tensor& indices = node.input(1 - attrs.table);
  const ir::Tensor& dst = node.output(0);
  if (is_scaled(src.dtype, dst.dtype)) return scaled(node);
  const std::int64_t inner = src.shape.elements(attrs.axis + 1, src.shape.rank());
  const MoveUnit unit = move_unit(src.storage, dst.storage, inner);
  const std::int64_t n = dst.shape.elements() / unit.elements;

  kernel::Candidate candidate{"rows", {}, {}};
  const bool part = attrs.first >= 0;
  kernel::Launch launch = part ? kernel::Launch("gather/part.cl", "gather_part")
                               : kernel::Launch("gather/gather.cl", "gather_rows");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.type("INDEX_T", indices.storage);
  launch.src(attrs.table).src(1 - attrs.table).dst(0).i32(n);
  if (!part) launch.i32(src.shape.elements(attrs.batch_dims, attrs.axis));
  launch.i32(src.shape[attrs.axis]);
  if (!part) launch.i32(indices.shape.elements(attrs.batch_dims, indices.shape.rank()));
  launch.i32(inner / unit.elements).range({uz(n)}, {kElementwiseGroup});
  if (part) push_part(candidate, launch, node);
  candidate.launches.push_back(launch);
  return {candidate};
}

}  // namespace

extern const Family kGatherFamily;
const Family kGatherFamily = [] {
  Family family;
  family.name = "gather";
  family.attrs = ir::attrs_type<GatherAttrs>();
  Operation lookup{kEmbeddingLookup, "EMBEDDING_LOOKUP", 2, 0, 1, 1};
  lookup.dequantizes = true;
  family.builtins = {{kGather, "GATHER", 2}, lookup};
  family.narrow = 1;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

int table_of(const ir::Node& node) {
  if (node.kind != &kGatherFamily) return -1;
  const auto& attrs = static_cast<const GatherAttrs&>(*node.attrs);
  const bool is_whole = attrs.axis == 0 && attrs.batch_dims == 0 && attrs.first < 0;
  return is_whole ? node.inputs[uz(attrs.table)] : -1;
}

ir::Node part_of_table(const ir::Node& node, int part, int first, int before, int result) {
  ir::Node made = node;
  GatherAttrs attrs = static_cast<const GatherAttrs&>(*node.attrs);
  attrs.first = first;
  made.attrs = share(attrs);
  made.inputs[uz(attrs.table)] = part;
  if (before >= 0) made.inputs.push_back(before);
  made.outputs = {result};
  return made;
}

ir::Node rows_of_table(const ir::Node& of, int table, int indices, int result) {
  ir::Node node;
  node.kind = &kGatherFamily;
  node.op = "GATHER";
  node.tflite_index = of.tflite_index;
  node.inputs = {table, indices};
  node.outputs = {result};
  node.attrs = share(GatherAttrs{});
  return node;
}

}  // namespace clgpu::ops
