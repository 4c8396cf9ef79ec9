#pragma once
#include <features.h>
#define __ANDROID_API_FUTURE__ 10000
#ifndef __ANDROID_API__
#define __ANDROID_API__ __ANDROID_MIN_SDK_VERSION__
#endif
