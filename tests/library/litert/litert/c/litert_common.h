/* The functions of LiteRT's C API that the examples call: enough to compile them, for LiteRT's
 * package has the library and no headers. The other headers of LiteRT's include this one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { kLiteRtStatusOk = 0 } LiteRtStatus;
typedef struct LiteRtEnvironmentT* LiteRtEnvironment;
typedef struct LiteRtModelT* LiteRtModel;
typedef struct LiteRtOptionsT* LiteRtOptions;
typedef struct LiteRtCompiledModelT* LiteRtCompiledModel;
typedef struct LiteRtTensorBufferT* LiteRtTensorBuffer;
typedef size_t LiteRtParamIndex;
typedef int LiteRtHwAcceleratorSet;
enum { kLiteRtHwAcceleratorGpu = 2 };
typedef enum {
  kLiteRtTensorBufferLockModeRead = 0,
  kLiteRtTensorBufferLockModeWrite = 1
} LiteRtTensorBufferLockMode;

typedef enum { kLiteRtAnyTypeInt = 2, kLiteRtAnyTypeString = 8 } LiteRtAnyType;
typedef struct {
  LiteRtAnyType type;
  union {
    int64_t int_value;
    const char* str_value;
  };
} LiteRtAny;
typedef enum {
  kLiteRtEnvOptionTagOpenClDeviceId = 2,
  kLiteRtEnvOptionTagOpenClPlatformId = 3,
  kLiteRtEnvOptionTagOpenClContext = 4,
  kLiteRtEnvOptionTagRuntimeLibraryDir = 22
} LiteRtEnvOptionTag;
typedef struct {
  LiteRtEnvOptionTag tag;
  LiteRtAny value;
} LiteRtEnvOption;
LiteRtStatus LiteRtCreateEnvironment(int count, const LiteRtEnvOption* options,
                                     LiteRtEnvironment* environment);
LiteRtStatus LiteRtAddEnvironmentOptions(LiteRtEnvironment environment, int count,
                                         const LiteRtEnvOption* options, bool overwrite);
void LiteRtDestroyEnvironment(LiteRtEnvironment environment);

LiteRtStatus LiteRtCreateModelFromFile(LiteRtEnvironment environment, const char* path,
                                       LiteRtModel* model);
void LiteRtDestroyModel(LiteRtModel model);
LiteRtStatus LiteRtCreateOptions(LiteRtOptions* options);
LiteRtStatus LiteRtSetOptionsHardwareAccelerators(LiteRtOptions options,
                                                  LiteRtHwAcceleratorSet hardware);
void LiteRtDestroyOptions(LiteRtOptions options);

typedef struct {
  unsigned int rank : 7;
  unsigned int has_strides : 1;
  int32_t dimensions[8];
  uint32_t strides[8];
} LiteRtLayout;
typedef enum { kLiteRtElementTypeFloat32 = 1 } LiteRtElementType;
typedef struct {
  LiteRtElementType element_type;
  LiteRtLayout layout;
} LiteRtRankedTensorType;
LiteRtStatus LiteRtCreateCompiledModel(LiteRtEnvironment environment, LiteRtModel model,
                                       LiteRtOptions options, LiteRtCompiledModel* compiled);
LiteRtStatus LiteRtGetCompiledModelInputTensorLayout(LiteRtCompiledModel compiled,
                                                     LiteRtParamIndex signature,
                                                     LiteRtParamIndex input, LiteRtLayout* layout);
LiteRtStatus LiteRtGetCompiledModelOutputTensorLayouts(LiteRtCompiledModel compiled,
                                                       LiteRtParamIndex signature, size_t count,
                                                       LiteRtLayout* layouts, bool update);
LiteRtStatus LiteRtRunCompiledModel(LiteRtCompiledModel compiled, LiteRtParamIndex signature,
                                    size_t inputs, LiteRtTensorBuffer* input_buffers,
                                    size_t outputs, LiteRtTensorBuffer* output_buffers);
void LiteRtDestroyCompiledModel(LiteRtCompiledModel compiled);

typedef enum {
  kLiteRtTensorBufferTypeHostMemory = 1,
  kLiteRtTensorBufferTypeOpenClBufferPacked = 14
} LiteRtTensorBufferType;
typedef struct _cl_mem* LiteRtClMem;
typedef void (*LiteRtOpenClDeallocator)(void* memory);
LiteRtStatus LiteRtCreateTensorBufferFromOpenClMemory(LiteRtEnvironment environment,
                                                      const LiteRtRankedTensorType* type,
                                                      LiteRtTensorBufferType kind,
                                                      LiteRtClMem memory, size_t bytes,
                                                      LiteRtOpenClDeallocator deallocator,
                                                      LiteRtTensorBuffer* buffer);
LiteRtStatus LiteRtCreateManagedTensorBuffer(LiteRtEnvironment environment,
                                             LiteRtTensorBufferType kind,
                                             const LiteRtRankedTensorType* type, size_t bytes,
                                             LiteRtTensorBuffer* buffer);
LiteRtStatus LiteRtLockTensorBuffer(LiteRtTensorBuffer buffer, void** data,
                                    LiteRtTensorBufferLockMode mode);
LiteRtStatus LiteRtUnlockTensorBuffer(LiteRtTensorBuffer buffer);
void LiteRtDestroyTensorBuffer(LiteRtTensorBuffer buffer);

#ifdef __cplusplus
}
#endif
