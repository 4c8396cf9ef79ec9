// sequence.cl - the steps of a recurrent layer that depend on each other
//
//   LSTM  c = clip(sigmoid(f) * c + sigmoid(i) * act(g)), h = projection(sigmoid(o) * act(c))
//   RNN   h = act(g)
//
// with i, f, g, o = pre + h * wh, plus the peephole weights times c; without an input gate, sigmoid(i)
// is 1 - sigmoid(f). With layer normalisation each gate is normalised over its cells, multiplied by its
// coefficients, and the bias is added then.
//
// Shapes    pre: [all steps * batch, GATES * cells], from recurrent_product; wh: [outputs, GATES * cells]
//           vectors: [GATES * cells] bias, [3 * cells] peephole weights of i, f and o, [GATES * cells]
//           coefficients, [outputs] bias of the projection; scales: [3, GATES], the last row is of wh
//           wp: [cells, outputs]; c_src, c_dst: [batch, cells]; h_src, h_dst: [batch, outputs]
//           dst: [all steps * batch, dst_pitch], the results from column dst_first on; rows of pre and dst
//           for step t and image b: t * t_stride + b * b_stride. Steps begin at t = start and go on by
//           t_step, 1 or -1. memory: [batch, memory_size] or local, the floats h, c, the gates and 8 moments
// Launch    one work-group per image: global = (batch * WG, 1, 1), local = (WG, 1, 1)
// Macros    GATES       1|3|4               4: i, f, g, o; 3: without i; 1: RNN
//           FUSED       0|1                 1: adds h * wh; 0: pre includes it, and there is one step
//           PEEPHOLE    0|1                 peephole weights
//           NORM        0|1                 layer normalisation
//           PROJECTION  0|1|2               of the results; 2: with a bias
//           CELL_CLIP   0|1                 c is limited to +-cell_clip
//           PROJ_CLIP   0|1                 h is limited to +-proj_clip
//           SHARED      local|global        address space of `memory`
//           WG          power of two, 1..1024  work-items
//           WH_T if FUSED == 1  float|half|weight8  element type of wh
//           WP_T        float|half|weight8  element type of wp; any without a projection
//           H_SRC_T if FUSED == 1  float|half  element type of h_src
//           H_DST_T     float|half          element type of h_dst
//           C_SRC_T     float|half          element type of c_src; any for GATES 1
//           C_DST_T     float|half          element type of c_dst; any for GATES 1
//           DST_T       float|half          element type of dst
// Numerics  float sums; ACT and ACT_ALPHA: see common/activation.cl
#include "common/activation.cl"
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
#define PROJECTION_PARAMS __global const WP_T *wp, float wp_scale,
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

#define SIGMOID(x) ACTIVATION(6, x)
#define GATE_F (GATES - 3)
#define GATE_G (GATES - 2)
#define GATE_O (GATES - 1)

#if NORM
// The mean of a gate, and 1 / its standard deviation. They go through memory, as PoCL 3.1 loses private
// variables at such barriers.
static inline void find_moments(MEMORY const float *gate, int cells, MEMORY float *moments) {
  float sum = 0.0f, squares = 0.0f;
  for (int j = 0; j < cells; ++j) sum += gate[j];
  const float mean = sum / cells;
  for (int j = 0; j < cells; ++j) squares += (gate[j] - mean) * (gate[j] - mean);
  moments[0] = mean;
  moments[1] = 1.0f / sqrt(squares / cells + 1e-8f);
}
#define FIND_MOMENTS(gate) find_moments(gates + (gate) * cells, cells, moments + 2 * (gate))
#define NORMALIZED(gate, j)                                                        \
  ((gates[(gate) * cells + (j)] - moments[2 * (gate)]) * moments[2 * (gate) + 1] * \
       norm[(gate) * cells + (j)] +                                                \
   vectors[(gate) * cells + (j)])
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void recurrent_sequence(
    __global const float *pre, STATE_PARAMS CELL_PARAMS PROJECTION_PARAMS __global H_DST_T *h_dst,
    __global const float *vectors, __global const float *scales, __global DST_T *dst,
    MEMORY float *memory, int memory_size, int steps, int cells, int outputs, int t_stride,
    int b_stride, int start, int t_step, int dst_pitch, int dst_first, float cell_clip,
    float proj_clip) {
  const int b = get_group_id(0);
  const int cols = GATES * cells;
  memory += MEMORY_STRIDE * b;
  MEMORY float *const h = memory, *const c = h + outputs,
                      *const gates = c + (GATES == 1 ? 0 : cells), *const moments = gates + cols;
  __global const float *const peephole = vectors + cols, *const norm = peephole + 3 * cells,
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
      float sum = 0.0f;
#if FUSED
      for (int k = 0; k < outputs; ++k) sum += h[k] * LOAD(WH_T, wh, k * cols + col);
      sum *= scales[2 * GATES + col / cells];
#endif
      gates[col] = pre[row * cols + col] + sum;
    }
    WAIT;
#if GATES == 1
    EACH(j, cells) {
      const float value = ACTIVATE(gates[j]);
      h[j] = value;
      STORE(DST_T, dst, row * dst_pitch + dst_first + j, value);
    }
#else
#if PEEPHOLE
    EACH(j, cells) {
      if (GATES == 4) gates[j] += peephole[j] * c[j];
      gates[GATE_F * cells + j] += peephole[cells + j] * c[j];
    }
#endif
#if NORM
    WAIT;
    EACH(gate, GATE_O) FIND_MOMENTS(gate);
    WAIT;
    EACH(j, cells) {
      for (int gate = 0; gate < GATE_O; ++gate) gates[gate * cells + j] = NORMALIZED(gate, j);
    }
#endif
    EACH(j, cells) {
      const float forget = SIGMOID(gates[GATE_F * cells + j]);
      const float input = GATES == 4 ? SIGMOID(gates[j]) : 1.0f - forget;
      float cell = forget * c[j] + input * ACTIVATE(gates[GATE_G * cells + j]);
#if CELL_CLIP
      cell = WITHIN(cell, -cell_clip, cell_clip);
#endif
      c[j] = cell;
#if PEEPHOLE
      gates[GATE_O * cells + j] += peephole[2 * cells + j] * cell;
#endif
    }
#if NORM
    WAIT;
    EACH(gate, 1) FIND_MOMENTS(GATE_O);
    WAIT;
    EACH(j, cells) gates[GATE_O * cells + j] = NORMALIZED(GATE_O, j);
#endif
    EACH(j, cells) {
      const float hidden = SIGMOID(gates[GATE_O * cells + j]) * ACTIVATE(c[j]);
#if PROJECTION
      gates[j] = hidden;
#else
      h[j] = hidden;
      STORE(DST_T, dst, row * dst_pitch + dst_first + j, hidden);
#endif
    }
#if PROJECTION
    WAIT;
    EACH(p, outputs) {
      float sum = 0.0f;
      for (int j = 0; j < cells; ++j) sum += gates[j] * LOAD(WP_T, wp, j * outputs + p);
      sum *= wp_scale;
#if PROJECTION == 2
      sum += proj_bias[p];
#endif
#if PROJ_CLIP
      sum = WITHIN(sum, -proj_clip, proj_clip);
#endif
      h[p] = sum;
      STORE(DST_T, dst, row * dst_pitch + dst_first + p, sum);
    }
#endif
#endif
    WAIT;
  }
  EACH(k, outputs) STORE(H_DST_T, h_dst, b * outputs + k, h[k]);
#if GATES > 1
  EACH(j, cells) STORE(C_DST_T, c_dst, b * cells + j, c[j]);
#endif
}
