// wgmma.cl - Hopper's products of 64 x N blocks by four warps, both operands in local memory, as inline PTX
//
// Only for devices whose DeviceInfo::wgmma is set, in programs with the build flag kSm90aFlag
// (src_cpp/base/sm_90a.hpp): the instructions are comments until the program is made for sm_90a.
// All 128 items of four neighbouring warps, the first of which is a multiple of 4, must call each macro.
//
//   a, b: [64, K] and [N, K] with K of 32 bytes, in local memory as rows of STEP_BYTES bytes, whose
//         pieces are permuted as SWIZZLE of common/swizzle.cl tells. The first row is at a multiple of
//         8 * STEP_BYTES
//   c: [64, N], a vector MMA_SUM4_T for each 8 columns, as in common/mma.cl: warp w of the four has the
//      rows from 16 * w on
//
// WGMMA_OPERAND(address)     the descriptor of rows from `address` on; 2 more is the next K
// WGMMA_ADD(c, a, b)         c[0 .. N / 8 - 1] += a * b, which goes on after the instruction; a, b: descriptors
// WGMMA_FENCE()              before the first product, and after c has been accessed otherwise
// WGMMA_COMMIT()             ends a batch of products
// WGMMA_WAIT(pending)        waits until all batches but the last `pending` (a literal) are done
// WGMMA_SHOW()               after writes to local memory, before the barrier behind which products read them
//
// Macros    MMA_TYPE    3|4     operands: 3 half, 4 int8; see common/mma.cl
//           WGMMA_N     32|64|128|256  N
//           and that of common/swizzle.cl
// Numerics  as in common/mma.cl; the order of the sums of a product is the hardware's
#include "common/mma.cl"
#include "common/swizzle.cl"

// Begins the comment that becomes an instruction; in two strings, because tools take it for a comment in one.
#define SM_90A \
  "/"          \
  "/sm_90a "

// Address / 16 in 14 bits; from bit 32 on, bytes / 16 from 8 rows to the next; the swizzle, 1 for 128 bytes.
#define WGMMA_OPERAND(address)                                              \
  ((ulong)((uint)(address) >> 4 & 0x3FFF) | (ulong)(STEP_BYTES / 2) << 32 | \
   (ulong)(STEP_BYTES == 64 ? 2 : 1) << 62 | (ulong)1 << 16)

#if MMA_TYPE == 4
#define WGMMA_NAME(n) "wgmma.mma_async.sync.aligned.m64n" n "k32.s32.s8.s8 "
#define WGMMA_END "p;}"
#else
#define WGMMA_NAME(n) "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 "
#define WGMMA_END "p, 1, 1, 0, 0;}"
#endif
// "p" says whether c is added to: always.
#define WGMMA_ASM(n, registers, a, b)                                                      \
  SM_90A "{.reg .pred p; setp.eq.u32 p, 0, 0; " WGMMA_NAME(n) "{" registers "}, " a ", " b \
                                                              ", " WGMMA_END
#define WGMMA_REGISTERS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_REGISTERS_1 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_REGISTERS_2                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49" \
  ", %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_REGISTERS_3                                                                      \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81" \
  ", %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99" \
  ", %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114" \
  ", %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_4(v) \
  MMA_REGISTER((v).s0), MMA_REGISTER((v).s1), MMA_REGISTER((v).s2), MMA_REGISTER((v).s3)
#define WGMMA_16(c, n) \
  WGMMA_4((c)[n]), WGMMA_4((c)[(n) + 1]), WGMMA_4((c)[(n) + 2]), WGMMA_4((c)[(n) + 3])
#define WGMMA_32(c, n) WGMMA_16(c, n), WGMMA_16(c, (n) + 4)
#define WGMMA_64(c, n) WGMMA_32(c, n), WGMMA_32(c, (n) + 8)

#if WGMMA_N == 32
#define WGMMA_TEXT WGMMA_ASM("32", WGMMA_REGISTERS_0, "%16", "%17")
#define WGMMA_SUMS(c) WGMMA_16(c, 0)
#elif WGMMA_N == 64
#define WGMMA_TEXT WGMMA_ASM("64", WGMMA_REGISTERS_0 WGMMA_REGISTERS_1, "%32", "%33")
#define WGMMA_SUMS(c) WGMMA_32(c, 0)
#elif WGMMA_N == 128
#define WGMMA_TEXT \
  WGMMA_ASM("128", WGMMA_REGISTERS_0 WGMMA_REGISTERS_1 WGMMA_REGISTERS_2, "%64", "%65")
#define WGMMA_SUMS(c) WGMMA_64(c, 0)
#else
#define WGMMA_TEXT                                                                          \
  WGMMA_ASM("256", WGMMA_REGISTERS_0 WGMMA_REGISTERS_1 WGMMA_REGISTERS_2 WGMMA_REGISTERS_3, \
            "%128", "%129")
#define WGMMA_SUMS(c) WGMMA_64(c, 0), WGMMA_64(c, 16)
#endif
#define WGMMA_ADD(c, a, b) __asm volatile(WGMMA_TEXT : WGMMA_SUMS(c) : "l"(a), "l"(b) : "memory")
#define WGMMA_FENCE() __asm volatile(SM_90A "wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() __asm volatile(SM_90A "wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT(pending) \
  __asm volatile(SM_90A "wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")
#define WGMMA_SHOW() __asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
