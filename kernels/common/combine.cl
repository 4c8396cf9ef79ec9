// combine.cl - COMBINE(a, b): how reductions and updates combine an earlier number with a further one
//
// Macros    OP  0|1|2|3|4|5|6  0 the further one, 1 sum, 2 product, 3 the smaller, 4 the larger one, 5 both,
//                              6 any of them
#if OP == 0
#define COMBINE(a, b) (b)
#elif OP == 1
#define COMBINE(a, b) ((a) + (b))
#elif OP == 2
#define COMBINE(a, b) ((a) * (b))
#elif OP == 3
#define COMBINE(a, b) ((a) <= (b) ? (a) : (b))
#elif OP == 4
#define COMBINE(a, b) ((a) >= (b) ? (a) : (b))
#elif OP == 5
#define COMBINE(a, b) ((a) != 0 && (b) != 0 ? 1 : 0)
#else
#define COMBINE(a, b) ((a) != 0 || (b) != 0 ? 1 : 0)
#endif
