// half.cl - dst = a * b + c in half arithmetic: a device computes in half if this builds and
//           gives the right numbers, whether it lists the extension or not
//
// Shapes    src: [2 * n, 3] half, rows of a, b and c; dst: [2 * n] half
// Launch    one work-item per two rows: global = (n), local = (1)
// Macros    none
// Numerics  half
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

__kernel void device_half(__global const half *src, __global half *dst) {
  const int i = get_global_id(0) * 6;
  const half2 a = (half2)(src[i], src[i + 3]), b = (half2)(src[i + 1], src[i + 4]);
  const half2 v = a * b + (half2)(src[i + 2], src[i + 5]);
  dst[i / 3] = v.s0;
  dst[i / 3 + 1] = v.s1;
}
