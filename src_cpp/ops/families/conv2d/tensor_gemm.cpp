// Engine `tensor_gemm`: NVIDIA's tensor cores; see ops/products/tensor_gemm.hpp.
#include "ops/products/tensor_gemm.hpp"

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {

namespace {

TensorGemm product_of(const Convolution& conv) {
  TensorGemm p;
  p.src = kImage, p.weights = kWeights, p.bias = kBias;
  p.groups = conv.groups, p.src_group = conv.group_in, p.dst_group = conv.group_out;
  p.batch = conv.batch;
  p.in_h = conv.in_h, p.in_w = conv.in_w, p.in_c = conv.in_c;
  p.out_h = conv.out_h, p.out_w = conv.out_w, p.out_c = conv.out_c;
  p.filter_h = conv.filter_h, p.filter_w = conv.filter_w;
  p.group_in = conv.group_in, p.group_out = conv.group_out;
  p.stride_h = conv.geometry.stride_h, p.stride_w = conv.geometry.stride_w;
  p.dilation_h = conv.geometry.dilation_h, p.dilation_w = conv.geometry.dilation_w;
  p.top = conv.at.h.before, p.left = conv.at.w.before;
  p.reflect = conv.geometry.reflect;
  return p;
}

}  // namespace

std::vector<kernel::Candidate> tensor_gemm(const Convolution& conv) {
  return tensor_gemms(conv.node, conv.device, product_of(conv));
}

/// The first convolution of most networks: copies of one pixel are as short as 4 bytes, which takes
/// longer than the products.
std::vector<kernel::Candidate> tensor_pairs(const Convolution& conv) {
  const DType storage = conv.image_storage(), weights = conv.node.input(kWeights).storage;
  const bool halves =
      (storage == DType::kF16 || (storage == DType::kF32 && conv.node.allows_half())) &&
      is_float(weights);
  const bool integers = conv.quantized() && storage == DType::kI8 && weights == DType::kI8;
  const ConvGeometry& g = conv.geometry;
  if (!(halves || integers) || conv.in_c > 4 || conv.groups != 1 || g.stride_w != 2 ||
      g.dilation_w != 1 || conv.filter_w < 3 || g.reflect)
    return {};
  if (std::int64_t{conv.batch} * conv.in_h * (conv.in_w + 1) * 4 > INT32_MAX) return {};
  TensorGemm p = product_of(conv);
  const int skipped = p.left & 1;  // also where the image is cropped, which is a negative border
  p.pairs = TensorGemm::Pairs{conv.in_w, conv.in_c, conv.filter_w, skipped};
  p.filter_w = (p.filter_w + skipped + 1) / 2;
  p.left = (p.left + skipped) / 2;
  p.in_w = (p.in_w + 1) / 2, p.stride_w = 1;
  p.in_c = p.group_in = 8;
  p.src_group = p.group_in;
  return tensor_gemms(conv.node, conv.device, p);
}

}  // namespace clgpu::ops::conv2d
