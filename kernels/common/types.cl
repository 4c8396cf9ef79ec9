// types.cl - element types in memory and in arithmetic
//
// A buffer parameter SRC of a kernel is declared `__global const SRC_T *src`, where the macro SRC_T
// (float, half, int, long, short, char, uchar) is the type of its elements in memory. Only LOAD and
// STORE touch global memory: half is read and written with vload_half/vstore_half (aligned vectors
// on NVIDIA: common/halves.cl), which need no half arithmetic, and all float arithmetic is done in float.
//
// LOAD(T, p, i)      element i as float (float, half) or as the integer type itself
// LOAD4(T, p, i)     elements i .. i+3 as float4, or int4 for small integers and int; i counts elements, any alignment
// STORE(T, p, i, v)  writes element i
// STORE4(T, p, i, v) writes elements i .. i+3 from a float4 or int4
// LOAD4_ALIGNED, STORE4_ALIGNED: the same, if i is a multiple of 4 and p the start of a buffer or a
// multiple of 4 elements after it: one access, while LOAD4 may compile to four. Likewise
// LOAD8_ALIGNED and STORE8_ALIGNED; of integers and halves STORE16_ALIGNED
#include "common/halves.cl"

#define CLGPU_CAT_(a, b) a##b
#define CLGPU_CAT(a, b) CLGPU_CAT_(a, b)

#define LOAD(T, p, i) CLGPU_CAT(load_, T)(p, i)
#define LOAD4(T, p, i) CLGPU_CAT(load4_, T)(p, i)
#define LOAD8(T, p, i) CLGPU_CAT(load8_, T)(p, i)
#define LOAD16(T, p, i) CLGPU_CAT(load16_, T)(p, i)
#define LOAD4_ALIGNED(T, p, i) CLGPU_CAT(load4_aligned_, T)(p, i)
#define STORE4_ALIGNED(T, p, i, v) CLGPU_CAT(store4_aligned_, T)(p, i, v)
#define LOAD8_ALIGNED(T, p, i) CLGPU_CAT(load8_aligned_, T)(p, i)
#define STORE8_ALIGNED(T, p, i, v) CLGPU_CAT(store8_aligned_, T)(p, i, v)
#define STORE16_ALIGNED(T, p, i, v) CLGPU_CAT(store16_aligned_, T)(p, i, v)
#define STORE(T, p, i, v) CLGPU_CAT(store_, T)(p, i, v)
#define STORE4(T, p, i, v) CLGPU_CAT(store4_, T)(p, i, v)
#define STORE8(T, p, i, v) CLGPU_CAT(store8_, T)(p, i, v)
#define STORE16(T, p, i, v) CLGPU_CAT(store16_, T)(p, i, v)

#define load_float(p, i) ((p)[i])
#define load_half(p, i) vload_half(i, p)
#define load_int(p, i) ((p)[i])
#define load_long(p, i) ((p)[i])
#define load_short(p, i) ((p)[i])
#define load_char(p, i) ((p)[i])
#define load_uchar(p, i) ((p)[i])
#define store_float(p, i, v) ((p)[i] = (v))
#define store_half(p, i, v) vstore_half(v, i, p)
#define store_int(p, i, v) ((p)[i] = (v))
#define store_long(p, i, v) ((p)[i] = (v))
#define store_short(p, i, v) ((p)[i] = (v))
#define store_char(p, i, v) ((p)[i] = (v))
#define store_uchar(p, i, v) ((p)[i] = (v))

// The offset is added to the pointer, so i need not be a multiple of the width.
#define load4_float(p, i) vload4(0, (p) + (i))
#define load8_float(p, i) vload8(0, (p) + (i))
#define load16_float(p, i) vload16(0, (p) + (i))
#define load4_half(p, i) vload_half4(0, (p) + (i))
#define load8_half(p, i) vload_half8(0, (p) + (i))
#define load16_half(p, i) vload_half16(0, (p) + (i))
#define store4_float(p, i, v) vstore4(v, 0, (p) + (i))
#define store8_float(p, i, v) vstore8(v, 0, (p) + (i))
#define store16_float(p, i, v) vstore16(v, 0, (p) + (i))
#define store4_half(p, i, v) vstore_half4(v, 0, (p) + (i))
#define store8_half(p, i, v) vstore_half8(v, 0, (p) + (i))
#define store16_half(p, i, v) vstore_half16(v, 0, (p) + (i))
#define load4_aligned_float(p, i) (*(__global const float4 *)((p) + (i)))
#define store4_aligned_float(p, i, v) (*(__global float4 *)((p) + (i)) = (v))
#define load8_aligned_float(p, i) (*(__global const float8 *)((p) + (i)))
#define store8_aligned_float(p, i, v) (*(__global float8 *)((p) + (i)) = (v))
#if __NV_CL_C_VERSION
#define load4_aligned_half(p, i) from_halves4(*(__global const uint2 *)((p) + (i)))
#define load8_aligned_half(p, i) from_halves8(*(__global const uint4 *)((p) + (i)))
#define load16_aligned_half(p, i) \
  (float16)(load8_aligned_half(p, i), load8_aligned_half(p, (i) + 8))
#define store4_aligned_half(p, i, v) (*(__global uint2 *)((p) + (i)) = as_halves4(v))
#define store8_aligned_half(p, i, v) (*(__global uint4 *)((p) + (i)) = as_halves8(v))
#define store16_aligned_half(p, i, v) store16_halves((p) + (i), v)
#else
#define load4_aligned_half(p, i) vloada_half4(0, (p) + (i))
#define load8_aligned_half(p, i) vloada_half8(0, (p) + (i))
#define load16_aligned_half(p, i) vloada_half16(0, (p) + (i))
#define store4_aligned_half(p, i, v) vstorea_half4(v, 0, (p) + (i))
#define store8_aligned_half(p, i, v) vstorea_half8(v, 0, (p) + (i))
#define store16_aligned_half(p, i, v) vstorea_half16(v, 0, (p) + (i))
#endif

