// mma.cl - NVIDIA's tensor cores and asynchronous copies as inline PTX: products of 16 x 8 blocks by one
//          warp with operands from local memory, and copies into local memory without registers
//
// Only for devices whose DeviceInfo::mma_f16 (MMA_TYPE 0), mma_tf32 (1, 5), mma_s8 (2) or wgmma (3, 4) is set. All 32
// items of a warp must call each function; lane = item % 32, g = lane / 4, q = lane % 4. A
// register is 32 bits: two halves or four int8 (lower k in lower bits), or one float. K is 16
// halves, 8 floats or 32 int8: 32 bytes each.
//
//   a: [16, K] in four registers. halves: (g, 2q..2q+1), (g+8, 2q..), (g, 2q+8..), (g+8, 2q+8..);
//      floats: (g, q), (g+8, q), (g, q+4), (g+8, q+4);
//      int8: (g, 4q..4q+3), (g+8, 4q..), (g, 4q+16..), (g+8, 4q+16..)
//   b: [K, 8] in two. halves: (2q..2q+1, g), (2q+8.., g); floats: (q, g), (q+4, g);
//      int8: (4q..4q+3, g), (4q+16.., g)
//   c: [16, 8], MMA_SUM4_T: (g, 2q), (g, 2q+1), (g+8, 2q), (g+8, 2q+1)
//
// MMA_BYTES   bytes of an operand's element
// MMA_SUM_T, MMA_SUM4_T  types of sums: float, or int for int8
//
// Macros    MMA_TYPE  0..5  operands: 0 half, 1 float rounded to TF32 (10 bits of mantissa), 2 int8; 3 half
//                          and 4 int8 for products by four warps (common/wgmma.cl), 5 float for products of
//                          pairs (common/float_pairs.cl), then all but MMA is there
// Numerics  products are exact, sums in float; int8: sums are exact, modulo 2^32
#include "common/types.cl"

// An address in local memory, in the form that the instructions take.
uint local_address(__local const void *p) { return (uint)(size_t)p; }

// c += a * b
#if MMA_TYPE == 2 || MMA_TYPE == 4
#define MMA_NAME "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
#define MMA_BYTES 1
#define MMA_SUM_T int
#define MMA_SUM4_T int4
#define MMA_REGISTER "+r"
#else
#if MMA_TYPE == 1 || MMA_TYPE == 5
#define MMA_NAME "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#define MMA_BYTES 4
#else
#define MMA_NAME "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define MMA_BYTES 2
#endif
#define MMA_SUM_T float
#define MMA_SUM4_T float4
#define MMA_REGISTER "+f"
#endif
#define MMA(c, a, b0, b1)                                                                    \
  __asm volatile(MMA_NAME " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : MMA_REGISTER((c).s0), MMA_REGISTER((c).s1), MMA_REGISTER((c).s2),         \
                   MMA_REGISTER((c).s3)                                                      \
                 : "r"((a).s0), "r"((a).s1), "r"((a).s2), "r"((a).s3), "r"(b0), "r"(b1))

// Four or two matrices of 8 rows x 16 bytes: lanes 8i .. 8i+7 give the addresses of matrix i's rows,
// each a multiple of 16 bytes; register i gets 32 bits: row g, bytes 4q .. 4q+3.
#define LDMATRIX_X4(r, address)                                                     \
  __asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((r).s0), "=r"((r).s1), "=r"((r).s2), "=r"((r).s3)           \
                 : "r"(address)                                                     \
                 : "memory")
// The same with each matrix of 8 x 8 halves transposed.
#define LDMATRIX_X4_TRANSPOSED(r, address)                                                \
  __asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((r).s0), "=r"((r).s1), "=r"((r).s2), "=r"((r).s3)                 \
                 : "r"(address)                                                           \
                 : "memory")
#define LDMATRIX_X2(r, address)                                             \
  __asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" \
                 : "=r"((r).s0), "=r"((r).s1)                               \
                 : "r"(address)                                             \
                 : "memory")

// A float, given by its bits, rounded to TF32: to nearest, ties away from zero.
uint to_tf32(uint bits) {
  uint rounded;
  __asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(as_float(bits)));
  return rounded;
}

// Two floats rounded to nearest even, as the halves of a register, the first in the low bits.
uint to_halves(float low, float high) {
  uint bits;
  __asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(bits) : "f"(low), "f"(high));
  return bits;
}

// The 32 bits that lane ^ `bits` of the warp gives.
uint shuffle_xor(uint value, uint bits) {
  uint other;
  __asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(other)
                 : "r"(value), "r"(bits));
  return other;
}

// Whether it is true, not 0, for all lanes of the warp.
uint warp_all(uint truth) {
  uint all;
  __asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.all.pred p, p, 0xffffffff; "
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(all)
      : "r"(truth));
  return all;
}

// A bit for each lane of the warp: whether it is true, not 0, there.
uint lanes_with(uint truth) {
  uint lanes;
  __asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}"
                 : "=r"(lanes)
                 : "r"(truth));
  return lanes;
}

// Whether it is true, not 0, for any item of the work-group; also a barrier for local memory.
uint group_any(uint truth) {
  uint any;
  __asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %1, 0; bar.red.or.pred p, 0, p; "
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(any)
      : "r"(truth)
      : "memory");
  return any;
}

// Copies 4, 8 or 16 bytes to local memory; source and destination are aligned to that size. If `valid`
// is 0, nothing is read and zeros are written. After COPIES_WAIT the item itself sees the copy, after
// a barrier the others do.
#define COPY_16(address, from, valid)                                                       \
  __asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), \
                 "r"((valid) ? 16 : 0)                                                      \
                 : "memory")
#define COPY_8(address, from, valid)                                                       \
  __asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), \
                 "r"((valid) ? 8 : 0)                                                      \
                 : "memory")
#define COPY_4(address, from, valid)                                                       \
  __asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), \
                 "r"((valid) ? 4 : 0)                                                      \
                 : "memory")
// The same, but if `valid` is 0 the item fills the destination with `word`. With a constant in global
// memory all compute units would read one address, one after the other.
#define COPY_OR(kind, bytes, words, address, from, valid, word)                                    \
  __asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async." kind                          \
                 ".shared.global [%0], [%1], " bytes "; @!p st.shared." words ";}" ::"r"(address), \
                 "l"(from), "r"((uint)(valid)), "r"(word)                                          \
                 : "memory")
#define COPY_OR_16(address, from, valid, word) \
  COPY_OR("cg", "16", "v4.b32 [%0], {%3, %3, %3, %3}", address, from, valid, word)
#define COPY_OR_8(address, from, valid, word) \
  COPY_OR("ca", "8", "v2.b32 [%0], {%3, %3}", address, from, valid, word)
#define COPY_OR_4(address, from, valid, word) \
  COPY_OR("ca", "4", "b32 [%0], %3", address, from, valid, word)
// Writes four bytes to local memory.
#define STORE_WORD(address, word) \
  __asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory")
// Ends a batch of copies.
#define COPIES_COMMIT() __asm volatile("cp.async.commit_group;" ::: "memory")
// Waits until all batches of this item but the last `pending` (a literal) are done.
#define COPIES_WAIT(pending) __asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

// Orders this item's reads and writes of global memory with those of other work-groups.
#define FENCE_DEVICE() __asm volatile("fence.acq_rel.gpu;" ::: "memory")
