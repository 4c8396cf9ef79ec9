// Before any of musl's headers: what bionic's <sys/cdefs.h> says.
#pragma once
#include "musl/features.h"
#define __BIONIC__ 1
