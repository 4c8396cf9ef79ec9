// Variant of FULLY_CONNECTED; the pass fuse_products makes its nodes.
#include "ops/families/fully_connected_fused.hpp"

#include <algorithm>
#include <vector>

#include "ir/fields.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/composite.hpp"
#include "ops/families/fully_connected.hpp"
#include "ops/families/rotate.hpp"
#include "ops/shared/parts.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {

extern const Family kBinaryFamily;
extern const Family kCompositeFamily;
extern const Family kDynamicUpdateSliceFamily;
extern const Family kFullyConnectedFamily;
extern const Family kRotateFamily;
extern const Family kRotatedUpdateFamily;

namespace {

using namespace fully_connected;

constexpr int kResidual = 3;  // input

/// The original nodes, except for their tensors' numbers.
struct FusedAttrs : ir::Attrs {
  ir::Node product;
  std::optional<ir::Node> norm, other, gate, end;
  CLGPU_FIELDS(product, norm, other, gate, end)
};

/// The update of a part of a tensor by rows that lie there one after the other; none for others.
std::optional<Fusion::Update> update_of(const ir::Shape& old, const ir::Shape& part) {
  int axis = 0;
  while (axis + 1 < old.rank() && old[axis] == 1) ++axis;
  std::int64_t row = 1;
  for (int i = axis + 1; i < old.rank(); ++i) {
    if (part[i] != old[i]) return std::nullopt;
    row *= old[i];
  }
  return Fusion::Update{axis, old[axis] - part[axis], row};
}

Fusion fusion_of(const NodeContext& node) {
  const auto& attrs = node.attrs<FusedAttrs>();
  Fusion fusion;
  fusion.normed = attrs.norm.has_value();
  if (fusion.normed) fusion.epsilon = rms_norm_epsilon(*attrs.norm).value();
  fusion.gated = attrs.gate.has_value();
  if (!attrs.end) return fusion;
  // Output 1 of a node with one, or 2 behind normalised rows, are the rows.
  const ir::Shape& rows = node.output(attrs.norm ? 2 : 1).shape;
  const RowsEnd end = rows_end(*attrs.end).value();
  if (end.cosine >= 0) fusion.apart = rows.back(0) / 2;
  if (end.old >= 0) fusion.update = update_of(node.output(0).shape, rows);
  return fusion;
}

/// The nodes in their order, with their tensors' numbers in this graph.
std::vector<ir::Node> parts_of(const NodeContext& node) {
  const auto& attrs = node.attrs<FusedAttrs>();
  const ir::Node& whole = node.node();
  std::vector<ir::Node> parts;
  std::size_t outputs = 0;
  const auto add = [&](ir::Node part, std::vector<int> inputs, bool is_last) {
    while (inputs.back() < 0) inputs.pop_back();
    part.inputs = std::move(inputs);
    part.outputs = {whole.outputs[is_last ? 0 : ++outputs]};
    parts.push_back(std::move(part));
    return parts.back().outputs[0];
  };
  const auto input = [&](int slot) { return node.has_input(slot) ? whole.inputs[uz(slot)] : -1; };
  int src = input(kSrc);
  if (attrs.norm) src = add(*attrs.norm, {src, input(kNormWeight)}, false);
  ir::Node product = attrs.product;
  product.epilogue = whole.epilogue;
  const int result =
      add(product, {src, input(kWeights), input(kBias), input(kResidual), -1, input(kWeightScales)},
          !attrs.gate && !attrs.end);
  if (attrs.end) {
    const std::vector<int> turned = {result, input(kCosines), input(kSines)};
    const std::vector<int> update = {input(kOld), result, input(kStart)};
    const RowsEnd end = rows_end(*attrs.end).value();
    std::vector<int> inputs = end.old < 0 ? turned : update;
    if (end.old >= 0 && end.cosine >= 0)
      inputs.insert(inputs.end(), {input(kCosines), input(kSines)});
    add(*attrs.end, std::move(inputs), true);
    return parts;
  }
  if (!attrs.gate) return parts;
  const int other =
      add(*attrs.other, {src, input(kWeights2), -1, -1, -1, input(kWeightScales2)}, false);
  add(*attrs.gate, {result, other}, true);
  return parts;
}

ir::Shapes infer(const NodeContext& node) {
  ir::Shapes shapes;
  const auto& attrs = node.attrs<FusedAttrs>();
  if (attrs.end) {
    // The rows have the shape in which they are turned or written, which only RESHAPE knows.
    const std::vector<ir::Node> parts = parts_of(node);
    for (const ir::Node& part : parts) shapes.push_back(node.graph().tensor(part.outputs[0]).shape);
    shapes.back() = family_of(parts.back()).infer(NodeContext(node.graph(), parts.back())).at(0);
    std::rotate(shapes.begin(), shapes.end() - 1, shapes.end());
    return shapes;
  }
  for (ir::Node& part : parts_of(node)) {
    // The gate multiplies tensors of one shape, and rows keep theirs when they are normalised.
    const bool is_gate = shapes.size() == (attrs.norm ? 3U : 2U);
    if (!is_gate) part.inputs[0] = node.node().inputs[kSrc];
    shapes.push_back(is_gate ? shapes.back()
                             : family_of(part).infer(NodeContext(node.graph(), part)).at(0));
  }
  std::rotate(shapes.begin(), shapes.end() - 1, shapes.end());
  return shapes;
}

Products size_of_product(const NodeContext& node) {
  const ir::Shape& weights = node.input(kWeights).shape;
  return {node.input(kSrc).shape.elements() / weights[1], weights[0], weights[1], 1};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  auto list = warps(node, size_of_product(node), device, fusion_of(node));
  // Of its own name: where one kernel does not work, the other may.
  const char* const name = node.attrs<FusedAttrs>().end ? "ended" : "fused";
  for (kernel::Candidate& candidate : list) candidate.name = name;
  const std::vector<ir::Node> parts = parts_of(node);
  list.push_back(separate(node, parts, device, false));
  // Where the PTX of this kernel fails, that of a part fails, too.
  list.push_back(separate(node, parts, device, false, /*tensor_cores=*/false));
  list.push_back(separate(node, parts, device, true));
  return list;
}

double flops(const NodeContext& node) {
  double sum = 0;
  for (const ir::Node& part : parts_of(node)) sum += work_of(NodeContext(node.graph(), part)).flops;
  return sum;
}

bool has(const ir::Node& node, int slot) {
  return uz(slot) < node.inputs.size() && node.inputs[uz(slot)] >= 0;
}

/// Whether the kernel multiplies by weights like these.
bool alike(const ir::Tensor& a, const ir::Tensor& b) {
  if (a.shape != b.shape || a.storage != b.storage || !b.is_constant()) return false;
  const auto &p = a.quantization, &q = b.quantization;
  if ((p == nullptr) != (q == nullptr)) return false;
  return p == nullptr || (p->narrow == q->narrow && p->block == q->block);
}

bool suits(const ir::Graph& graph, const ProductParts& parts) {
  const ir::Node& product = *parts.product;
  if (product.kind != &kFullyConnectedFamily || product.tail != nullptr ||
      has(product, kRowFactors) || has(product, product.kind->slopes))
    return false;
  if (parts.norm != nullptr) {
    const ir::Node& norm = *parts.norm;
    if (!rms_norm_epsilon(norm) || norm.inputs.size() != 2 || !norm.epilogue.empty() ||
        product.inputs[kSrc] != norm.outputs[0] || norm.predicate >= 0)
      return false;
    const ir::Tensor &row = graph.tensor(norm.outputs[0]), &before = graph.tensor(norm.inputs[0]);
    // FULLY_CONNECTED flattens its input: what it multiplies may be several rows of the
    // normalisation.
    const int depth = graph.tensor(product.inputs[kWeights]).shape[1];
    if (row.shape.rank() == 0 || row.shape.back(0) != depth ||
        graph.tensor(norm.inputs[1]).shape.elements() != depth)
      return false;
    // A plan of precisions may round one and not the other.
    if (row.storage != before.storage) return false;
    // Nobody writes the normalised rows any more, so they cannot be added either.
    const auto reads = std::count(product.inputs.begin(), product.inputs.end(), norm.outputs[0]);
    if (reads != 1) return false;
  }
  if (parts.gate == nullptr) return true;
  const ir::Node &other = *parts.other, &gate = *parts.gate;
  const auto* attrs = dynamic_cast<const BinaryAttrs*>(gate.attrs.get());
  const std::vector<int> results = {product.outputs[0], other.outputs[0]};
  if (attrs == nullptr || attrs->op != BinaryOp::kMul || attrs->quantized ||
      !gate.epilogue.empty() || gate.inputs.size() != 2 ||
      !std::is_permutation(results.begin(), results.end(), gate.inputs.begin()))
    return false;
  const ir::Shape& shape = graph.tensor(gate.outputs[0]).shape;
  for (const int result : results) {
    if (graph.tensor(result).shape != shape) return false;  // the gate broadcasts
  }
  const auto predicate = [](const ir::Node& node) {
    return std::pair(node.predicate, node.predicate_element);
  };
  return other.kind == &kFullyConnectedFamily && other.inputs[kSrc] == product.inputs[kSrc] &&
         !has(other, kBias) && !has(other, kResidual) && !has(product, kResidual) &&
         !has(other, kRowFactors) && other.tail == nullptr && other.epilogue.empty() &&
         has(other, kWeightScales) == has(product, kWeightScales) &&
         predicate(other) == predicate(product) && predicate(gate) == predicate(product) &&
         alike(graph.tensor(product.inputs[kWeights]), graph.tensor(other.inputs[kWeights]));
}

}  // namespace

