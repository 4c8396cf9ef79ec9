// pixels.cl - tensor[y][x][c] = scale * channel c of pixel (x, y) + offset, a channel being 0 to 255,
//             and the reverse, for images of the application
//
// Shapes    image: [height, width] RGBA, 8 bits each; tensor: [height, width, CHANNELS]
// Launch    one work-item per pixel: global = (width, height), local any
// Macros    TENSOR_T  float|char|uchar  element type of tensor
//           TO_FLOAT  0|1               1: TENSOR_T is float
//           CHANNELS  3|4               of the tensor; with 3, images that are written are opaque
// Numerics  float; integers, and channels that are written, are rounded to the nearest and clamped
#include "common/types.cl"

#if TO_FLOAT
#define TO_TENSOR(value) (value)
#else
#define TO_TENSOR(value) CLGPU_CAT(CLGPU_CAT(convert_, TENSOR_T), _sat_rte)(value)
#endif

__kernel void pixels_to_tensor(__read_only image2d_t image, __global TENSOR_T *tensor, float scale,
                               float offset) {
  const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
  const int x = get_global_id(0), y = get_global_id(1);
  const float4 channels = rint(read_imagef(image, sampler, (int2)(x, y)) * 255.0f);
  __global TENSOR_T *to = tensor + (y * (int)get_global_size(0) + x) * CHANNELS;
  to[0] = TO_TENSOR(scale * channels.s0 + offset);
  to[1] = TO_TENSOR(scale * channels.s1 + offset);
  to[2] = TO_TENSOR(scale * channels.s2 + offset);
#if CHANNELS == 4
  to[3] = TO_TENSOR(scale * channels.s3 + offset);
#endif
}

__kernel void pixels_from_tensor(__write_only image2d_t image, __global const TENSOR_T *tensor,
                                 float scale, float offset) {
  const int x = get_global_id(0), y = get_global_id(1);
  __global const TENSOR_T *from = tensor + (y * (int)get_global_size(0) + x) * CHANNELS;
  float4 channels = (float4)((float)from[0], (float)from[1], (float)from[2], 0.0f);
#if CHANNELS == 4
  channels.s3 = (float)from[3];
#endif
  channels = clamp(rint((channels - offset) / scale), 0.0f, 255.0f);
#if CHANNELS == 3
  channels.s3 = 255.0f;
#endif
  write_imagef(image, (int2)(x, y), channels / 255.0f);
}
