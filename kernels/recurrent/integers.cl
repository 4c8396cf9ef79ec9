// integers.cl - the arithmetic of sequence.cl in integers, equal to that of TFLite's kernel
//
// Inputs and results are int8, cells and gates int16, and functions tables of all values of int16.
//
// scales: [GATES, 8], for each gate multiplier and shift of the products with the input, with the state, with
//         the cells, and of the normalisation; [GATES], the least variances
// functions: [3, 65536], sigmoid of a gate, tanh of a gate, tanh of a cell
#include "common/fixed_point.cl"

#define ARITHMETIC_PARAMS                                                             \
  __global const short *functions, int h_zero, int cell_shift, int hidden_multiplier, \
      int hidden_shift, int hidden_zero, int wp_multiplier, int wp_shift
#define SCALED(x, gate, part) \
  requantize_int(x, scales[8 * (gate) + 2 * (part)], scales[8 * (gate) + 2 * (part) + 1])
#define BYTE(x) clamp(x, -128, 127)
#define SHORT(x) clamp(x, -32768, 32767)
#define FUNCTION(f, x) functions[(f) * 65536 + ((x) & 65535)]
#define FROM_STATE(x) ((x) - h_zero)
#define SCALE_STATE(sum, gate) sum = SCALED(sum, gate, 1)
#define GATE(x) SHORT(x)
#define ADD_PEEPHOLE(gate, part, cell) \
  OF_CELL(gates, gate) =               \
      SHORT(SCALED(OF_CELL(peephole, part) * (cell), gate, 2) + OF_CELL(gates, gate))
#define ONE 32767
#define SIGMOID(x) FUNCTION(0, x)
#define ACTIVATED_GATE(x) FUNCTION(1, x)
#define ACTIVATED_CELL(x) FUNCTION(2, x)
#define CELL(forget, cell, input, gate)             \
  SHORT((short)FIXED_SHIFT((forget) * (cell), 15) + \
        (short)FIXED_SHIFT((input) * (gate), cell_shift))
#define CLIPPED(x, limit) clamp(x, -(limit), limit)
// The zero point of what is projected has the other sign, and is added where it is read.
#define HIDDEN(output, cell)                                                \
  BYTE(requantize_int((output) * (cell), hidden_multiplier, hidden_shift) + \
       (PROJECTION ? -hidden_zero : hidden_zero))
#define FROM_HIDDEN(x) ((x) + hidden_zero)
#define FINISH_PROJECTION(sum, i)           \
  if (PROJECTION == 2) sum += proj_bias[i]; \
  sum = BYTE(requantize_int(sum, wp_multiplier, wp_shift) + h_zero)

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
#define NORMALIZED(gate)                                                      \
  normalized(OF_CELL(gates, gate), moments + 3 * (gate), OF_CELL(norm, gate), \
             OF_CELL(vectors, gate), scales[8 * (gate) + 6], scales[8 * (gate) + 7])
#endif
