// border.cl - the row or column of an image that a filter reads at a position outside of the image
//
// BORDER(i, n)  i, if 0 <= i < n. A result outside of that range means zero. With REFLECT 0 the result is
//               always i. With REFLECT 1, i is mirrored at the first or last position (-k becomes k,
//               n - 1 + k becomes n - 1 - k); the result is outside only if i is n or more positions away
//
// Macros    REFLECT  0|1  1: paddings mirror the image (MIRROR_PAD's mode REFLECT)

#if REFLECT
// Without branches: the inner |.| mirrors positions before the image, the outer one those behind it.
int mirrored(int i, int n) { return n - 1 - (int)abs(n - 1 - (int)abs(i)); }
#define BORDER(i, n) mirrored(i, n)
#else
#define BORDER(i, n) (i)
#endif
