#pragma once
#include "litert/c/litert_common.h"
