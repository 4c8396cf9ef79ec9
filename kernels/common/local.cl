// local.cl - arrays in the local memory of a work-group
//
// LOCAL_ARRAY(T, name, n)         T name[n]
// LOCAL_ARRAY2(T, name, n, m)     T name[n][m]
// LOCAL_ARRAY3(T, name, n, m, k)  T name[n][m][k]
// LOCAL_LINES(T, name, n)         T name[n], at an address that is a multiple of 128 bytes
//
// OpenCL C allows such declarations in kernels only. In a stage of a chain, which is a function, they are
// parts of the chain's block of local memory (see common/chain.cl): `name` is then a pointer, so its size
// must not be taken.
#if CLGPU_CHAIN
#define LOCAL_TAKE(T, n)                              \
  (chain_local += CHAIN_LOCAL_BYTES((n) * sizeof(T)), \
   chain_local - CHAIN_LOCAL_BYTES((n) * sizeof(T)))
#define LOCAL_ARRAY(T, name, n) __local T *const name = (__local T *)LOCAL_TAKE(T, n)
#define LOCAL_ARRAY2(T, name, n, m) \
  __local T(*const name)[m] = (__local T(*)[m])LOCAL_TAKE(T, (n) * (m))
#define LOCAL_ARRAY3(T, name, n, m, k) \
  __local T(*const name)[m][k] = (__local T(*)[m][k])LOCAL_TAKE(T, (n) * (m) * (k))
#define LOCAL_LINES LOCAL_ARRAY
#else
#define LOCAL_ARRAY(T, name, n) __local T name[n]
#define LOCAL_ARRAY2(T, name, n, m) __local T name[n][m]
#define LOCAL_ARRAY3(T, name, n, m, k) __local T name[n][m][k]
#define LOCAL_LINES(T, name, n) __local T name[n] __attribute__((aligned(128)))
#endif
