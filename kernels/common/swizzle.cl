// swizzle.cl - the order of the pieces of a row in local memory
//
// SWIZZLE(row)  piece p of 16 bytes lies at piece p ^ SWIZZLE(row) of its row, so that the same piece of 8
//               rows covers all banks. Hopper's tensor cores read rows in this order
//
// Macros    STEP_BYTES  64|128  bytes of a row
#if STEP_BYTES == 64
#define SWIZZLE(row) (((row) >> 1) & 3)
#else
#define SWIZZLE(row) ((row) & 7)
#endif
