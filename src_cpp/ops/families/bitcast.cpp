// Family of BITCAST: the same bits as elements of another type.
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView&) { return Imported{share(ir::Attrs{}), {}}; }

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  const std::size_t from = size_of(node.input(0).dtype), to = size_of(node.output(0).dtype);
  std::vector<int> dims = src.dims();
  if (from > to) dims.push_back(static_cast<int>(from / to));
  if (from < to) {
    const int parts = static_cast<int>(to / from);
    if (dims.empty() || dims.back() != parts) {
      throw ShapeError("the last axis of " + src.str() + " does not have " + std::to_string(parts) +
                       " elements, of which a " + name_of(node.output(0).dtype) + " is made");
    }
    dims.pop_back();
  }
  return {ir::Shape(dims)};
}

bool is_rounded(const ir::Tensor& tensor) { return tensor.storage != tensor.dtype; }

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  if (is_rounded(src) == is_rounded(dst) && (!is_rounded(src) || src.storage == dst.storage)) {
    // Bytes; between floats that are both stored in the same 16 bits these are those.
    const std::int64_t bytes =
        src.shape.elements() * static_cast<std::int64_t>(size_of(src.storage));
    if (bytes > INT32_MAX) throw ShapeError(src.shape.str() + " has more than 2147483647 bytes");
    const StridedCopy copy{{static_cast<int>(bytes)}, {1}};
    return {{"same_bits", {strided_copy(copy, DType::kU8, DType::kU8)}, {}}};
  }
  const ir::Tensor& floats = is_rounded(src) ? src : dst;
  const std::int64_t count = floats.shape.elements();
  kernel::Launch launch("bitcast/bitcast.cl", "bitcast_halves");
  launch.type("SRC_T", is_rounded(src) ? src.storage : DType::kI32);
  launch.type("DST_T", is_rounded(dst) ? dst.storage : DType::kI32);
  launch.src(0).dst(0).i32(count).range({uz(count)}, {kElementwiseGroup});
  return {{"halves", {launch}, {}}};
}

}  // namespace

extern const Family kBitcastFamily;
// No view: fp16 may store one of the tensors as half.
const Family kBitcastFamily = [] {
  Family family;
  family.name = "bitcast";
  family.builtins = {{159, "BITCAST", 1, 0, 1, -1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
