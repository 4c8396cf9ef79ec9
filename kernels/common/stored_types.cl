// stored_types.cl - element types that differ between arithmetic and memory: a kernel that computes floats
//                   writes or reads quantised integers, and one that computes quantised integers writes floats
//
//   kernel/sources.cpp writes this before the file of such a launch, and RESULT_SCALE_PARAMETERS or
//   INPUT_SCALE_PARAMETERS before the parameters of each of its kernels. A kernel needs no change: its macro
//   DST_T or SRC_T is one of these types, and it writes and reads by LOAD and STORE of common/types.cl.
//
// float_as_char, float_as_uchar, float_as_short   floats in arithmetic, integers in memory. STORE rounds as
//                         kernels/quantize/quantize.cl, LOAD as kernels/dequantize/dequantize.cl
// char_as_float, char_as_half, ...                integers in arithmetic, floats in memory: STORE only
//
// Numerics  as the kernels of QUANTIZE and DEQUANTIZE would do it with the value before it is stored
#include "common/steps.cl"
#include "common/types.cl"

#define RESULT_SCALE_PARAMETERS const float result_scale, const int result_zero,
#define INPUT_SCALE_PARAMETERS const float input_scale, const int input_zero,

typedef char float_as_char;
typedef uchar float_as_uchar;
typedef short float_as_short;
typedef float char_as_float;
typedef float uchar_as_float;
typedef float short_as_float;
typedef half char_as_half;
typedef half uchar_as_half;
typedef half short_as_half;
#define arith_float_as_char float
#define arith_float_as_uchar float
#define arith_float_as_short float
#define arith_char_as_float int
#define arith_uchar_as_float int
#define arith_short_as_float int
#define arith_char_as_half int
#define arith_uchar_as_half int
#define arith_short_as_half int

// The type of a table of results, and of a conversion of results.
#define steps_char_as_float char
#define steps_uchar_as_float uchar
#define steps_short_as_float short
#define steps_char_as_half char
#define steps_uchar_as_half uchar
#define steps_short_as_half short

#define INPUT_REAL(x) (input_scale * convert_float((x) - input_zero))
#define INPUT_REAL_OF(N, x) (input_scale * CLGPU_CAT(convert_float, N)((x) - input_zero))
#define RESULT_STEPS(v) steps_of(v, result_scale, result_zero)
// Names of functions are not pasted by CLGPU_CAT, because chains replace them by others.
#define RESULT_STEPS_OF(N, v) steps_of##N(v, result_scale, result_zero)
// A kernel of integers may leave it to STORE to truncate its result.
#define RESULT_REAL(v) (result_scale * convert_float(convert_int(v) - result_zero))
#define RESULT_REAL_OF(N, v) \
  (result_scale * CLGPU_CAT(convert_float, N)(CLGPU_CAT(convert_int, N)(v) - result_zero))

#define load_float_as_char(p, i) INPUT_REAL(load_char(p, i))
#define load4_float_as_char(p, i) INPUT_REAL_OF(4, load4_char(p, i))
#define load8_float_as_char(p, i) INPUT_REAL_OF(8, load8_char(p, i))
#define load16_float_as_char(p, i) INPUT_REAL_OF(16, load16_char(p, i))
#define load4_aligned_float_as_char(p, i) INPUT_REAL_OF(4, load4_aligned_char(p, i))
#define load8_aligned_float_as_char(p, i) INPUT_REAL_OF(8, load8_aligned_char(p, i))
#define load_float_as_uchar(p, i) INPUT_REAL(load_uchar(p, i))
#define load4_float_as_uchar(p, i) INPUT_REAL_OF(4, load4_uchar(p, i))
#define load8_float_as_uchar(p, i) INPUT_REAL_OF(8, load8_uchar(p, i))
#define load16_float_as_uchar(p, i) INPUT_REAL_OF(16, load16_uchar(p, i))
#define load4_aligned_float_as_uchar(p, i) INPUT_REAL_OF(4, load4_aligned_uchar(p, i))
#define load8_aligned_float_as_uchar(p, i) INPUT_REAL_OF(8, load8_aligned_uchar(p, i))
#define load_float_as_short(p, i) INPUT_REAL(load_short(p, i))
#define load4_float_as_short(p, i) INPUT_REAL_OF(4, load4_short(p, i))
#define load8_float_as_short(p, i) INPUT_REAL_OF(8, load8_short(p, i))
#define load16_float_as_short(p, i) INPUT_REAL_OF(16, load16_short(p, i))
#define load4_aligned_float_as_short(p, i) INPUT_REAL_OF(4, load4_aligned_short(p, i))
#define load8_aligned_float_as_short(p, i) INPUT_REAL_OF(8, load8_aligned_short(p, i))

