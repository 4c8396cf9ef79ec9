// activation.cl - the activation of float kernels: ACTIVATE(x) for a scalar or a vector of floats
//
// Macros    ACT        0..14, clgpu::ir::Activation: 0 none, 1 relu, 2 relu_n1_to_1, 3 relu6, 4 tanh,
//                      5 sign bit, 6 sigmoid, 7 relu_0_to_1, 8 hard_swish, 9 leaky_relu, 10 elu,
//                      11 gelu (erf), 12 gelu (tanh), 13 swish, 14 prelu: only in
//                      common/epilogue.cl, by FINISH_SUM
//           ACT_ALPHA  float literal, the slope of leaky_relu; 0.0f otherwise
#include "common/bounds.cl"
#include "common/types.cl"

#if ACT < 0 || ACT > 14
#error "ACT is out of range (0..14)"
#endif

#define ACTIVATE(x) ACTIVATION(ACT, x)
// One activation by its number, for kernels that have two.
#define ACTIVATION(act, x) CLGPU_CAT(activation_, act)(x)
#define activation_0(x) (x)
#define activation_1(x) AT_LEAST(x, 0.0f)
#define activation_2(x) WITHIN(x, -1.0f, 1.0f)
#define activation_3(x) WITHIN(x, 0.0f, 6.0f)
#define activation_4(x) tanh(x)
#define activation_5(x) (-fmin(sign(x), 0.0f))
#define activation_6(x) (1.0f / (1.0f + exp(-(x))))
#define activation_7(x) WITHIN(x, 0.0f, 1.0f)
#define activation_8(x) ((x) * (fmin(fmax((x) + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f)))
#define activation_9(x) (AT_LEAST(x, 0.0f) + ACT_ALPHA * fmin(x, 0.0f))
#define activation_10(x) (AT_LEAST(x, 0.0f) + expm1(fmin(x, 0.0f)))
#define activation_11(x) (0.5f * (x) * (1.0f + erf((x) * 0.70710678118654752f)))
#define activation_12(x) \
  (0.5f * (x) * (1.0f + tanh(0.79788456080286536f * ((x) + 0.044715f * (x) * (x) * (x)))))
#define activation_13(x) ((x) / (1.0f + exp(-(x))))
