// vector_epilogue.cl - common/epilogue.cl for VW neighbouring channels
//
// CHANNEL_VEC_T, CHANNEL_VEC_AT(o), FINISH_SUM_VEC(sum, c, at)  see epilogue.cl
// FINISH_VEC(v, at)         see FINISH there
//
// Macros    those of common/epilogue.cl and common/vector.cl
#include "common/epilogue.cl"
#include "common/vector.cl"

#if VW == 1
#define CHANNEL_VEC_T CHANNEL_T
#define CHANNEL_VEC_AT(o) CHANNEL_AT(o)
#define FINISH_VEC(v, at) FINISH(v, at)
#define FINISH_SUM_VEC(sum, c, at) FINISH_SUM(sum, c, at)
#else
#define CHANNEL_VEC_T CLGPU_CAT(CLGPU_CAT(CHANNEL, VW), _T)
#define CHANNEL_VEC_AT(o) CLGPU_CAT(CLGPU_CAT(CHANNEL, VW), _AT)(o)
#define FINISH_VEC(v, at) CLGPU_CAT(FINISH, VW)(v, at)
#define FINISH_SUM_VEC(sum, c, at) CLGPU_CAT(FINISH_SUM, VW)(sum, c, at)
#endif
