// border.cl - the row or column of an image that a filter sees at a position around the image
//
// BORDER(i, n)  i where it is one of 0 .. n - 1. Else the position is outside: with REFLECT 0 and zeros are
//               read there; with REFLECT 1 it is a place that is mirrored at the outermost one (position -k
//               is k, n - 1 + k is n - 1 - k), outside only where i is n or more places away
//
// Macros    REFLECT  0|1  1: paddings mirror the image (MIRROR_PAD's mode REFLECT)

#if REFLECT
// Without conditions: |i| turns those in front round, the rest does so at the other end.
int mirrored(int i, int n) { return n - 1 - (int)abs(n - 1 - (int)abs(i)); }
#define BORDER(i, n) mirrored(i, n)
#else
#define BORDER(i, n) (i)
#endif
