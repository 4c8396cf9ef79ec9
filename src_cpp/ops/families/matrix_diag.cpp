// Family of MATRIX_DIAG and MATRIX_SET_DIAG.
#include <algorithm>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kMatrixDiag = 113, kMatrixSetDiag = 115;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const bool replaces = node.builtin() == kMatrixSetDiag;
  for (int i = 0; i < node.input_count(); ++i) {
    if (auto refusal = check_moved(node, i)) return *refusal;
  }
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kI64, DType::kI32, DType::kI16,
                    DType::kI8, DType::kU8, DType::kBF16, DType::kU16, DType::kU32);
  CLGPU_REFUSE_RANK(node.input(0), "input", replaces ? 2 : 1, replaces ? kMaxRank : kMaxRank - 1);
  CLGPU_REFUSE_IF(node.input(replaces ? 1 : 0).dtype() != node.input(0).dtype(), Why::kOperands,
                  "the matrices and the diagonals", "have different types");
  return Imported{share(ir::Attrs{}), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  std::vector<int> dims = src.dims();
  if (node.input_count() == 1) {
    dims.push_back(dims.back());
    return {ir::Shape(dims)};
  }
  const int last = std::min(src.back(0), src.back(1));
  dims.pop_back();
  dims.back() = last;
  if (node.input(1).shape != ir::Shape(dims)) {
    throw ShapeError("diagonals " + node.input(1).shape.str() + " do not fit matrices " +
                     src.str());
  }
  return {src};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& dst = node.output(0);
  const bool replaces = node.input_count() == 2;
  const int diagonal = replaces ? 1 : 0;
  const std::int64_t count = dst.shape.elements();
  kernel::Launch launch("matrix_diag/matrix_diag.cl", "matrix_diag_elementwise");
  launch.macro("REPLACES", replaces ? 1 : 0);
  launch.type("DIAGONAL_T", node.input(diagonal).storage).type("DST_T", dst.storage);
  if (replaces) launch.type("SRC_T", node.input(0).storage).src(0);
  launch.src(diagonal).dst(0).i32(count).i32(dst.shape.back(1)).i32(dst.shape.back(0));
  launch.range({uz(count)}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kMatrixDiagFamily;
const Family kMatrixDiagFamily = [] {
  Family family;
  family.name = "matrix_diag";
  family.builtins = {{kMatrixDiag, "MATRIX_DIAG"}, {kMatrixSetDiag, "MATRIX_SET_DIAG", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
