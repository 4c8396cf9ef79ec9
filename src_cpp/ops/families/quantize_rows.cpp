// Family of the activations of hybrid arithmetic: rows of floats to int8. A family without an
// operation: passes::dynamic_range makes its nodes.
#include "ops/families/quantize_rows.hpp"

#include <algorithm>

#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSrc = 0, kFilter = 1;  // inputs

OrRefusal<Imported> import(const tfl::NodeView&) {
  return Refusal{Why::kNoKernels, "", "no operation is imported"};
}

ConvWindows border_of(const NodeContext& node) {
  const ir::Shape& src = node.input(kSrc).shape;
  const ir::Shape& filter = node.input(kFilter).shape;
  return windows(*node.attrs<QuantizeRowsAttrs>().border, src[1], src[2], filter[1], filter[2]);
}

std::int64_t rows_of(const NodeContext& node) {
  const auto& attrs = node.attrs<QuantizeRowsAttrs>();
  const ir::Shape& src = node.input(kSrc).shape;
  return attrs.depth > 0 ? src.elements() / attrs.depth : src[0];
}

/// Length of the part of an axis that the windows cover, including the border before the image.
int covered(const Window& window, int in, int filter, int stride, int dilation) {
  return std::max((window.out - 1) * stride + (filter - 1) * dilation + 1, window.before + in);
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<QuantizeRowsAttrs>();
  ir::Shape dst = node.input(kSrc).shape;
  if (attrs.depth > 0 && dst.elements() % attrs.depth != 0) {
    throw ShapeError("input " + dst.str() + " is not made of rows of " +
                     std::to_string(attrs.depth));
  }
  const ir::Shape factors{static_cast<int>(rows_of(node)), 2};
  if (attrs.border) {
    const ConvWindows at = border_of(node);
    const ConvGeometry& g = *attrs.border;
    const ir::Shape& filter = node.input(kFilter).shape;
    dst[1] = covered(at.h, dst[1], filter[1], g.stride_h, g.dilation_h);
    dst[2] = covered(at.w, dst[2], filter[2], g.stride_w, g.dilation_w);
  }
  return {dst, factors};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const std::size_t items = group_of(64, device);
  const auto& attrs = node.attrs<QuantizeRowsAttrs>();
  const ir::Shape &src = node.input(kSrc).shape, &dst = node.output(0).shape;
  const std::int64_t rows = rows_of(node), elements = src.elements() / rows;
  // As many parts as keep the device busy, each with some elements per item.
  const std::int64_t wanted = ceil_div(4 * device.compute_units, rows);
  const std::int64_t parts = std::clamp<std::int64_t>(
      std::min(wanted, elements / (8 * static_cast<std::int64_t>(items))), 1, 64);

  const auto make = [&](const char* entry) {
    kernel::Launch launch("quantize_rows/quantize_rows.cl", entry);
    launch.type("SRC_T", node.input(kSrc).storage).macro("PARTS", parts);
    launch.macro("ITEMS", static_cast<std::int64_t>(items));
    launch.macro("ASYMMETRIC", attrs.asymmetric ? 1 : 0);
    return launch.range({items * uz(parts), uz(rows)}, {items, 1});
  };
  kernel::Launch ranges = make("quantize_rows_ranges"), apply = make("quantize_rows");
  ranges.src(kSrc).scratch_out(0).i32(elements);
  apply.src(kSrc).scratch_in(0).dst(0).dst(1);
  if (attrs.border) {
    const ConvWindows at = border_of(node);
    apply.i32(src[1]).i32(src[2]).i32(src[3]).i32(dst[1]).i32(dst[2]);
    apply.i32(at.h.before).i32(at.w.before);
  } else {
    apply.i32(1).i32(1).i32(elements).i32(1).i32(1).i32(0).i32(0);
  }
  const std::int64_t bytes = rows * parts * 2 * static_cast<std::int64_t>(sizeof(float));
  return {{"parts", {ranges, apply}, {{bytes}}}};
}

}  // namespace

extern const Family kQuantizeRowsFamily;
const Family kQuantizeRowsFamily = [] {
  Family family;
  family.name = "quantize_rows";
  family.attrs = ir::attrs_type<QuantizeRowsAttrs>();
  family.core = true;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  return family;
}();

ir::Node quantize_rows(const QuantizeRowsAttrs& attrs, int src, int filter, int dst, int factors) {
  ir::Node node;
  node.kind = &kQuantizeRowsFamily;
  node.op = "QUANTIZE";
  node.inputs = {src, filter};
  node.outputs = {dst, factors};
  node.attrs = share(attrs);
  return node;
}

}  // namespace clgpu::ops
