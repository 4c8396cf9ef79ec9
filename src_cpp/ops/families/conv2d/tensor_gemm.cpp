// Engine `tensor_gemm`: NVIDIA's tensor cores; see ops/products/tensor_gemm.hpp.
#include "ops/products/tensor_gemm.hpp"

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {

std::vector<kernel::Candidate> tensor_gemm(const Convolution& conv) {
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
  return tensor_gemms(conv.node, conv.device, p);
}

}  // namespace clgpu::ops::conv2d
