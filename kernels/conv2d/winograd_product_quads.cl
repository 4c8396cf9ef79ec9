// winograd_product_quads.cl - m[p, e, o] = sum over c of v[p, e, c] * u[e, o / PANEL, c, o % PANEL], for GPUs of
//                             phones: a work-item keeps 4 rows x OV vectors of 4 columns in named
//                             vectors; see winograd_tile.cl
//
// Shapes    v: [rows, planes, depth], depth a multiple of 4; u: [planes, panels, depth, PANEL] as
//           winograd_filter.cl writes it; m: [rows, planes, cols], cols a multiple of 4
// Launch    axis 0: blocks of OV vectors of columns; axis 1: of 4 rows, both rounded up; axis 2: planes.
//           local: any
// Macros    OV      1|2                   vectors of a work-item
//           PANEL   multiple of 4 * OV    neighbouring columns in u
//           V_KIND, U_KIND  buffer|image  see common/quads.cl
//           V_T, U_T, M_T   float|half    element types; half sums if V_T is half
//           BLOCK if V_T == half  8..64   most products that are added in half
// Numerics  one float sum per element, in the order of c; with V_T half, of blocks in half, see
//           common/block_sums.cl
#define SUM_T V_T
#include "common/block_sums.cl"

#define SUM4_T CLGPU_CAT(SUM_T, 4)

// DO(r) for the rows of a work-item, DO(r, v) for its sums.
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#if OV == 1
#define EACH_VECTOR(DO) DO(0)
#define EACH_SUM(DO) DO(0, 0) DO(1, 0) DO(2, 0) DO(3, 0)
#else
#define EACH_VECTOR(DO) DO(0) DO(1)
#define EACH_SUM(DO) DO(0, 0) DO(1, 0) DO(2, 0) DO(3, 0) DO(0, 1) DO(1, 1) DO(2, 1) DO(3, 1)
#endif

// Rows past the last one repeat it.
#define PLACE(r) const int at##r = (min(first + r, rows - 1) * planes + plane) * quads_in;
#define DECLARE(r, v) DECLARE_TOTAL(float4, SUM4_T, sum##r##v)
#define FLUSH(r, v) FLUSH_TOTAL(convert_float4, sum##r##v)
#define READ(r) const SUM4_T x##r = FACTOR_QUAD(V_KIND, V_T, v, at##r + i);
#define READ_U(v) const SUM4_T u##v = FACTOR_QUAD(U_KIND, U_T, u, w_ + v);
#define ADD_S0(r, v) PARTIAL(sum##r##v) = mad((SUM4_T)(x##r.s0), u##v, PARTIAL(sum##r##v));
#define ADD_S1(r, v) PARTIAL(sum##r##v) = mad((SUM4_T)(x##r.s1), u##v, PARTIAL(sum##r##v));
#define ADD_S2(r, v) PARTIAL(sum##r##v) = mad((SUM4_T)(x##r.s2), u##v, PARTIAL(sum##r##v));
#define ADD_S3(r, v) PARTIAL(sum##r##v) = mad((SUM4_T)(x##r.s3), u##v, PARTIAL(sum##r##v));
#define ADD_CHANNEL(k)                            \
  {                                               \
    const int w_ = w + (4 * i + k) * (PANEL / 4); \
    EACH_VECTOR(READ_U)                           \
    EACH_SUM(ADD_S##k)                            \
  }
#define STORE_SUM(r, v)                                                   \
  if (first + r < rows && quad + v < quads_out) {                         \
    const int at = ((first + r) * planes + plane) * quads_out + quad + v; \
    STORE4_ALIGNED(M_T, m, 4 * at, sum##r##v);                            \
  }

__kernel void conv2d_winograd_product_quads(QUADS(V_KIND, V_T) v, QUADS(U_KIND, U_T) u,
                                            __global M_T *m, int rows, int planes, int quads_in,
                                            int quads_out, int panels) {
  const int quad = get_global_id(0) * OV, first = get_global_id(1) * 4, plane = get_global_id(2);
  if (quad >= quads_out || first >= rows) return;
  const int panel = quad / (PANEL / 4);
  const int w = (plane * panels + panel) * quads_in * PANEL + quad % (PANEL / 4);

  EACH_ROW(PLACE)
  EACH_SUM(DECLARE)
  COUNT_PRODUCTS
  for (int i = 0; i < quads_in; ++i) {
    EACH_ROW(READ)
    ADD_CHANNEL(0)
    ADD_CHANNEL(1)
    ADD_CHANNEL(2)
    ADD_CHANNEL(3)
    ADDED(4, EACH_SUM(FLUSH))
  }
  EACH_SUM(FLUSH)
  EACH_SUM(STORE_SUM)
}