// Vectors of small integers are read as int, and written without saturation.
#define load4_char(p, i) convert_int4(vload4(0, (p) + (i)))
#define store4_char(p, i, v) vstore4(convert_char4(v), 0, (p) + (i))
#define load8_char(p, i) convert_int8(vload8(0, (p) + (i)))
#define store8_char(p, i, v) vstore8(convert_char8(v), 0, (p) + (i))
#define load16_char(p, i) convert_int16(vload16(0, (p) + (i)))
#define store16_char(p, i, v) vstore16(convert_char16(v), 0, (p) + (i))
#define load4_aligned_char(p, i) convert_int4(*(__global const char4 *)((p) + (i)))
#define store4_aligned_char(p, i, v) (*(__global char4 *)((p) + (i)) = convert_char4(v))
#define load8_aligned_char(p, i) convert_int8(*(__global const char8 *)((p) + (i)))
#define store8_aligned_char(p, i, v) (*(__global char8 *)((p) + (i)) = convert_char8(v))
#define store16_aligned_char(p, i, v) (*(__global char16 *)((p) + (i)) = convert_char16(v))
#define load4_uchar(p, i) convert_int4(vload4(0, (p) + (i)))
#define store4_uchar(p, i, v) vstore4(convert_uchar4(v), 0, (p) + (i))
#define load8_uchar(p, i) convert_int8(vload8(0, (p) + (i)))
#define store8_uchar(p, i, v) vstore8(convert_uchar8(v), 0, (p) + (i))
#define load16_uchar(p, i) convert_int16(vload16(0, (p) + (i)))
#define store16_uchar(p, i, v) vstore16(convert_uchar16(v), 0, (p) + (i))
#define load4_aligned_uchar(p, i) convert_int4(*(__global const uchar4 *)((p) + (i)))
#define store4_aligned_uchar(p, i, v) (*(__global uchar4 *)((p) + (i)) = convert_uchar4(v))
#define load8_aligned_uchar(p, i) convert_int8(*(__global const uchar8 *)((p) + (i)))
#define store8_aligned_uchar(p, i, v) (*(__global uchar8 *)((p) + (i)) = convert_uchar8(v))
#define store16_aligned_uchar(p, i, v) (*(__global uchar16 *)((p) + (i)) = convert_uchar16(v))
#define load4_short(p, i) convert_int4(vload4(0, (p) + (i)))
#define store4_short(p, i, v) vstore4(convert_short4(v), 0, (p) + (i))
#define load8_short(p, i) convert_int8(vload8(0, (p) + (i)))
#define store8_short(p, i, v) vstore8(convert_short8(v), 0, (p) + (i))
#define load16_short(p, i) convert_int16(vload16(0, (p) + (i)))
#define store16_short(p, i, v) vstore16(convert_short16(v), 0, (p) + (i))
#define load4_aligned_short(p, i) convert_int4(*(__global const short4 *)((p) + (i)))
#define store4_aligned_short(p, i, v) (*(__global short4 *)((p) + (i)) = convert_short4(v))
#define load8_aligned_short(p, i) convert_int8(*(__global const short8 *)((p) + (i)))
#define store8_aligned_short(p, i, v) (*(__global short8 *)((p) + (i)) = convert_short8(v))
#define store16_aligned_short(p, i, v) (*(__global short16 *)((p) + (i)) = convert_short16(v))
#define load4_int(p, i) vload4(0, (p) + (i))
#define store4_int(p, i, v) vstore4(v, 0, (p) + (i))
#define load8_int(p, i) vload8(0, (p) + (i))
#define store8_int(p, i, v) vstore8(v, 0, (p) + (i))
#define load16_int(p, i) vload16(0, (p) + (i))
#define store16_int(p, i, v) vstore16(v, 0, (p) + (i))
#define load4_aligned_int(p, i) (*(__global const int4 *)((p) + (i)))
#define store4_aligned_int(p, i, v) (*(__global int4 *)((p) + (i)) = (v))
#define load8_aligned_int(p, i) (*(__global const int8 *)((p) + (i)))
#define store8_aligned_int(p, i, v) (*(__global int8 *)((p) + (i)) = (v))

// int8 weights in products with floats are read as floats; the scale is applied last, see epilogue.cl.
typedef char weight8;
#define load_weight8(p, i) ((float)(p)[i])
#define load4_weight8(p, i) convert_float4(vload4(0, (p) + (i)))
#define load8_weight8(p, i) convert_float8(vload8(0, (p) + (i)))
#define load16_weight8(p, i) convert_float16(vload16(0, (p) + (i)))
#define load4_aligned_weight8(p, i) convert_float4(*(__global const char4 *)((p) + (i)))
#define load8_aligned_weight8(p, i) convert_float8(*(__global const char8 *)((p) + (i)))

// The type of quantised integers whose elements are stored as T, which is another type only where a launch
// converts them, see stored_types.cl.
#define STEPS_T(T) CLGPU_CAT(steps_, T)
#define steps_char char
#define steps_uchar uchar
#define steps_short short

// Type of arithmetic on elements of T, for kernels that work on any type: ARITH(SRC_T) x = LOAD(...).
#define ARITH(T) CLGPU_CAT(arith_, T)
#define arith_float float
#define arith_half float
#define arith_int int
#define arith_long long
#define arith_short int
#define arith_char int
#define arith_weight8 float
#define arith_uchar int
