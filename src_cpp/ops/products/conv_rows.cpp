// Rows of convolutions: their own paddings make the filter begin further down, or above the image.
#include "ops/products/conv_rows.hpp"

namespace clgpu::ops {
namespace {

constexpr int kWeights = 1, kResidual = 3;  // inputs

int reach(int filter, int dilation) { return (filter - 1) * dilation + 1; }

int unit(const NodeContext&) { return 1; }

RowNeed need(const NodeContext& node, int input, RowRange rows) {
  if (input == 0) return conv_need(node, node.attrs<ConvAttrs>().geometry, kWeights, rows);
  if (input == kResidual) return {RowNeed::Kind::kExact, rows};
  return {};
}

ir::AttrsPtr attrs(const NodeContext& node, const RowBand& band) {
  return share(conv_band(node, node.attrs<ConvAttrs>(), kWeights, node.output(0).shape[2],
                         band.rows, band.inputs.at(0)));
}

}  // namespace

RowNeed conv_need(const NodeContext& node, const ConvGeometry& geometry, int weights,
                  RowRange rows) {
  const ir::Shape& image = node.input(0).shape;
  const ir::Shape& filter = node.input(weights).shape;
  const int top = windows(geometry, image[1], image[2], filter[1], filter[2]).h.before;
  RowNeed result{RowNeed::Kind::kRows};
  if (geometry.reflect) result.beyond = RowNeed::Beyond::kReflect;
  result.rows.first = rows.first * geometry.stride_h - top;
  result.rows.end =
      (rows.end - 1) * geometry.stride_h - top + reach(filter[1], geometry.dilation_h);
  return result;
}

ConvAttrs conv_band(const NodeContext& node, const ConvAttrs& attrs, int weights, int columns,
                    RowRange rows, RowRange image) {
  const ir::Shape& whole = node.input(0).shape;
  const ir::Shape& filter = node.input(weights).shape;
  const ConvGeometry& old = attrs.geometry;
  const ConvWindows at = windows(old, whole[1], whole[2], filter[1], filter[2]);
  ConvAttrs result = attrs;
  ConvGeometry& g = result.geometry;
  g.padding = kPaddingValid;
  g.extra_top = at.h.before + image.first - rows.first * old.stride_h;
  g.extra_bottom = (rows.count() - 1) * old.stride_h + reach(filter[1], old.dilation_h) -
                   image.count() - g.extra_top;
  g.extra_left = at.w.before;
  g.extra_right =
      (columns - 1) * old.stride_w + reach(filter[2], old.dilation_w) - whole[2] - at.w.before;
  return result;
}

const RowRules kConvRows{unit, need, attrs};

}  // namespace clgpu::ops
