// local.cl - arrays in the local memory of a work-group
//
// LOCAL_ARRAY(T, name, n)         T name[n]
// LOCAL_ARRAY2(T, name, n, m)     T name[n][m]
// LOCAL_ARRAY3(T, name, n, m, k)  T name[n][m][k]
// LOCAL_LINES(T, name, n)         T name[n], at an address that is a multiple of 128 bytes
//
// OpenCL C allows such declarations in kernels only. A stage of a chain is a function, for which
// common/chain_stage.cl defines these macros: `name` is then a pointer, so its size must not be taken.
//
// OPERANDS_READY()                stands between reads of what no launch of an inference writes, such as weights, or
//                                 what one wrote that stages have waited for before, and all others, in a place that all
//                                 work-items reach: a stage waits there for those before it. The arguments that are read
//                                 before are Operand::early
//
// KEEPS_RESULTS()                 whether a launch may change what outlives an inference. Not in a chain that has given
//                                 up: its operands may be wrong. A work-item asks after OPERANDS_READY
#define OPERANDS_READY()
#define KEEPS_RESULTS() true
#define LOCAL_ARRAY(T, name, n) __local T name[n]
#define LOCAL_ARRAY2(T, name, n, m) __local T name[n][m]
#define LOCAL_ARRAY3(T, name, n, m, k) __local T name[n][m][k]
#define LOCAL_LINES(T, name, n) __local T name[n] __attribute__((aligned(128)))
