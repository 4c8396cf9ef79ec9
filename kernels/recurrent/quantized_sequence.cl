// quantized_sequence.cl - the steps of an LSTM of integers that depend on each other, see sequence.cl
//
// Inputs and results are int8, cells and gates int16. Functions are tables of all values of int16.
//
// Shapes    pre: [all steps * batch, GATES * cells], from recurrent_quantized_product
//           wh: [outputs, GATES * cells], wp: [cells, outputs]; c_src, c_dst: [batch, cells]
//           vectors: [GATES * cells] bias, [3 * cells] peephole weights of i, f and o, [GATES * cells]
//           coefficients, [outputs] bias of the projection
//           scales: [GATES, 8] ints, for each gate multiplier and shift of the products with the input,
//           with the state, with the cells, and of the normalisation; [GATES] ints, the least variances
//           functions: [3, 65536], sigmoid of a gate, tanh of a gate, tanh of a cell
//           h_src, h_dst: [batch, outputs]; dst: [all steps * batch, outputs]; rows of pre and dst for
//           step t and image b: t * t_stride + b * b_stride; steps go from `start` on
//           memory: [batch, memory_size] or local, the ints h, c, the gates and 12 moments
// Launch    one work-group per image: global = (batch * WG, 1, 1), local = (WG, 1, 1)
// Macros    GATES       3|4          4: i, f, g, o; 3: without i
//           FUSED       0|1          1: adds h * wh; 0: pre includes it, and there is one step
//           PEEPHOLE    0|1          peephole weights
//           NORM        0|1          layer normalisation
//           PROJECTION  0|1|2        of the results; 2: with a bias
//           SHARED      local|global  address space of `memory`
//           WG          power of two, 1..1024  work-items
// Numerics  equal to TFLite's kernel
#include "common/fixed_point.cl"
#include "common/types.cl"

#if FUSED
#define STATE_PARAMS __global const char *h_src, __global const char *wh, int h_zero,
#else
#define STATE_PARAMS
#endif
#if PROJECTION
#define PROJECTION_PARAMS \
  __global const char *wp, int wp_multiplier, int wp_shift, int dst_zero, int proj_clip,
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

#define SHORT(x) clamp(x, -32768, 32767)
#define SCALED(x, gate, part) \
  requantize_int(x, scales[8 * (gate) + 2 * (part)], scales[8 * (gate) + 2 * (part) + 1])
#define FUNCTION(f, x) functions[(f) * 65536 + ((x) & 65535)]
#define GATE_F (GATES - 3)
#define GATE_G (GATES - 2)
#define GATE_O (GATES - 1)

#if NORM
// Of a gate: 1024 times the mean, and 1 / the standard deviation as multiplier and shift. They go through
// memory, as PoCL 3.1 loses private variables at such barriers.
static inline void find_moments(MEMORY const int *gate, int least, int cells, MEMORY int *moments) {
  long sum = 0, squares = 0;
  for (int j = 0; j < cells; ++j) {
    sum += gate[j];
    squares += gate[j] * gate[j];
  }
  const int mean = (int)(sum * 1024 / cells);
  const long spread = squares * ((1 << 20) / cells) - (long)mean * mean;
  int variance = (int)(spread / (1 << 20));
  if (variance < 1) variance = least;
  int right;
  const int root = fixed_inverse_root(variance, &right);
  moments[0] = mean;
  moments[1] = root;
  moments[2] = -right;
}
static inline int normalized(int x, MEMORY const int *moments, int coefficient, int bias,
                             int multiplier, int shift) {
  const int centred = requantize_int(1024 * x - moments[0], moments[1], moments[2]);
  const long weighted = centred * coefficient + bias;
  const int rounded = (int)((weighted > 0 ? weighted + 512 : weighted - 512) / 1024);
  return SHORT(requantize_int(rounded, multiplier, shift + 12));
}
#define FIND_MOMENTS(gate) \
  find_moments(gates + (gate) * cells, scales[8 * GATES + (gate)], cells, moments + 3 * (gate))
