// piece.cl - pieces of 16 bytes of packed weights, in the kernels that pack them
//
// EACH                       elements of a piece
// WEIGHT_AT(k)               the weight of `channel` in `group` at depth k
// STORE_PIECE(i, x)          writes piece i of dst from the private array x
//
// Macros    TRANSPOSED  0|1              1: the depth is the slower axis of src
//           SRC_T       float|half|weight8|char  element type of src
//           DST_T       float|half|char  element type of dst
#include "common/types.cl"

#define BYTES_char 1
#define BYTES_half 2
#define BYTES_float 4
#define BYTES CLGPU_CAT(BYTES_, DST_T)
#define EACH (16 / BYTES)

#if TRANSPOSED
#define WEIGHT_AT(k) LOAD(SRC_T, src, (group * depth + (k)) * group_out + channel)
#else
#define WEIGHT_AT(k) LOAD(SRC_T, src, (group * group_out + channel) * depth + (k))
#endif

#if BYTES == 4
#define STORE_PIECE(i, x) STORE4_ALIGNED(DST_T, dst, (i) * EACH, (float4)(x[0], x[1], x[2], x[3]))
#elif BYTES == 2
#define STORE_PIECE(i, x) \
  STORE8_ALIGNED(DST_T, dst, (i) * EACH, (float8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]))
#else
#define STORE_PIECE(i, x)                                                                        \
  (*(__global char16 *)(dst + (i) * EACH) =                                                      \
       (char16)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], \
                x[13], x[14], x[15]))
#endif
