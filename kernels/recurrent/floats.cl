// floats.cl - the arithmetic of sequence.cl in floats
//
// scales: [3, GATES], of which the last row belongs to the products with the state
#include "common/activation.cl"

#define ARITHMETIC_PARAMS float wp_scale
#define FROM_STATE(x) (x)
#define SCALE_STATE(sum, gate) sum *= scales[2 * GATES + (gate)]
#define GATE(x) (x)
#define ADD_PEEPHOLE(gate, part, cell) OF_CELL(gates, gate) += OF_CELL(peephole, part) * (cell)
#define ONE 1.0f
#define SIGMOID(x) ACTIVATION(6, x)
#define ACTIVATED_GATE(x) ACTIVATE(x)
#define ACTIVATED_CELL(x) ACTIVATE(x)
#define CELL(forget, cell, input, gate) ((forget) * (cell) + (input) * (gate))
#define CLIPPED(x, limit) WITHIN(x, -(limit), limit)
#define HIDDEN(output, cell) ((output) * (cell))
#define FROM_HIDDEN(x) (x)
#define FINISH_PROJECTION(sum, i) \
  sum *= wp_scale;                \
  if (PROJECTION == 2) sum += proj_bias[i]

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
#define NORMALIZED(gate)                                                                          \
  ((OF_CELL(gates, gate) - moments[2 * (gate)]) * moments[2 * (gate) + 1] * OF_CELL(norm, gate) + \
   OF_CELL(vectors, gate))
#endif
