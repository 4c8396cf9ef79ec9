// halves.cl - halves of aligned vectors as words: NVIDIA's compiler makes an access of each half of vloada_half and
//             vstorea_half
//
// from_halves(bits)   the two halves of a word as floats, the first in the low bits; from_halves4(uint2),
//                     from_halves8(uint4): likewise
// as_halves(v)        two floats rounded to nearest even; as_halves4(float4), as_halves8(float8): likewise
// store16_halves(p, v)  writes sixteen; p is a multiple of 8 elements after the start of a buffer
//
// Functions only: common/types.cl, which has the types that all files share, uses them in macros. Other compilers for
// NVIDIA's GPUs (PoCL's) have the functions, too, which kernels for tensor cores call.
#if __NV_CL_C_VERSION || __NVPTX__
static inline float2 from_halves(uint bits) {
  float2 v;
  __asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(v.s0), "=f"(v.s1)
        : "r"(bits));
  return v;
}
static inline uint as_halves(float2 v) {
  uint bits;
  __asm(
      "{.reg .b16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; "
      "mov.b32 %0, {low, high};}"
      : "=r"(bits)
      : "f"(v.s0), "f"(v.s1));
  return bits;
}
static inline float4 from_halves4(uint2 v) {
  return (float4)(from_halves(v.s0), from_halves(v.s1));
}
static inline float8 from_halves8(uint4 v) {
  return (float8)(from_halves4(v.lo), from_halves4(v.hi));
}
static inline uint2 as_halves4(float4 v) { return (uint2)(as_halves(v.lo), as_halves(v.hi)); }
static inline uint4 as_halves8(float8 v) { return (uint4)(as_halves4(v.lo), as_halves4(v.hi)); }
static inline void store16_halves(__global half *p, float16 v) {
  *(__global uint4 *)p = as_halves8(v.lo);
  *(__global uint4 *)(p + 8) = as_halves8(v.hi);
}
#endif
