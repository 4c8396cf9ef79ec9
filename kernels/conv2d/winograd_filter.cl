// winograd_filter.cl - dst[e, k / PANEL, b * padded_c + c, k % PANEL] = (G g[k, b, c] G^T)[e]; g: block b of
//                      TAPS x TAPS taps of a filter; the first of four kernels, see winograd_tile.cl
//
// Shapes    src: OHWI weights [out_c, filter_h, filter_w, in_c]
//           dst: [ALPHA^2, panels, depth, PANEL], zero if there is no tap or channel;
//           depth >= blocks * padded_c, padded_c: in_c rounded up to PAD
//           A filter larger than TAPS x TAPS is a sum of convolutions with blocks of TAPS x TAPS taps.
// Launch    one work-item per element of a plane: global = (elements, rounded up), local = (64),
//           elements = panels * depth * PANEL
// Macros    PANEL  multiple of 4  neighbouring output channels
//           PAD    4|8|16         input channels of a block are padded to a multiple of PAD
//           SRC_T  float|half     element type of src
//           DST_T  float|half     element type of dst
//           ALPHA, TILE           see conv2d/winograd_tile.cl
// Numerics  Horner's rule in pairs of floats, then divided by the product of the point's distances
//           from the other points; rounded once
#include "common/types.cl"
#include "conv2d/winograd_tile.cl"

// Row i of G times g, as the sum of a float and its rounding error, so that the products with the image
// lose as little as possible. The distances are exact.
float2 winograd_filter_row(const float2 *g, int i) {
  float2 sum = g[TAPS - 1];
  if (i == ALPHA - 1) return sum;
  const float p = winograd_powers[i][1];
  float distance = 1.0f;
  for (int t = TAPS - 2; t >= 0; --t) {
    const float product = sum.x * p, total = product + g[t].x, part = total - product;
    const float lost = product - (total - part) + (g[t].x - part);
    sum = (float2)(total, fma(sum.x, p, -product) + fma(sum.y, p, lost) + g[t].y);
  }
  for (int j = 0; j < ALPHA - 1; ++j) distance *= j == i ? 1.0f : p - winograd_powers[j][1];
  if (ALPHA == 4 && i == 0) distance = 1.0f;  // FIRST has the other sign there
  const float quotient = sum.x / distance;
  return (float2)(quotient, (fma(-quotient, distance, sum.x) + sum.y) / distance);
}

__kernel void conv2d_winograd_filter(__global const SRC_T *src, __global DST_T *dst, int elements,
                                     int depth, int in_c, int out_c, int filter_h, int filter_w) {
  const int index = get_global_id(0);
  if (index >= elements) return;
  const int row = index / PANEL % depth, k = index / PANEL / depth * PANEL + index % PANEL;
  const int padded_c = (in_c + PAD - 1) / PAD * PAD;
  const int c = row % padded_c, block = row / padded_c;
  const int blocks_w = (filter_w + TAPS - 1) / TAPS;
  const int u0 = block / blocks_w * TAPS, v0 = block % blocks_w * TAPS;

  float2 columns[ALPHA][TAPS];
  for (int v = 0; v < TAPS; ++v) {
    float2 g[TAPS];
    for (int u = 0; u < TAPS; ++u) {
      const bool inside = k < out_c && c < in_c && u0 + u < filter_h && v0 + v < filter_w;
      g[u] = (float2)(0.0f);
      if (inside) {
        g[u].x = LOAD(SRC_T, src, ((k * filter_h + u0 + u) * filter_w + v0 + v) * in_c + c);
      }
    }
    for (int i = 0; i < ALPHA; ++i) columns[i][v] = winograd_filter_row(g, i);
  }
  for (int i = 0; i < ALPHA; ++i) {
    for (int j = 0; j < ALPHA; ++j) {
      const int e = i * ALPHA + j;
      const float2 value = winograd_filter_row(columns[i], j);
      STORE(DST_T, dst, e * elements + index, value.x + value.y);
    }
  }
}
