// bounds.cl - bounds of floats, or of vectors of floats; a NaN stays a NaN
//
// AT_LEAST(x, low)     x, or low if x is less
// WITHIN(x, low, high) x between both bounds
//
// fmax and fmin alone return the bound for a NaN, which hides that a network has overflowed. select
// instead of ?:, because ?: makes branches: with loads among the operands compilers take minutes.
// The macros repeat their operands, so the operands must not have side effects.
#define AT_LEAST(x, low) select(fmax(x, low), x, isnan(x))
#define WITHIN(x, low, high) select(fmin(fmax(x, low), high), x, isnan(x))
