// FULLY_CONNECTED as a convolution with rows as its pixels.
#include "ops/families/fully_connected.hpp"
#include "ops/products/half_sums.hpp"
#include "ops/products/pairs.hpp"
#include "ops/products/quads.hpp"

namespace clgpu::ops::fully_connected {
namespace {

/// The geometry of a convolution (Convolution::push_geometry) with one row of pixels and a filter
/// of one element.
void push_geometry(kernel::Launch& launch, const Products& size) {
  launch.i32(1).i32(size.rows).i32(size.depth);
  launch.i32(1).i32(size.rows).i32(size.cols);
  launch.i32(1).i32(1).i32(1).i32(1).i32(1).i32(1);  // filter, strides, dilations
  launch.i32(0).i32(0);                              // border
}

}  // namespace

std::vector<kernel::Candidate> pairs(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device) {
  const ir::Tensor& dst = node.output(0);
  std::vector<kernel::Candidate> result;
  if (!dst.is_quantized() || dst.dtype == DType::kI16 || !node.input(kWeights).is_constant())
    return result;
  const PairProducts products{kSrc, kWeights, size.rows, 1, size.cols, size.depth};
  for (const PairTile& tile : pair_tiles(products, device)) {
    kernel::Scratch packed{0};
    const kernel::Launch pack = pack_pairs(node, products, tile, packed);
    const ChannelTable channels = channel_table(
        node, kProduct, {size.cols, size.depth, size.depth, 1}, 1, Requantization::kReal);
    kernel::Launch launch("conv2d/pairs.cl", "conv2d_pairs");
    launch.type("SRC_T", node.input(kSrc).storage).macro("REFLECT", 0).macro("POINTWISE", 1);
    set_result_types(launch, node, kBias, Requantization::kReal);
    push_pairs(launch, node, device, products, tile, channels);
    push_geometry(launch, size);
    launch.i32(node.input(kSrc).zero_point());
    result.push_back(
        {tile.name(), {pack, channels.launch, launch}, {packed, channels.scales, channels.result}});
  }
  return result;
}

std::vector<kernel::Candidate> quads(const NodeContext& node, const Products& size,
                                     const DeviceInfo& device) {
  const ir::Tensor& dst = node.output(0);
  std::vector<kernel::Candidate> result;
  if (dst.dtype == DType::kI16 || is_hybrid(node) || !node.input(kWeights).is_constant())
    return result;
  const int depth = static_cast<int>(size.depth), cols = static_cast<int>(size.cols);
  const QuadProduct product{kSrc,  kWeights,           size.rows,         1, depth, cols,
                            depth, /*pointwise=*/true, dst.is_quantized()};
  for (const QuadTile& tile : quad_tiles(node, product, device)) {
    kernel::Candidate candidate = pack_quads(node, product, device, tile);
    kernel::Launch launch(product.file(), product.entry());
    launch.type("SRC_T", node.input(kSrc).storage).macro("REFLECT", 0);
    set_result_types(launch, node, kBias, Requantization::kReal);
    set_quads(launch, node, product, device, tile);
    if (product.int8) {
      const ChannelTable table =
          channel_table(node, kProduct, {size.cols, size.depth, size.depth, 1}, 1,
                        Requantization::kReal, /*as_int8=*/true);
      candidate.launches.push_back(table.launch);
      candidate.scratch.insert(candidate.scratch.end(), {table.scales, table.result});
      push_channels(launch, node, table);
      push_result(launch, result_layout(node));
    } else {
      push_result(launch, node, kBias);
    }
    launch.i32(size.rows).i32(size.depth).i32(size.cols);
    push_geometry(launch, size);
    push_quad_zeros(launch, node, product);
    candidate.launches.push_back(launch);
    result.push_back(std::move(candidate));
  }
  return with_half_forms(node, device, std::move(result));
}

}  // namespace clgpu::ops::fully_connected
