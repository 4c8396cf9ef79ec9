// Family of REAL, IMAG and COMPLEX_ABS: a real number of each complex one.
#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kImag = 133, kReal = 134, kComplexAbs = 135;

/// Value of the macro PART in kernels/complex_parts/complex_parts.cl.
enum class Part : int { kReal = 0, kImaginary = 1, kAbsolute = 2 };

struct PartAttrs : ir::Attrs {
  Part part = Part::kReal;
  CLGPU_FIELDS(part)
  static const char* words(std::string_view member) {
    return member == "part" ? "real, imaginary, absolute" : "";
  }
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kC64);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  PartAttrs attrs;
  attrs.part = node.builtin() == kReal   ? Part::kReal
               : node.builtin() == kImag ? Part::kImaginary
                                         : Part::kAbsolute;
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& dst = node.output(0);
  const std::int64_t count = dst.shape.elements();
  kernel::Launch launch("complex_parts/complex_parts.cl", "complex_parts_elementwise");
  launch.macro("PART", static_cast<int>(node.attrs<PartAttrs>().part));
  launch.type("DST_T", dst.storage);
  launch.src(0).dst(0).i32(count).range({uz(count)}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kComplexPartsFamily;
const Family kComplexPartsFamily = [] {
  Family family;
  family.name = "complex_parts";
  family.attrs = ir::attrs_type<PartAttrs>();
  family.builtins = {{kImag, "IMAG", 1, 0, 1, -1},
                     {kReal, "REAL", 1, 0, 1, -1},
                     {kComplexAbs, "COMPLEX_ABS", 1, 0, 1, -1}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
