// dot8.cl - sums of four products of 8-bit integers
//
// A word is a uint that holds four int8: the first in its lowest byte, as a little-endian device reads them.
//
// DOT8_ADD(a, b, sum)  sum + a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3 for the words a and b; int, wraps around
//
// DOT8_ADD4(a, b, sum)  an int4 of such sums: the word a with each of the four words of b
//
// Macros    DOT8  0..3, clgpu::Dot8: 0 plain C, 1 cl_khr_integer_dot_product (packed),
//                 2 cl_arm_integer_dot_product_accumulate_int8, 3 NVIDIA's dp4a

#if DOT8 == 1
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#define DOT8_ADD(a, b, sum) ((sum) + dot_4x8packed_ss_int(a, b))
#elif DOT8 == 2
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable
#define DOT8_ADD(a, b, sum) arm_dot_acc(as_char4(a), as_char4(b), sum)
#elif DOT8 == 3
static inline int dot8_nvidia(uint a, uint b, int sum) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}
#define DOT8_ADD(a, b, sum) dot8_nvidia(a, b, sum)
#else
static inline int dot8_plain(uint a, uint b, int sum) {
  const int4 products = convert_int4(as_char4(a)) * convert_int4(as_char4(b));
  return sum + (products.x + products.y) + (products.z + products.w);
}
#define DOT8_ADD(a, b, sum) dot8_plain(a, b, sum)
#endif
#define DOT8_ADD4(a, b, sum)                                           \
  (int4)(DOT8_ADD(a, (b).s0, (sum).s0), DOT8_ADD(a, (b).s1, (sum).s1), \
         DOT8_ADD(a, (b).s2, (sum).s2), DOT8_ADD(a, (b).s3, (sum).s3))
