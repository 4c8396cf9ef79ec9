// activation.cl - the epilogue of every float kernel: ACTIVATE(x) for a scalar or a vector of floats
//
// Macros    ACT        0..12, clgpu::ir::Activation: 0 none, 1 relu, 2 relu_n1_to_1, 3 relu6, 4 tanh,
//                      5 sign bit, 6 sigmoid, 7 relu_0_to_1, 8 hard_swish, 9 leaky_relu, 10 elu,
//                      11 gelu (erf), 12 gelu (tanh)
//           ACT_ALPHA  float literal, the slope of leaky_relu; 0.0f otherwise
#ifndef ACT
#error "ACT is required (0..12)"
#endif
#ifndef ACT_ALPHA
#error "ACT_ALPHA is required (float literal)"
#endif

#if ACT == 0
#define ACTIVATE(x) (x)
#elif ACT == 1
#define ACTIVATE(x) fmax(x, 0.0f)
#elif ACT == 2
#define ACTIVATE(x) fmin(fmax(x, -1.0f), 1.0f)
#elif ACT == 3
#define ACTIVATE(x) fmin(fmax(x, 0.0f), 6.0f)
#elif ACT == 4
#define ACTIVATE(x) tanh(x)
#elif ACT == 5
#define ACTIVATE(x) (-fmin(sign(x), 0.0f))
#elif ACT == 6
#define ACTIVATE(x) (1.0f / (1.0f + exp(-(x))))
#elif ACT == 7
#define ACTIVATE(x) fmin(fmax(x, 0.0f), 1.0f)
#elif ACT == 8
#define ACTIVATE(x) ((x) * fmin(fmax((x) + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f))
#elif ACT == 9
#define ACTIVATE(x) (fmax(x, 0.0f) + ACT_ALPHA * fmin(x, 0.0f))
#elif ACT == 10
#define ACTIVATE(x) (fmax(x, 0.0f) + expm1(fmin(x, 0.0f)))
#elif ACT == 11
#define ACTIVATE(x) (0.5f * (x) * (1.0f + erf((x) * 0.70710678118654752f)))
#elif ACT == 12
#define ACTIVATE(x) \
  (0.5f * (x) * (1.0f + tanh(0.79788456080286536f * ((x) + 0.044715f * (x) * (x) * (x)))))
#else
#error "ACT is out of range (0..12)"
#endif
