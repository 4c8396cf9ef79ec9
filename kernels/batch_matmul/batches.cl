// batches.cl - index of the matrices of x and y for a batch of dst
//
// The batch axes of dst are [b0, b1, b2, b3], padded with leading ones. x and y have stride 0 along the
// axes that they are broadcast over.
#define BATCH_PARAMETERS                                                              \
  int b1, int b2, int b3, int x_stride0, int x_stride1, int x_stride2, int x_stride3, \
      int y_stride0, int y_stride1, int y_stride2, int y_stride3

#define BATCH_OFFSET(batch, s0, s1, s2, s3)                                                   \
  ((batch) / b3 / b2 / b1 * (s0) + (batch) / b3 / b2 % b1 * (s1) + (batch) / b3 % b2 * (s2) + \
   (batch) % b3 * (s3))
#define BATCH_OFFSET_X(batch) BATCH_OFFSET(batch, x_stride0, x_stride1, x_stride2, x_stride3)
#define BATCH_OFFSET_Y(batch) BATCH_OFFSET(batch, y_stride0, y_stride1, y_stride2, y_stride3)