#define NORMALIZED(gate, j)                                                                 \
  normalized(gates[(gate) * cells + (j)], moments + 3 * (gate), norm[(gate) * cells + (j)], \
             vectors[(gate) * cells + (j)], scales[8 * (gate) + 6], scales[8 * (gate) + 7])
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void recurrent_quantized_sequence(
    __global const short *pre, STATE_PARAMS __global const short *c_src, __global short *c_dst,
    PROJECTION_PARAMS __global char *h_dst, __global const int *vectors, __global const int *scales,
    __global const short *functions, __global char *dst, MEMORY int *memory, int memory_size,
    int steps, int cells, int outputs, int t_stride, int b_stride, int start, int cell_shift,
    int cell_clip, int hidden_multiplier, int hidden_shift, int hidden_zero) {
  const int b = get_group_id(0);
  const int cols = GATES * cells;
  memory += MEMORY_STRIDE * b;
  MEMORY int *const h = memory, *const c = h + outputs, *const gates = c + cells,
                    *const moments = gates + cols;
  __global const int *const peephole = vectors + cols, *const norm = peephole + 3 * cells,
                            *const proj_bias = norm + cols;
#if FUSED
  EACH(k, outputs) h[k] = h_src[b * outputs + k];
#endif
  EACH(j, cells) c[j] = c_src[b * cells + j];
  WAIT;
  for (int t = start; t < start + steps; ++t) {
    const int row = t * t_stride + b * b_stride;
    EACH(col, cols) {
      int value = pre[row * cols + col];
#if FUSED
      int sum = 0;
      for (int k = 0; k < outputs; ++k) sum += (h[k] - h_zero) * wh[k * cols + col];
      value = SHORT(SCALED(sum, col / cells, 1) + value);
#endif
      gates[col] = value;
    }
    WAIT;
#if PEEPHOLE
    EACH(j, cells) {
      if (GATES == 4) gates[j] = SHORT(SCALED(peephole[j] * c[j], 0, 2) + gates[j]);
      const int f = GATE_F * cells + j;
      gates[f] = SHORT(SCALED(peephole[cells + j] * c[j], GATE_F, 2) + gates[f]);
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
      const int forget = FUNCTION(0, gates[GATE_F * cells + j]);
      const int input = GATES == 4 ? FUNCTION(0, gates[j]) : 32767 - forget;
      const int kept = (short)FIXED_SHIFT(forget * c[j], 15);
      const int product = input * FUNCTION(1, gates[GATE_G * cells + j]);
      int cell = SHORT(kept + (short)FIXED_SHIFT(product, cell_shift));
      if (cell_clip > 0) cell = clamp(cell, -cell_clip, cell_clip);
      c[j] = cell;
#if PEEPHOLE
      const int o = GATE_O * cells + j;
      gates[o] = SHORT(SCALED(peephole[2 * cells + j] * cell, GATE_O, 2) + gates[o]);
#endif
    }
#if NORM
    WAIT;
    EACH(gate, 1) FIND_MOMENTS(GATE_O);
    WAIT;
    EACH(j, cells) gates[GATE_O * cells + j] = NORMALIZED(GATE_O, j);
#endif
    EACH(j, cells) {
      const int product = FUNCTION(0, gates[GATE_O * cells + j]) * FUNCTION(2, c[j]);
      const int scaled = requantize_int(product, hidden_multiplier, hidden_shift);
#if PROJECTION
      gates[j] = clamp(scaled - hidden_zero, -128, 127);
#else
      const int hidden = clamp(scaled + hidden_zero, -128, 127);
      h[j] = hidden;
      dst[row * outputs + j] = (char)hidden;
#endif
    }
#if PROJECTION
    WAIT;
    EACH(p, outputs) {
      int sum = PROJECTION == 2 ? proj_bias[p] : 0;
      for (int j = 0; j < cells; ++j) sum += (gates[j] + hidden_zero) * wp[j * outputs + p];
      int result = clamp(requantize_int(sum, wp_multiplier, wp_shift) + dst_zero, -128, 127);
      if (proj_clip > 0) result = clamp(result, -proj_clip, proj_clip);
      h[p] = result;
      dst[row * outputs + p] = (char)result;
    }
#endif
    WAIT;
  }
  EACH(k, outputs) h_dst[b * outputs + k] = (char)h[k];
  EACH(j, cells) c_dst[b * cells + j] = (short)c[j];
}
