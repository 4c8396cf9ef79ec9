#pragma once
#include "musl/errno.h"
#undef errno
#ifdef __cplusplus
extern "C"
#endif
    int* __errno(void);
#define errno (*__errno())
