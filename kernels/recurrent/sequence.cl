// sequence.cl - the steps of a recurrent layer that depend on each other
//
//   LSTM  c = clip(sigmoid(f) * c + sigmoid(i) * act(g)), h = projection(sigmoid(o) * act(c))
//   RNN   h = act(g)
//
// with i, f, g, o = pre + h * wh, plus the peephole weights times c; without an input gate, sigmoid(i)
// is 1 - sigmoid(f). With layer normalisation each gate is normalised over its cells, multiplied by its
// coefficients, and the bias is added then. The arithmetic is that of floats.cl or integers.cl.
//
// Shapes    pre: [all steps * batch, GATES * cells], from recurrent_product; wh: [outputs, GATES * cells]
//           vectors: [GATES * cells] bias, [3 * cells] peephole weights of i, f and o, [GATES * cells]
//           coefficients, [outputs] bias of the projection; scales: see floats.cl and integers.cl
//           wp: [cells, outputs]; c_src, c_dst: [batch, cells]; h_src, h_dst: [batch, outputs]
//           dst: [all steps * batch, dst_pitch], the results from column dst_first on; rows of pre and dst
//           for step t and image b: t * t_stride + b * b_stride. Steps begin at t = start and go on by
//           t_step, 1 or -1. memory: [batch, memory_size] or local, the numbers h, c, the gates and 12 moments
// Launch    one work-group per image: global = (batch * WG, 1, 1), local = (WG, 1, 1)
// Macros    INTEGER     0|1                 1: an LSTM of integers
//           GATES       1|3|4               4: i, f, g, o; 3: without i; 1: RNN
//           FUSED       0|1                 1: adds h * wh; 0: pre includes it, and there is one step
//           PEEPHOLE    0|1                 peephole weights
//           NORM        0|1                 layer normalisation
//           PROJECTION  0|1|2               of the results; 2: with a bias
//           CELL_CLIP   0|1                 c is limited to +-cell_clip
//           PROJ_CLIP   0|1                 h is limited to +-proj_clip
//           SHARED      local|global        address space of `memory`
//           WG          power of two, 1..1024  work-items
//           ACC_T       float|int           type of memory, vectors and scales
//           PRE_T       float|short         element type of pre
//           WH_T if FUSED == 1  float|half|weight8|char  element type of wh
//           WP_T        float|half|weight8|char  element type of wp; any without a projection
//           H_SRC_T if FUSED == 1  float|half|char  element type of h_src
//           H_DST_T     float|half|char     element type of h_dst
//           C_SRC_T     float|half|short    element type of c_src; any for GATES 1
//           C_DST_T     float|half|short    element type of c_dst; any for GATES 1
//           DST_T       float|half|char     element type of dst
//           ACT, ACT_ALPHA if INTEGER == 0  see common/activation.cl
// Numerics  float sums; integers: equal to TFLite's kernel
#include "common/types.cl"

#if GATES == 1
#define CELL_PARAMS
#else
#define CELL_PARAMS __global const C_SRC_T *c_src, __global C_DST_T *c_dst,
#endif
#if FUSED
#define STATE_PARAMS __global const H_SRC_T *h_src, __global const WH_T *wh,
#else
#define STATE_PARAMS
#endif
#if PROJECTION
#define PROJECTION_PARAMS __global const WP_T *wp,
#else
#define PROJECTION_PARAMS
#endif

#define MEMORY CLGPU_CAT(__, SHARED)
// Local memory is that of one work-group.
#define local_STRIDE 0
#define global_STRIDE memory_size
#define MEMORY_STRIDE CLGPU_CAT(SHARED, _STRIDE)
#define local_FENCE CLK_LOCAL_MEM_FENCE
#define global_FENCE CLK_GLOBAL_MEM_FENCE
#define WAIT barrier(CLGPU_CAT(SHARED, _FENCE))
#define EACH(i, count) for (int i = get_local_id(0); i < (count); i += WG)

#define GATE_F (GATES - 3)
#define GATE_G (GATES - 2)
#define GATE_O (GATES - 1)
// The number of cell j in a vector for each gate.
#define OF_CELL(vectors, gate) vectors[(gate) * cells + j]

