// move.cl - the units of kernels that only move elements
//
// If source and destination have the same storage, elements are moved as bits: SRC_T and DST_T
// are uchar, short, int, int2 or int4, a unit that may hold several neighbouring elements, and all
// sizes, strides and offsets count units. Between float and half SRC_T and DST_T differ, a unit is
// one element, and LOAD and STORE convert.
#include "common/types.cl"

#define load_int2(p, i) ((p)[i])
#define load_int4(p, i) ((p)[i])
#define store_int2(p, i, v) ((p)[i] = (v))
#define store_int4(p, i, v) ((p)[i] = (v))
#define arith_int2 int2
#define arith_int4 int4
