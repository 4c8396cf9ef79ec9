// bounds.cl - bounds of numbers and of vectors that leave what is not a number as it is
//
// AT_LEAST(x, low)  x, or low where x is less
// AT_MOST(x, high)  x, or high where x is more
//
// fmax and fmin return the bound for a NaN, which hides that a network has overflowed. The operands
// stand in the text twice: they must not have effects.
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))
#define AT_MOST(x, high) ((x) > (high) ? (high) : (x))