bool is_fully_connected(const ir::Node& node) { return node.kind == &kFullyConnectedFamily; }

std::optional<ir::Node> fused_product(const ir::Graph& graph, const ProductParts& parts,
                                      const DeviceInfo& device) {
  if (!suits(graph, parts)) return std::nullopt;
  // Larger weights are divided (passes/split_weights.cpp), which these nodes cannot be.
  const ir::Tensor& weights = graph.tensor(parts.product->inputs[kWeights]);
  const std::uint64_t largest = device.max_object_bytes / 2;  // 0: not known
  if (largest > 0 && static_cast<std::uint64_t>(weights.storage_bytes()) > largest)
    return std::nullopt;
  ir::Node node = *parts.product;
  node.kind = &kFusedFullyConnectedFamily;
  node.outputs.clear();
  FusedAttrs attrs;
  attrs.product = *parts.product;
  const auto set = [&](int slot, int tensor) {
    if (node.inputs.size() <= uz(slot)) node.inputs.resize(uz(slot) + 1, -1);
    node.inputs[uz(slot)] = tensor;
  };
  if (parts.norm != nullptr) {
    attrs.norm = *parts.norm;
    set(kSrc, parts.norm->inputs[0]);
    set(kNormWeight, parts.norm->inputs[1]);
    node.outputs.push_back(parts.norm->outputs[0]);
  }
  if (parts.gate != nullptr) {
    attrs.other = *parts.other;
    attrs.gate = *parts.gate;
    set(kWeights2, parts.other->inputs[kWeights]);
    if (has(*parts.other, kWeightScales))
      set(kWeightScales2, parts.other->inputs[uz(kWeightScales)]);
    node.outputs.insert(node.outputs.end(), {parts.product->outputs[0], parts.other->outputs[0]});
  }
  const ir::Node& last = parts.gate != nullptr ? *parts.gate : *parts.product;
  node.outputs.insert(node.outputs.begin(), last.outputs[0]);
  node.attrs = share(std::move(attrs));
  const NodeContext context(graph, node);
  if (warps(context, size_of_product(context), device, fusion_of(context)).empty())
    return std::nullopt;
  return node;
}

