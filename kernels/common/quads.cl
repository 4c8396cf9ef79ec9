// quads.cl - four neighbouring elements at a time, of a buffer or of an image of that buffer
//
// QUADS(KIND, T) p       a read-only parameter; the macro KIND is `buffer` or `image`, T names
//                        the element type: float, half or, for buffers, any other type of LOAD4
// QUAD(KIND, T, p, q)    elements 4 q to 4 q + 3 as float4, or int4 for integers
//
// The host passes images with Launch::src_image and scratch_image. Images of halves are read as float4, too.
#include "common/types.cl"

#define QUADS(KIND, T) CLGPU_CAT(quads_, KIND)(T)
#define QUAD(KIND, T, p, q) CLGPU_CAT(quad_, KIND)(T, p, q)

#define quads_buffer(T) __global const T *restrict
#define quads_image(T) __read_only image1d_buffer_t
#define quad_buffer(T, p, q) LOAD4_ALIGNED(T, p, (q) * 4)
#define quad_image(T, p, q) read_imagef(p, (int)(q))
