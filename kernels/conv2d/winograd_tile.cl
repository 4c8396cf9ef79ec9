// winograd_tile.cl - the transforms of Winograd's convolution F(TILE x TILE, TAPS x TAPS), along one axis
//
// TILE results y of TAPS filter taps g on ALPHA = TILE + TAPS - 1 values d: y = A^T ((G g) * (B^T d)), with
// ALPHA products instead of TILE * TAPS (A. Lavin, S. Gray, Fast algorithms for convolutional neural
// networks, 2015, arXiv:1509.09308). The points of interpolation are 0, 1, -1 and infinity, and for
// ALPHA = 6 they are 0, +-11/16, +-3/2 and infinity: half the error of 0, +-1, +-2, and B and A are exact
// in float.
//
// Macros    ALPHA  4|6  values of a tile of the image along an axis
//           TILE   2|4  values of a tile of the output; 2 with ALPHA = 4
#ifndef ALPHA
#error "ALPHA is required (4 or 6)"
#endif
#ifndef TILE
#error "TILE is required (2 or 4)"
#endif

#define TAPS (ALPHA - TILE + 1)

// v[0 .. ALPHA-1] = B^T d for arrays of the type VEC.
#if ALPHA == 4
#define WINOGRAD_INPUT(VEC, d, v) \
  do {                            \
    v[0] = d[0] - d[2];           \
    v[1] = d[2] + d[1];           \
    v[2] = d[2] - d[1];           \
    v[3] = d[3] - d[1];           \
  } while (0)
#else
#define P1 0.6875f
#define P2 1.5f
#define S1 (P1 * P1)
#define S2 (P2 * P2)
#define WINOGRAD_INPUT(VEC, d, v)                               \
  do {                                                          \
    const VEC e1_ = d[4] - S2 * d[2], o1_ = d[3] - S2 * d[1];   \
    const VEC e2_ = d[4] - S1 * d[2], o2_ = d[3] - S1 * d[1];   \
    v[0] = e1_ + S1 * (S2 * d[0] - d[2]);                       \
    v[1] = e1_ + P1 * o1_;                                      \
    v[2] = e1_ - P1 * o1_;                                      \
    v[3] = e2_ + P2 * o2_;                                      \
    v[4] = e2_ - P2 * o2_;                                      \
    v[5] = d[5] - S2 * d[3] + S1 * (S2 * d[1] - d[3]);          \
  } while (0)
#endif

// Row i of A, TILE values: the powers of point i; infinity has the last one only.
__constant float winograd_powers[ALPHA][4] = {
#if ALPHA == 4
    {1.0f, 0.0f}, {1.0f, 1.0f}, {1.0f, -1.0f}, {0.0f, 1.0f},
#else
    {1.0f, 0.0f, 0.0f, 0.0f},
    {1.0f, P1, S1, P1 * S1},
    {1.0f, -P1, S1, -P1 * S1},
    {1.0f, P2, S2, P2 * S2},
    {1.0f, -P2, S2, -P2 * S2},
    {0.0f, TILE == 2 ? 1.0f : 0.0f, 0.0f, 1.0f},
#endif
};
