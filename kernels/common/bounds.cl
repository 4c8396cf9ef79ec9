// bounds.cl - bounds of floats, or of vectors of them, that leave what is not a number as it is
//
// AT_LEAST(x, low)     x, or low where x is less
// WITHIN(x, low, high) the same with a bound on either side
//
// fmax and fmin alone return the bound for a NaN, which hides that a network has overflowed. By
// select, and not by ?:, which makes branches: with loads among the operands compilers take minutes.
// The operands stand in the text several times, so they must not have effects.
#define AT_LEAST(x, low) select(fmax(x, low), x, isnan(x))
#define WITHIN(x, low, high) select(fmin(fmax(x, low), high), x, isnan(x))
