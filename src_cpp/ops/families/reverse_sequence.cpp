// Family of REVERSE_SEQUENCE: each sequence of a batch is reversed up to its own length.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

struct SequenceAttrs : ir::Attrs {
  int sequence = 0, batch = 1;  ///< axes
  CLGPU_FIELDS(sequence, batch)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI32, DType::kI64, DType::kI16,
                    DType::kI8, DType::kU8);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of lengths", DType::kI32, DType::kI64);
  CLGPU_REFUSE_RANK(node.input(0), "input", 2);
  CLGPU_REFUSE_RANK(node.input(1), "the input of lengths", 1, 1);
  const auto* params = node.params<tfl::ReverseSequenceParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const int last = node.input(0).rank() - 1;
  const auto is_axis = [&](int axis) { return axis >= 0 && axis <= last; };
  CLGPU_REFUSE_IF(!is_axis(params->seq_dim) || !is_axis(params->batch_dim) ||
                      params->seq_dim == params->batch_dim,
                  Why::kParameter, "the axes of sequences and batches",
                  "are not two axes of the input");
  SequenceAttrs attrs;
  attrs.sequence = params->seq_dim;
  attrs.batch = params->batch_dim;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  const int batches = src[node.attrs<SequenceAttrs>().batch];
  if (node.input(1).shape[0] != batches) {
    throw ShapeError(std::to_string(node.input(1).shape[0]) + " lengths do not fit " +
                     std::to_string(batches) + " sequences");
  }
  return {src};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<SequenceAttrs>();
  const ir::Tensor& src = node.input(0);
  const std::int64_t count = src.shape.elements();
  const std::vector<int> strides = src.shape.strides();
  kernel::Launch launch("reverse_sequence/reverse_sequence.cl", "reverse_sequence_elementwise");
  launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
  launch.type("LENGTH_T", node.input(1).storage);
  launch.src(0).src(1).dst(0).i32(count);
  for (const int axis : {attrs.sequence, attrs.batch})
    launch.i32(src.shape[axis]).i32(strides[uz(axis)]);
  launch.range({uz(count)}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kReverseSequenceFamily;
const Family kReverseSequenceFamily = [] {
  Family family;
  family.name = "reverse_sequence";
  family.attrs = ir::attrs_type<SequenceAttrs>();
  family.builtins = {{112, "REVERSE_SEQUENCE", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
