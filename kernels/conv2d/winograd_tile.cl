// winograd_tile.cl - the transforms of Winograd's convolution F(TILE x TILE, TAPS x TAPS), along one axis
//
// TAPS filter taps g on ALPHA = TILE + TAPS - 1 values d give TILE results y = A^T ((G g) * (B^T d)), with
// ALPHA products instead of TILE * TAPS (A. Lavin, S. Gray, Fast algorithms for convolutional neural
// networks, 2015, arXiv:1509.09308). The points of interpolation are infinity and
//   ALPHA 4   0, +-1
//   ALPHA 6   0, +-11/16, +-3/2          half the error of the usual 0, +-1, +-2
//   ALPHA 7   +-1/4, +-7/8, +-7/4        without 0: 1.8 times the error of ALPHA 6
// They were found by a search among fractions that keep A and B exact in float.
//
// Macros    ALPHA  4|6|7  values of a tile of the image along an axis
//           TILE   2|3|4  values of a tile of the output

#define TAPS (ALPHA - TILE + 1)

// B^T d, where D(i) is value i. The rows PAIR_ROW(k) and PAIR_ROW(k) + 1 belong to the points p and -p of
// pair k: they are SHARED(k, D) + SIGNED(k, D) and SHARED(k, D) - SIGNED(k, D). The row of infinity is
// the last one; the row of 0, if 0 is a point, the first.
#if ALPHA == 4
#define PAIRS 1
#define PAIR_ROW(k) 1
#define SHARED(k, D) (D(2))
#define SIGNED(k, D) (D(1))
#define FIRST(D) (D(0) - D(2))
#define LAST(D) (D(3) - D(1))
#elif ALPHA == 6
#define PAIRS 2
#define PAIR_ROW(k) (2 * (k) + 1)
#define P1 0.6875f
#define P2 1.5f
#define S1 (P1 * P1)
#define S2 (P2 * P2)
#define POINT(k) ((k) == 0 ? P1 : P2)
#define OTHER(k) ((k) == 0 ? S2 : S1)  // square of the other pair's points
#define SHARED(k, D) (D(4) - OTHER(k) * D(2))
#define SIGNED(k, D) (POINT(k) * (D(3) - OTHER(k) * D(1)))
#define FIRST(D) (D(4) - S2 * D(2) + S1 * (S2 * D(0) - D(2)))
#define LAST(D) (D(5) - S2 * D(3) + S1 * (S2 * D(1) - D(3)))
#else
#define PAIRS 3
#define PAIR_ROW(k) (2 * (k))
#define P1 0.25f
#define P2 0.875f
#define P3 1.75f
#define S1 (P1 * P1)
#define S2 (P2 * P2)
#define S3 (P3 * P3)
#define POINT(k) ((k) == 0 ? P1 : (k) == 1 ? P2 : P3)
// Sum and product of the squares of the other pairs' points.
#define SUM(k) ((k) == 0 ? S2 + S3 : (k) == 1 ? S1 + S3 : S1 + S2)
#define PRODUCT(k) ((k) == 0 ? S2 * S3 : (k) == 1 ? S1 * S3 : S1 * S2)
#define SHARED(k, D) (D(5) - SUM(k) * D(3) + PRODUCT(k) * D(1))
#define SIGNED(k, D) (POINT(k) * (D(4) - SUM(k) * D(2) + PRODUCT(k) * D(0)))
#define LAST(D) \
  (D(6) - (S1 + S2 + S3) * D(4) + (S1 * S2 + S1 * S3 + S2 * S3) * D(2) - S1 * S2 * S3 * D(0))
#endif

#if ALPHA == 7
#define SET_FIRST(D, v)
#else
#define SET_FIRST(D, v) v[0] = FIRST(D)
#endif
// v[0 .. ALPHA-1] = B^T d; VEC: the type of v's elements.
#define TRANSFORM_INPUT(VEC, D, v)                                \
  do {                                                            \
    SET_FIRST(D, v);                                              \
    _Pragma("unroll") for (int k_ = 0; k_ < PAIRS; ++k_) {        \
      const VEC shared_ = SHARED(k_, D), signed_ = SIGNED(k_, D); \
      v[PAIR_ROW(k_)] = shared_ + signed_;                        \
      v[PAIR_ROW(k_) + 1] = shared_ - signed_;                    \
    }                                                             \
    v[ALPHA - 1] = LAST(D);                                       \
  } while (0)

// Row i of A, TILE values: the powers of point i; for infinity only the last one.
#define POWERS(p) {1.0f, p, (p) * (p), (p) * (p) * (p)}
#define LAST_POWER(i) (TILE == (i) + 1 ? 1.0f : 0.0f)
__constant float winograd_powers[ALPHA][4] = {
#if ALPHA == 4
    POWERS(0.0f),
    POWERS(1.0f),
    POWERS(-1.0f),
#elif ALPHA == 6
    POWERS(0.0f),
    POWERS(P1),
    POWERS(-P1),
    POWERS(P2),
    POWERS(-P2),
#else
    POWERS(P1),
    POWERS(-P1),
    POWERS(P2),
    POWERS(-P2),
    POWERS(P3),
    POWERS(-P3),
#endif
    {0.0f, LAST_POWER(1), LAST_POWER(2), LAST_POWER(3)},
};
