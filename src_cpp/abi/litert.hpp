// The interface between LiteRT and a GPU accelerator: the parts of its C interface that are used
// here, of versions 2.2 and 2.3. This project builds without LiteRT. Handles that are only passed
// on are void pointers.
#pragma once

#include <cstddef>
#include <cstdint>

struct AHardwareBuffer;
struct TfLiteDelegate;
struct TfLiteTensor;

namespace clgpu::litert {

enum Status : int {
  kOk = 0,
  kInvalidArgument = 1,
  kMemoryAllocationFailure = 2,
  kRuntimeFailure = 3,
  kUnsupported = 5,
};

/// First member of each structure that libraries share; gives the length of the structure.
struct Header {
  std::uint16_t size;   ///< bytes of the structure, this header included
  std::uint16_t major;  ///< 1
  std::uint16_t minor;
  std::uint16_t reserved;
};

struct Version {
  int major, minor, patch;
};

enum AnyType : int { kAnyInteger = 2, kAnyString = 8 };

/// A value of an option of the environment.
struct Any {
  AnyType type;
  union {
    std::int64_t integer;
    const char* string;
    const void* pointer;
  };
};

/// An option of the environment; OpenCL objects are integers.
struct EnvironmentOption {
  int tag;
  Any value;
};
constexpr int kOpenClDevice = 2, kOpenClPlatform = 3, kOpenClContext = 4, kOpenClQueue = 5;
constexpr int kRuntimeLibraryDir = 22;  ///< the folder that accelerators are loaded from

constexpr int kHardwareGpu = 2;                    ///< a bit of get_hardware_support
constexpr int kBufferContext = 4;                  ///< external context of a TfLiteContext
constexpr int kElementFloat32 = 1;                 ///< element type of a tensor
constexpr int kEventOpenCl = 2, kEventCustom = 5;  ///< kinds of events
enum LockMode : int { kLockRead = 0, kLockWrite = 1, kLockReadWrite = 2 };

/// Kinds of tensor buffers.
enum BufferType : int {
  kBufferHost = 1,
  kBufferAndroid = 2,  ///< AHardwareBuffer
  kBufferDma = 4,
  kBufferFastRpc = 5,
  kBufferGl = 6,
  kBufferOpenClPacked = 14,  ///< cl_mem with the bytes of the tensor, as on the host
};

struct TensorType {
  int element;
  unsigned rank : 7;
  unsigned has_strides : 1;
  std::int32_t dimensions[8];
  std::uint32_t strides[8];
};

/// An event that others than LiteRT implement.
struct CustomEvent {
  void (*retain)(CustomEvent* event);
  void (*release)(CustomEvent* event);
  void (*wait)(CustomEvent* event, std::int64_t timeout_ms);
  int (*is_signaled)(CustomEvent* event);
  void* (*native)(CustomEvent* event);
};

/// LiteRT's functions for accelerators. `buffers` is the external context kBufferContext.
struct RuntimeContext {
  Header header;
  int (*create_requirements)(int count, const int* types, std::size_t bytes, int stride_count,
                             const std::uint32_t* strides, void** requirements);
  /// The buffer of the current inference, to be destroyed by the caller.
  int (*get_tensor_buffer)(void* buffers, const TfLiteTensor* tensor, void** buffer);
  void* others[3];
  /// Takes the requirements.
  int (*register_requirements)(void* buffers, const TfLiteTensor* tensor, void* requirements);
  int (*get_environment)(void* buffers, void** environment);
  int (*is_async)(void* buffers, bool* is);
  void* destroy_buffers;
  int (*get_opaque_options)(void* options, void** opaque_options);
  int (*find_opaque_options_data)(void* opaque_options, const char* key, void** data);
  void* destroy_options;
  int (*get_environment_options)(void* environment, void** environment_options);
  int (*get_environment_options_value)(void* environment_options, int tag, Any* value);
  void (*has_gpu_environment)(void* environment, bool* has);
  int (*add_environment_options)(void* environment, int count, const EnvironmentOption* options,
                                 bool overwrite);
  int (*create_gpu_environment)(void* environment, int count, const EnvironmentOption* options);
  int (*wrap_delegate)(TfLiteDelegate* delegate, void (*destroy)(TfLiteDelegate*), void** wrapper);
  void* unwrap_delegate;
  void* create_from_host_memory;
  int (*create_buffer)(void* environment, int type, const TensorType* tensor, std::size_t bytes,
                       void** buffer);
  void (*destroy_buffer)(void* buffer);
  int (*get_buffer_type)(void* buffer, int* type);
  void* get_tensor_type;
  int (*get_buffer_size)(void* buffer, std::size_t* bytes);
  void* get_packed_size;
  /// Fails if the buffer has none.
  int (*get_buffer_offset)(void* buffer, std::size_t* offset);
  /// Waits for the buffer's event.
  int (*lock_buffer)(void* buffer, void** data, int mode);
  int (*unlock_buffer)(void* buffer);
  void* get_host_memory;
  int (*get_opencl_memory)(void* buffer, void** memory);
  void* get_gl_memory;
  void* get_custom_memory;
  int (*get_hardware_buffer)(void* buffer, AHardwareBuffer** hardware_buffer);
  void* get_dma_memory;
  void* get_fast_rpc_memory;
  int (*has_event)(void* buffer, bool* has);
  int (*get_event)(void* buffer, void** event);
  /// Takes the event.
  int (*set_event)(void* buffer, void* event);
  int (*create_event)(void* environment, int type, void** event);
  void* create_event_from_fence;
  int (*get_event_type)(void* event, int* type);
  void* get_sync_fence;
  /// Takes a reference of its own.
  int (*create_event_from_opencl)(void* environment, void* opencl_event, void** event);
  int (*get_opencl_event)(void* event, void** opencl_event);
  /// Retains it.
  int (*set_custom_event)(void* event, CustomEvent* custom);
  int (*get_custom_event)(void* event, CustomEvent** custom);
  int (*wait_event)(void* event, std::int64_t timeout_ms);
  // More follow that are not used: see the header's size.
};

/// What LiteRT knows of a buffer of ours: the OpenCL object, twice.
struct BufferInfo {
  void* memory;
  void* raw;
};

/// `device` and `queue` are the values of the options that BufferHandlers names; null without.
struct BufferFunctions {
  int (*create)(void* device, void* queue, const TensorType* tensor, int type, std::size_t bytes,
                std::size_t packed_bytes, BufferInfo** info);
  int (*destroy)(BufferInfo* info);
  int (*lock)(BufferInfo* info, int mode, void** data);
  int (*unlock)(BufferInfo* info);
  int (*clear)(BufferInfo* info);
  /// The buffer stays the application's.
  int (*import)(void* device, void* queue, const TensorType* tensor, int type, void* memory,
                std::size_t bytes, std::size_t packed_bytes, BufferInfo** info);
};

/// Functions that create, map and import tensor buffers; none if `count` is 0.
struct BufferHandlers {
  Header header;
  BufferFunctions functions;
  int device_tag, queue_tag;  ///< options of the environment
  std::size_t count;          ///< buffer types
  int types[16];
};

/// The object that an accelerator exports under the name LiteRtAcceleratorImpl.
struct AcceleratorDef {
  Header header;
  int (*get_name)(const void* accelerator, const char** name);
  int (*get_version)(const void* accelerator, Version* version);
  int (*get_hardware_support)(const void* accelerator, int* hardware);
  /// LiteRT: is_tflite_delegate_responsible_for_jit_compilation. True: for models that ask for the
  /// hardware; false: for all models.
  int (*is_for_asking_models)(const void* accelerator, bool* is);
  int (*create_delegate)(const RuntimeContext* context, void* environment, const void* accelerator,
                         void* options, void** wrapper);
  int (*start_metrics)(const RuntimeContext* context, void* wrapper, int detail);
  int (*stop_metrics)(const RuntimeContext* context, void* wrapper, void* metrics);
  BufferHandlers buffers;
};

static_assert(sizeof(void*) == 8, "LiteRT's layouts are known for 64-bit platforms only");
static_assert(sizeof(Any) == 16 && offsetof(Any, string) == 8);
static_assert(sizeof(EnvironmentOption) == 24 && offsetof(EnvironmentOption, value) == 8);
static_assert(sizeof(TensorType) == 72 && offsetof(TensorType, dimensions) == 8);
// The same in 2.2.0 (400 bytes), 2.3.0 (416 bytes) and in between (408 bytes).
static_assert(offsetof(RuntimeContext, create_requirements) == 8);
static_assert(offsetof(RuntimeContext, get_tensor_buffer) == 16);
static_assert(offsetof(RuntimeContext, register_requirements) == 48);
static_assert(offsetof(RuntimeContext, get_environment) == 56);
static_assert(offsetof(RuntimeContext, is_async) == 64);
static_assert(offsetof(RuntimeContext, get_opaque_options) == 80);
static_assert(offsetof(RuntimeContext, find_opaque_options_data) == 88);
static_assert(offsetof(RuntimeContext, get_environment_options) == 104);
static_assert(offsetof(RuntimeContext, get_environment_options_value) == 112);
static_assert(offsetof(RuntimeContext, has_gpu_environment) == 120);
static_assert(offsetof(RuntimeContext, add_environment_options) == 128);
static_assert(offsetof(RuntimeContext, create_gpu_environment) == 136);
static_assert(offsetof(RuntimeContext, wrap_delegate) == 144);
static_assert(offsetof(RuntimeContext, create_buffer) == 168);
static_assert(offsetof(RuntimeContext, destroy_buffer) == 176);
static_assert(offsetof(RuntimeContext, get_buffer_type) == 184);
static_assert(offsetof(RuntimeContext, get_buffer_size) == 200);
static_assert(offsetof(RuntimeContext, get_buffer_offset) == 216);
static_assert(offsetof(RuntimeContext, lock_buffer) == 224);
static_assert(offsetof(RuntimeContext, unlock_buffer) == 232);
static_assert(offsetof(RuntimeContext, get_opencl_memory) == 248);
static_assert(offsetof(RuntimeContext, get_hardware_buffer) == 272);
static_assert(offsetof(RuntimeContext, has_event) == 296);
static_assert(offsetof(RuntimeContext, get_event) == 304);
static_assert(offsetof(RuntimeContext, set_event) == 312);
static_assert(offsetof(RuntimeContext, create_event) == 320);
static_assert(offsetof(RuntimeContext, get_event_type) == 336);
static_assert(offsetof(RuntimeContext, create_event_from_opencl) == 352);
static_assert(offsetof(RuntimeContext, get_opencl_event) == 360);
static_assert(offsetof(RuntimeContext, set_custom_event) == 368);
static_assert(offsetof(RuntimeContext, get_custom_event) == 376);
static_assert(offsetof(RuntimeContext, wait_event) == 384 && sizeof(RuntimeContext) == 392);
static_assert(sizeof(BufferFunctions) == 48 && offsetof(BufferHandlers, device_tag) == 56);
static_assert(sizeof(BufferHandlers) == 136 && offsetof(BufferHandlers, count) == 64);
static_assert(sizeof(AcceleratorDef) == 200 && offsetof(AcceleratorDef, create_delegate) == 40);
static_assert(offsetof(AcceleratorDef, buffers) == 64);

}  // namespace clgpu::litert
