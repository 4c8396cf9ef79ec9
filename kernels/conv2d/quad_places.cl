// quad_places.cl - positions in the image of a work-item's PX pixels, for convolutions of quads and of words
//
//   FIRST_PLACE EACH_PIXEL(PLACE)  before the loops over taps; `first` is the first pixel's index
//   EACH_PIXEL(FIND)               in the loop over rows u and columns t of the filter: int at0, at1, ... are
//                                  the positions of the group's first channel, in units of UNIT elements
//   INSIDE(p, v, outside)          v, or `outside` if this tap of pixel p is outside of the image; the position
//                                  is then that of the first pixel, so reads need no condition and can
//                                  start early
//
// Variables sizes of src and of the filter as in naive.cl, pixels, first_in: the group's first channel
// Macros    POINTWISE  0|1  1: output pixel p reads pixel p of the image; in a single image,
//                           pixel p counted from row -top on
//           UNIT       1|4  elements; in_c and first_in are multiples of it
#include "common/border.cl"

// Pixels past the last one repeat it, or are outside.
#if POINTWISE
#define FIRST_PLACE
#define PLACE(p) \
  const int at##p = ((min(first + p, pixels - 1) - top * in_w) * in_c + first_in) / UNIT;
#define FIND(p)
#define INSIDE(p, v, outside) (v)
#else
#define FIRST_PLACE int x = first % out_w, y = first / out_w % out_h, n = first / out_w / out_h;
#define PLACE(p)                                                             \
  const int in_x##p = x * stride_w - left, image##p = n * in_h * in_w;       \
  const int in_y##p = first + p < pixels ? y * stride_h - top : INT_MIN / 2; \
  x = x + 1 == out_w ? 0 : x + 1;                                            \
  y = x == 0 ? y + 1 : y;                                                    \
  n = y == out_h ? n + 1 : n;                                                \
  y = y == out_h ? 0 : y;
#define FIND(p)                                                              \
  const int y##p = BORDER(in_y##p + u * dilation_h, in_h);                   \
  const int x##p = BORDER(in_x##p + t * dilation_w, in_w);                   \
  const bool inside##p = (uint)y##p < (uint)in_h && (uint)x##p < (uint)in_w; \
  const int at##p = ((inside##p ? (image##p + y##p * in_w + x##p) * in_c : 0) + first_in) / UNIT;
#define INSIDE(p, v, outside) (inside##p ? (v) : (outside))
#endif
