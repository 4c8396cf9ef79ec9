// index.cl - a flat output index split into six coordinates
//
// Tensors of rank 1 to 6 are seen as rank 6 with leading ones. Kernels take the six sizes of the
// output as int arguments d0..d5 (slowest first) and get the coordinates i0..i5 in registers.
#define UNRAVEL6(flat, d1, d2, d3, d4, d5) \
  int rest_ = (flat);                      \
  const int i5 = rest_ % (d5);             \
  rest_ /= (d5);                           \
  const int i4 = rest_ % (d4);             \
  rest_ /= (d4);                           \
  const int i3 = rest_ % (d3);             \
  rest_ /= (d3);                           \
  const int i2 = rest_ % (d2);             \
  rest_ /= (d2);                           \
  const int i1 = rest_ % (d1);             \
  const int i0 = rest_ / (d1)
