// more_types.cl - further element types: bfloat, ushort and uint
//
// kernel/sources.cpp writes this before the file of a launch that has such an element type, so the
// texts of all other programs do not contain it. Where the head of a kernel lists half, it takes
// bfloat, too: the upper half of a float, read and written as float like half. Where it lists int,
// its kernel takes ushort and uint if its family says so.
//
// Numerics  float to bfloat rounds to nearest even; a NaN becomes the quiet one of its sign
#include "common/types.cl"

typedef ushort bfloat;

static inline ushort bfloat_of(float x) {
  const uint bits = as_uint(x);
  const uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? ((bits >> 16) & 0x8000u) | 0x7FC0u : rounded;
}
#define BFLOAT_OF(N)                                                              \
  static inline ushort##N bfloat_of##N(float##N x) {                              \
    const uint##N bits = as_uint##N(x);                                           \
    const uint##N rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;         \
    const uint##N nan = ((bits >> 16) & 0x8000u) | 0x7FC0u;                       \
    return convert_ushort##N((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded); \
  }
BFLOAT_OF(4)
BFLOAT_OF(8)
BFLOAT_OF(16)

#define load_bfloat(p, i) as_float((uint)(p)[i] << 16)
#define load4_bfloat(p, i) as_float4(convert_uint4(vload4(0, (p) + (i))) << 16)
#define load8_bfloat(p, i) as_float8(convert_uint8(vload8(0, (p) + (i))) << 16)
#define load16_bfloat(p, i) as_float16(convert_uint16(vload16(0, (p) + (i))) << 16)
#define load4_aligned_bfloat(p, i) \
  as_float4(convert_uint4(*(__global const ushort4 *)((p) + (i))) << 16)
#define load8_aligned_bfloat(p, i) \
  as_float8(convert_uint8(*(__global const ushort8 *)((p) + (i))) << 16)
#define store_bfloat(p, i, v) ((p)[i] = bfloat_of(v))
#define store4_bfloat(p, i, v) vstore4(bfloat_of4(v), 0, (p) + (i))
#define store8_bfloat(p, i, v) vstore8(bfloat_of8(v), 0, (p) + (i))
#define store16_bfloat(p, i, v) vstore16(bfloat_of16(v), 0, (p) + (i))
#define store4_aligned_bfloat(p, i, v) (*(__global ushort4 *)((p) + (i)) = bfloat_of4(v))
#define store8_aligned_bfloat(p, i, v) (*(__global ushort8 *)((p) + (i)) = bfloat_of8(v))
#define arith_bfloat float

#define load_ushort(p, i) ((p)[i])
#define load_uint(p, i) ((p)[i])
#define store_ushort(p, i, v) ((p)[i] = (v))
#define store_uint(p, i, v) ((p)[i] = (v))
#define arith_ushort uint
#define arith_uint uint

// Of single kernels: what they define for half with names of their own.
#define load_aligned_bfloat(p, i) CLGPU_CAT(CLGPU_CAT(load, VW), _bfloat)(p, i)  // common/vector.cl
#define store_aligned_bfloat(p, i, v) CLGPU_CAT(CLGPU_CAT(store, VW), _bfloat)(p, i, v)
#define KEY_bfloat(value) ordered(value)  // topk/topk.cl
#define KEY_T_bfloat int
#define BITS_bfloat(value) as_int(value)  // bitcast/bitcast.cl
#define VALUE_bfloat(bits) as_float(bits)
#define factor_bfloat(p, i) convert_half(load_bfloat(p, i))  // common/block_sums.cl
#define factor4_bfloat(p, i) convert_half4(load4_bfloat(p, i))
#define factor_quad_buffer_bfloat(p, q) convert_half4(load4_aligned_bfloat(p, (q) * 4))