#define store_float_as_char(p, i, v) ((p)[i] = convert_char_sat(RESULT_STEPS(v)))
#define store4_float_as_char(p, i, v) \
  vstore4(convert_char4_sat(RESULT_STEPS_OF(4, v)), 0, (p) + (i))
#define store8_float_as_char(p, i, v) \
  vstore8(convert_char8_sat(RESULT_STEPS_OF(8, v)), 0, (p) + (i))
#define store16_float_as_char(p, i, v) \
  vstore16(convert_char16_sat(RESULT_STEPS_OF(16, v)), 0, (p) + (i))
#define store4_aligned_float_as_char(p, i, v) \
  (*(__global char4 *)((p) + (i)) = convert_char4_sat(RESULT_STEPS_OF(4, v)))
#define store8_aligned_float_as_char(p, i, v) \
  (*(__global char8 *)((p) + (i)) = convert_char8_sat(RESULT_STEPS_OF(8, v)))
#define store_float_as_uchar(p, i, v) ((p)[i] = convert_uchar_sat(RESULT_STEPS(v)))
#define store4_float_as_uchar(p, i, v) \
  vstore4(convert_uchar4_sat(RESULT_STEPS_OF(4, v)), 0, (p) + (i))
#define store8_float_as_uchar(p, i, v) \
  vstore8(convert_uchar8_sat(RESULT_STEPS_OF(8, v)), 0, (p) + (i))
#define store16_float_as_uchar(p, i, v) \
  vstore16(convert_uchar16_sat(RESULT_STEPS_OF(16, v)), 0, (p) + (i))
#define store4_aligned_float_as_uchar(p, i, v) \
  (*(__global uchar4 *)((p) + (i)) = convert_uchar4_sat(RESULT_STEPS_OF(4, v)))
#define store8_aligned_float_as_uchar(p, i, v) \
  (*(__global uchar8 *)((p) + (i)) = convert_uchar8_sat(RESULT_STEPS_OF(8, v)))
#define store_float_as_short(p, i, v) ((p)[i] = convert_short_sat(RESULT_STEPS(v)))
#define store4_float_as_short(p, i, v) \
  vstore4(convert_short4_sat(RESULT_STEPS_OF(4, v)), 0, (p) + (i))
#define store8_float_as_short(p, i, v) \
  vstore8(convert_short8_sat(RESULT_STEPS_OF(8, v)), 0, (p) + (i))
#define store16_float_as_short(p, i, v) \
  vstore16(convert_short16_sat(RESULT_STEPS_OF(16, v)), 0, (p) + (i))
#define store4_aligned_float_as_short(p, i, v) \
  (*(__global short4 *)((p) + (i)) = convert_short4_sat(RESULT_STEPS_OF(4, v)))
#define store8_aligned_float_as_short(p, i, v) \
  (*(__global short8 *)((p) + (i)) = convert_short8_sat(RESULT_STEPS_OF(8, v)))

#define store_char_as_float(p, i, v) store_float(p, i, RESULT_REAL(v))
#define store4_char_as_float(p, i, v) store4_float(p, i, RESULT_REAL_OF(4, v))
#define store8_char_as_float(p, i, v) store8_float(p, i, RESULT_REAL_OF(8, v))
#define store16_char_as_float(p, i, v) store16_float(p, i, RESULT_REAL_OF(16, v))
#define store4_aligned_char_as_float(p, i, v) store4_aligned_float(p, i, RESULT_REAL_OF(4, v))
#define store8_aligned_char_as_float(p, i, v) store8_aligned_float(p, i, RESULT_REAL_OF(8, v))
#define store_char_as_half(p, i, v) store_half(p, i, RESULT_REAL(v))
#define store4_char_as_half(p, i, v) store4_half(p, i, RESULT_REAL_OF(4, v))
#define store8_char_as_half(p, i, v) store8_half(p, i, RESULT_REAL_OF(8, v))
#define store16_char_as_half(p, i, v) store16_half(p, i, RESULT_REAL_OF(16, v))
#define store4_aligned_char_as_half(p, i, v) store4_aligned_half(p, i, RESULT_REAL_OF(4, v))
#define store8_aligned_char_as_half(p, i, v) store8_aligned_half(p, i, RESULT_REAL_OF(8, v))

