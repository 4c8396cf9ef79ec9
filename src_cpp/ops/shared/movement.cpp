// Moving elements without arithmetic.
#include "ops/shared/movement.hpp"

#include <cstdlib>
#include <numeric>

#include "ops/shared/common.hpp"

namespace clgpu::ops {

MoveUnit move_unit(DType src, DType dst, std::int64_t divisor) {
  if (src != dst) {
    CLGPU_CHECK(is_float(src) && is_float(dst));
    return {cl_name(src), cl_name(dst), 1};
  }
  const std::int64_t size = static_cast<std::int64_t>(size_of(src));
  std::int64_t bytes = 16;
  while (bytes > size && (divisor * size) % bytes != 0) bytes /= 2;
  const char* type = bytes == 16  ? "int4"
                     : bytes == 8 ? "int2"
                     : bytes == 4 ? "int"
                     : bytes == 2 ? "short"
                                  : "uchar";
  return {type, type, static_cast<int>(bytes / size)};
}

StridedCopy merged(const StridedCopy& copy) {
  StridedCopy result;
  result.base = copy.base;
  for (std::size_t k = 0; k < copy.dims.size(); ++k) {
    const int size = copy.dims[k], stride = copy.strides[k];
    if (size == 1) continue;
    if (!result.dims.empty() && result.strides.back() == size * stride) {
      result.dims.back() *= size;
      result.strides.back() = stride;
    } else {
      result.dims.push_back(size);
      result.strides.push_back(stride);
    }
  }
  return result;
}

kernel::Launch strided_copy(const StridedCopy& copy, DType src, DType dst) {
  StridedCopy c = merged(copy);
  std::int64_t divisor = 1;
  const bool contiguous = !c.dims.empty() && c.strides.back() == 1;
  if (contiguous) {
    divisor = std::gcd<std::int64_t>(c.dims.back(), c.base);
    for (std::size_t k = 0; k + 1 < c.strides.size(); ++k) {
      divisor = std::gcd(divisor, static_cast<std::int64_t>(std::abs(c.strides[k])));
    }
  }
  const MoveUnit unit = move_unit(src, dst, divisor);
  if (contiguous) {
    c.dims.back() /= unit.elements;
    c.base /= unit.elements;
    for (std::size_t k = 0; k + 1 < c.strides.size(); ++k) c.strides[k] /= unit.elements;
  }

  std::int64_t n = 1;
  for (const int d : c.dims) n *= d;
  const auto dims = six(c.dims, 1), strides = six(c.strides, 0);
  kernel::Launch launch("strided_copy/strided_copy.cl", "strided_copy");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.macro("AXES", axes_variant(c.dims.size()));
  launch.src(0).dst(0).i32(n).i32(c.base);
  for (std::size_t k = 1; k < 6; ++k) launch.i32(dims[k]);
  for (const int s : strides) launch.i32(s);
  launch.range({uz(n)}, {kElementwiseGroup});
  return launch;
}

int axes_variant(std::size_t axes) { return axes <= 2 ? 2 : axes <= 4 ? 4 : 6; }

std::array<int, 6> six(const std::vector<int>& values, int fill) {
  CLGPU_CHECK(values.size() <= 6);
  std::array<int, 6> result;
  result.fill(fill);
  for (std::size_t k = 0; k < values.size(); ++k) result[6 - values.size() + k] = values[k];
  return result;
}

}  // namespace clgpu::ops
