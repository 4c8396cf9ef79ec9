// Engine `tensor_gemm` of the families of convolutions and matrix products: NVIDIA's tensor cores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/products/matmul.hpp"

namespace clgpu::ops {

/// Groups of convolutions, or of matrix products (images of height 1, filters of 1 x 1). See
/// kernels/tensor_gemm/tensor_gemm_nvidia.cl.
struct TensorGemm {
  int src = 0, weights = 1, bias = -1;  ///< inputs of the node; no bias: -1
  /// The layout of the weights is [groups, depth, group_out], not [groups, group_out, depth].
  bool transposed = false;
  int groups = 1;
  std::int64_t src_group = 0, dst_group = 0;  ///< elements between groups of src; of bias and dst
  int batch = 1, in_h = 1, in_w = 1, in_c = 1, out_h = 1, out_w = 1, out_c = 1;
  int filter_h = 1, filter_w = 1, group_in = 1, group_out = 1;
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, top = 0, left = 0;
  bool reflect = false;  ///< the image is mirrored at its border, not zero
  /// Weights of int8 with a scale per channel, of a float product, are widened to half in each
  /// inference, where they stay in memory as they are.
  bool widens = false;
  Requantization requantization = Requantization::kShifts;  ///< if the result is quantised

  /// src: [groups, rows, depth]; weights: groups times [cols, depth] (or see `transposed`).
  static TensorGemm matmul(const Products& products) {
    TensorGemm p;
    p.groups = static_cast<int>(products.count);
    p.src_group = products.rows * products.depth, p.dst_group = products.rows * products.cols;
    p.in_w = p.out_w = static_cast<int>(products.rows);
    p.in_c = p.group_in = static_cast<int>(products.depth);
    p.out_c = p.group_out = static_cast<int>(products.cols);
    return p;
  }

  /// Columns of an image of few channels in pairs: a launch makes it halves (int8 stays), of four
  /// channels, and two pixels become one. Sizes are those of the result, and the filter has zeros
  /// around weights.
  struct Pairs {
    int width = 0, channels = 0;  ///< of src
    int columns = 0;              ///< of the weights
    int skipped = 0;              ///< columns of zeros before them
  };
  std::optional<Pairs> pairs;

  std::int64_t pixels() const { return std::int64_t{batch} * out_h * out_w; }
  std::int64_t depth() const { return std::int64_t{filter_h} * filter_w * group_in; }
};

/// Operands of tensor cores; the numbers are the macro MMA_TYPE of kernels/common/mma.cl.
enum class Mma : int {
  kHalf = 0,
  kTf32 = 1,
  kInt8 = 2,
  kHalfOfFour = 3,
  kInt8OfFour = 4,
  kPairs = 5,  ///< floats as sums of two bfloat16 numbers, on devices with kTf32
};

/// Those for a tensor stored as `storage`: int8 for integers of 8 bits, half or TF32 for floats.
/// `of_four`: four warps multiply together, which is there for half and int8.
inline Mma mma_of(DType storage, bool of_four = false) {
  if (storage == DType::kF32) return Mma::kTf32;
  if (is_float(storage)) return of_four ? Mma::kHalfOfFour : Mma::kHalf;
  return of_four ? Mma::kInt8OfFour : Mma::kInt8;
}

/// Why the kernels for tensor cores, which read and write floats and halves by means of their own,
/// cannot compute a node with a tensor of bfloat16 besides its weights; empty if it has none.
std::string bfloat_problem(const NodeContext& node, int weights);

inline bool has_mma(const DeviceInfo& device, Mma type) {
  return type == Mma::kHalf ? device.mma_f16 : type == Mma::kTf32 ? device.mma_tf32 : device.mma_s8;
}

/// Candidates "tensor_gemm_<pixels>x<channels>...", best guess first: half operands if the source
/// is half, TF32 if it is float and the node allows that, int8 if it is int8. None if the device
/// has no tensor cores; one that gives the reason if only this node cannot use them.
std::vector<kernel::Candidate> tensor_gemms(const NodeContext& node, const DeviceInfo& device,
                                            const TensorGemm& product);

}  // namespace clgpu::ops