std::optional<ir::Node> ended_product(const ir::Graph& graph, const ir::Node& product,
                                      const ir::Node& end, int part, const DeviceInfo& device) {
  const auto inputs = rows_end(end);
  const bool is_fused = product.kind == &kFusedFullyConnectedFamily;
  if (!inputs || inputs->rows != part || product.predicate >= 0 || end.predicate >= 0 ||
      !end.epilogue.empty() || !product.epilogue.empty() || has(product, kResidual))
    return std::nullopt;
  if (!is_fused && !suits(graph, {nullptr, &product})) return std::nullopt;
  FusedAttrs attrs;
  if (is_fused) {
    attrs = static_cast<const FusedAttrs&>(*product.attrs);
    if (attrs.gate) return std::nullopt;
  } else {
    attrs.product = product;
  }
  attrs.end = end;
  const ir::Tensor &rows = graph.tensor(part), &result = graph.tensor(end.outputs[0]);
  // One row: the angles of others may differ.
  const std::int64_t cols = graph.tensor(product.inputs[kWeights]).shape[0];
  if (rows.shape.elements() != cols || rows.storage != graph.tensor(product.outputs[0]).storage)
    return std::nullopt;
  if (inputs->cosine >= 0) {
    const ir::Shape& table = graph.tensor(inputs->cosine).shape;
    const bool same = table.elements() == table.back(0);  // for all heads
    if (!same) return std::nullopt;
  }
  if (inputs->old >= 0) {
    const ir::Tensor& old = graph.tensor(inputs->old);
    // What is copied with the rest has one type, and kernels count elements with 32 bits.
    if (old.storage != result.storage || old.shape.elements() > INT32_MAX ||
        !update_of(old.shape, rows.shape))
      return std::nullopt;
  }
  ir::Node node = product;
  node.kind = &kEndedFullyConnectedFamily;
  node.outputs = {end.outputs[0]};
  if (attrs.norm) node.outputs.push_back(product.outputs[1]);
  node.outputs.push_back(part);
  node.inputs.resize(kStart + 1, -1);
  node.inputs[kCosines] = inputs->cosine;
  node.inputs[kSines] = inputs->sine;
  node.inputs[kOld] = inputs->old;
  node.inputs[kStart] = inputs->start;
  node.attrs = share(std::move(attrs));
  const NodeContext context(graph, node);
  if (warps(context, size_of_product(context), device, fusion_of(context)).empty())
    return std::nullopt;
  return node;
}

Family fully_connected::fused_family() {
  Family family;
  family.variant = "fused";
  family.bundled = true;
  family.attrs = ir::attrs_type<FusedAttrs>();
  family.has_epilogue = true;
  family.residual = kResidual;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.bias = kBias;
  family.weights.out_axis = 0;
  family.work_kind = WorkKind::kProduct;
  family.fuses = {&kFullyConnectedFamily, &kCompositeFamily, &kBinaryFamily};
  return family;
}

Family fully_connected::ended_family() {
  Family family = fused_family();
  family.variant = "ended";
  family.has_epilogue = false;
  family.residual = -1;
  family.writes_slices = false;
  family.fuses.push_back(&kRotateFamily);
  family.fuses.push_back(&kRotatedUpdateFamily);
  family.fuses.push_back(&kDynamicUpdateSliceFamily);
  return family;
}

}  // namespace clgpu::ops
