/* As c_api.h: TensorFlow Lite's loader of plugins. */
#pragma once

#include "tensorflow/lite/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteExternalDelegateOptions {
  const char* lib_path;
  int count;
  const char* keys[256];
  const char* values[256];
  TfLiteStatus (*insert)(struct TfLiteExternalDelegateOptions*, const char* key, const char* value);
} TfLiteExternalDelegateOptions;

TfLiteExternalDelegateOptions TfLiteExternalDelegateOptionsDefault(const char* lib_path);
TfLiteDelegate* TfLiteExternalDelegateCreate(const TfLiteExternalDelegateOptions* options);
void TfLiteExternalDelegateDelete(TfLiteDelegate* delegate);

#ifdef __cplusplus
}
#endif
