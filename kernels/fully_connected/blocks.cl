// blocks.cl - the parameters of weights with a scale for each block of a row
//
//   __kernel void f(..., __global const uint *weights, BLOCK_SCALES_PARAM BIAS_PARAM ... int depth BLOCK_PARAM) {
//
// block_scales  [cols, depth / block]
// block         elements of a row that share a scale
//
// Macros    BLOCKS  0|1  1: there are such scales
#if BLOCKS
#define BLOCK_SCALES_PARAM __global const float *block_scales,
#define BLOCK_PARAM , int block
#else
#define BLOCK_SCALES_PARAM
#define BLOCK_PARAM
#endif