#define store16_aligned_char_as_float store16_char_as_float
#define store16_aligned_char_as_half store16_char_as_half

// In arithmetic all three are int.
#define store_uchar_as_float store_char_as_float
#define store4_uchar_as_float store4_char_as_float
#define store8_uchar_as_float store8_char_as_float
#define store16_uchar_as_float store16_char_as_float
#define store4_aligned_uchar_as_float store4_aligned_char_as_float
#define store8_aligned_uchar_as_float store8_aligned_char_as_float
#define store16_aligned_uchar_as_float store16_char_as_float
#define store_short_as_float store_char_as_float
#define store4_short_as_float store4_char_as_float
#define store8_short_as_float store8_char_as_float
#define store16_short_as_float store16_char_as_float
#define store4_aligned_short_as_float store4_aligned_char_as_float
#define store8_aligned_short_as_float store8_aligned_char_as_float
#define store16_aligned_short_as_float store16_char_as_float
#define store_uchar_as_half store_char_as_half
#define store4_uchar_as_half store4_char_as_half
#define store8_uchar_as_half store8_char_as_half
#define store16_uchar_as_half store16_char_as_half
#define store4_aligned_uchar_as_half store4_aligned_char_as_half
#define store8_aligned_uchar_as_half store8_aligned_char_as_half
#define store16_aligned_uchar_as_half store16_char_as_half
#define store_short_as_half store_char_as_half
#define store4_short_as_half store4_char_as_half
#define store8_short_as_half store8_char_as_half
#define store16_short_as_half store16_char_as_half
#define store4_aligned_short_as_half store4_aligned_char_as_half
#define store8_aligned_short_as_half store8_aligned_char_as_half
#define store16_aligned_short_as_half store16_char_as_half

// common/vector.cl
#define load_aligned_float_as_char(p, i) INPUT_REAL_OF(VW, load_aligned_char(p, i))
#define load_aligned_float_as_uchar(p, i) INPUT_REAL_OF(VW, load_aligned_uchar(p, i))
#define store_aligned_float_as_char(p, i, v) \
  CLGPU_CAT(CLGPU_CAT(store, VW), _float_as_char)(p, i, v)
#define store_aligned_float_as_uchar(p, i, v) \
  CLGPU_CAT(CLGPU_CAT(store, VW), _float_as_uchar)(p, i, v)
#define store_aligned_float_as_short(p, i, v) \
  CLGPU_CAT(CLGPU_CAT(store, VW), _float_as_short)(p, i, v)
#define store_aligned_char_as_float(p, i, v) \
  CLGPU_CAT(CLGPU_CAT(store, VW), _char_as_float)(p, i, v)
#define store_aligned_char_as_half(p, i, v) CLGPU_CAT(CLGPU_CAT(store, VW), _char_as_half)(p, i, v)
#define store_aligned_uchar_as_float store_aligned_char_as_float
#define store_aligned_uchar_as_half store_aligned_char_as_half
#define store_aligned_short_as_float store_aligned_char_as_float
#define store_aligned_short_as_half store_aligned_char_as_half
// common/mma_wide.cl
#define store_wide_float_as_char(p, v) store_wide_rounded_char(p, v, result_scale, result_zero)
#define store_wide_float_as_uchar(p, v) store_wide_rounded_uchar(p, v, result_scale, result_zero)
#define store_wide_float_as_short(p, v) store_wide_rounded_short(p, v, result_scale, result_zero)
#define store_wide_char_as_float(p, v) store_wide_real_float(p, v, result_scale, result_zero)
#define store_wide_char_as_half(p, v) store_wide_real_half(p, v, result_scale, result_zero)
