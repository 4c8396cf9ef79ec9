// word.cl - reading words: ints of four int8, the first in the lowest byte (common/dot8.cl)
//
// T is char or uchar; 128 is subtracted from uchar, which makes it int8. i counts elements.
//
// WORD(T, p, i, step, count)   the elements i, i + step, ...; zeros from the count-th on
// WORD_ALIGNED(T, p, i)        the elements i .. i+3; i is a multiple of 4, p the start of a buffer or aligned like it
// WORD4_ALIGNED(T, p, i)       four words, i .. i+15, as int4; multiples of 16
// WORD4_ACROSS(T, p, i, step, count)  an int4, one word for each of i .. i+3; the word of i:
//                              elements i, i + step, ...; i and step are multiples of 4
// word_mask(count)             the first count bytes of a word, all for 4 or more
#include "common/types.cl"

#define WORD_FLIP(T) CLGPU_CAT(word_flip_, T)
#define word_flip_char 0
#define word_flip_uchar 0x80808080u

static inline int word_mask(int count) {
  return count >= 4 ? -1 : (int)((1u << (8 * max(count, 0))) - 1u);
}
static inline int word_of(__global const char *p, int step, int count, uint flip) {
  uint w = 0;
  if (count > 0) w = (uchar)p[0] ^ (flip & 0xffu);
  if (count > 1) w |= (uint)(uchar)(p[step] ^ (char)flip) << 8;
  if (count > 2) w |= (uint)(uchar)(p[2 * step] ^ (char)flip) << 16;
  if (count > 3) w |= (uint)(uchar)(p[3 * step] ^ (char)flip) << 24;
  return as_int(w);
}
#define WORD_BYTES(j) \
  (j < count ? as_char4(*(__global const uint *)(p + j * step) ^ flip) : (char4)(0))
static inline int4 word4_across(__global const char *p, int step, int count, uint flip) {
  const char4 k0 = WORD_BYTES(0), k1 = WORD_BYTES(1), k2 = WORD_BYTES(2), k3 = WORD_BYTES(3);
  return (int4)(as_int((char4)(k0.s0, k1.s0, k2.s0, k3.s0)),
                as_int((char4)(k0.s1, k1.s1, k2.s1, k3.s1)),
                as_int((char4)(k0.s2, k1.s2, k2.s2, k3.s2)),
                as_int((char4)(k0.s3, k1.s3, k2.s3, k3.s3)));
}
#define WORD(T, p, i, step, count) \
  word_of((__global const char *)((p) + (i)), step, count, WORD_FLIP(T))
#define WORD4_ACROSS(T, p, i, step, count) \
  word4_across((__global const char *)((p) + (i)), step, count, WORD_FLIP(T))
#define WORD_ALIGNED(T, p, i) (as_int(*(__global const uint *)((p) + (i)) ^ WORD_FLIP(T)))
#define WORD4_ALIGNED(T, p, i) (as_int4(*(__global const uint4 *)((p) + (i)) ^ WORD_FLIP(T)))