#if INTEGER
#include "recurrent/integers.cl"
#else
#include "recurrent/floats.cl"
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void recurrent_sequence(
    __global const PRE_T *pre, STATE_PARAMS CELL_PARAMS PROJECTION_PARAMS __global H_DST_T *h_dst,
    __global const ACC_T *vectors, __global const ACC_T *scales, __global DST_T *dst,
    MEMORY ACC_T *memory, int memory_size, int steps, int cells, int outputs, int t_stride,
    int b_stride, int start, int t_step, int dst_pitch, int dst_first, ACC_T cell_clip,
    ACC_T proj_clip, ARITHMETIC_PARAMS) {
  const int b = get_group_id(0);
  const int cols = GATES * cells;
  memory += MEMORY_STRIDE * b;
  MEMORY ACC_T *const h = memory, *const c = h + outputs,
                      *const gates = c + (GATES == 1 ? 0 : cells), *const moments = gates + cols;
  __global const ACC_T *const peephole = vectors + cols, *const norm = peephole + 3 * cells,
                              *const proj_bias = norm + cols;
#if FUSED
  EACH(k, outputs) h[k] = LOAD(H_SRC_T, h_src, b * outputs + k);
#endif
#if GATES > 1
  EACH(j, cells) c[j] = LOAD(C_SRC_T, c_src, b * cells + j);
#endif
  WAIT;
  for (int t = start; t != start + steps * t_step; t += t_step) {
    const int row = t * t_stride + b * b_stride;
    EACH(col, cols) {
      ACC_T sum = 0;
#if FUSED
      for (int k = 0; k < outputs; ++k) sum += FROM_STATE(h[k]) * LOAD(WH_T, wh, k * cols + col);
      SCALE_STATE(sum, col / cells);
#endif
      gates[col] = GATE(pre[row * cols + col] + sum);
    }
    WAIT;
#if PEEPHOLE
    EACH(j, cells) {
      if (GATES == 4) ADD_PEEPHOLE(0, 0, c[j]);
      ADD_PEEPHOLE(GATE_F, 1, c[j]);
    }
#endif
#if NORM
    WAIT;
    EACH(gate, GATE_O) FIND_MOMENTS(gate);
    WAIT;
    EACH(j, cells) {
      for (int gate = 0; gate < GATE_O; ++gate) OF_CELL(gates, gate) = NORMALIZED(gate);
    }
#endif
#if GATES > 1
    EACH(j, cells) {
      const ACC_T forget = SIGMOID(OF_CELL(gates, GATE_F));
      const ACC_T input = GATES == 4 ? SIGMOID(gates[j]) : ONE - forget;
      ACC_T cell = CELL(forget, c[j], input, ACTIVATED_GATE(OF_CELL(gates, GATE_G)));
#if CELL_CLIP
      cell = CLIPPED(cell, cell_clip);
#endif
      c[j] = cell;
#if PEEPHOLE
      ADD_PEEPHOLE(GATE_O, 2, cell);
#endif
    }
#endif
#if NORM
    WAIT;
    EACH(gate, 1) FIND_MOMENTS(GATE_O);
    WAIT;
    EACH(j, cells) OF_CELL(gates, GATE_O) = NORMALIZED(GATE_O);
#endif
    EACH(j, cells) {
#if GATES == 1
      const ACC_T hidden = ACTIVATED_GATE(gates[j]);
#else
      const ACC_T hidden = HIDDEN(SIGMOID(OF_CELL(gates, GATE_O)), ACTIVATED_CELL(c[j]));
#endif
#if PROJECTION
      gates[j] = hidden;
    }
    WAIT;
    EACH(j, outputs) {
      ACC_T hidden = 0;
      for (int i = 0; i < cells; ++i)
        hidden += FROM_HIDDEN(gates[i]) * LOAD(WP_T, wp, i * outputs + j);
      FINISH_PROJECTION(hidden, j);
#if PROJ_CLIP
      hidden = CLIPPED(hidden, proj_clip);
#endif
#endif
      h[j] = hidden;
      STORE(DST_T, dst, row * dst_pitch + dst_first + j, hidden);
    }
    WAIT;
  }
  EACH(k, outputs) STORE(H_DST_T, h_dst, b * outputs + k, h[k]);
#if GATES > 1
  EACH(j, cells) STORE(C_DST_T, c_dst, b * cells + j, c[j]);
#endif
}
