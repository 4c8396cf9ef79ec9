// The interface between LiteRT and a GPU accelerator: the parts of its C interface that are used
// here, of versions 2.2 and 2.3. This project builds without LiteRT. Handles that are only passed
// on are void pointers.
#pragma once

#include <cstddef>
#include <cstdint>

struct TfLiteDelegate;

namespace clgpu::litert {

enum Status : int {
  kOk = 0,
  kInvalidArgument = 1,
  kRuntimeFailure = 3,
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

enum AnyType : int { kAnyString = 8 };

/// A value of an option of the environment.
struct Any {
  AnyType type;
  union {
    std::int64_t integer;
    const char* string;
    const void* pointer;
  };
};

constexpr int kRuntimeLibraryDir = 22;  ///< option: the folder that accelerators are loaded from
constexpr int kHardwareGpu = 2;         ///< a bit of get_hardware_support

/// LiteRT's functions for accelerators.
struct RuntimeContext {
  Header header;
  void* others[9];
  int (*get_opaque_options)(void* options, void** opaque_options);
  int (*find_opaque_options_data)(void* opaque_options, const char* key, void** data);
  void* destroy_options;
  int (*get_environment_options)(void* environment, void** environment_options);
  int (*get_environment_options_value)(void* environment_options, int tag, Any* value);
  void* more[3];
  int (*wrap_delegate)(TfLiteDelegate* delegate, void (*destroy)(TfLiteDelegate*), void** wrapper);
  // More follow that are not used: see the header's size.
};

/// Functions that create, map and import tensor buffers; none if `count` is 0.
struct BufferHandlers {
  Header header;
  void* functions[6];
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
static_assert(offsetof(RuntimeContext, get_opaque_options) == 80);
static_assert(offsetof(RuntimeContext, find_opaque_options_data) == 88);
static_assert(offsetof(RuntimeContext, get_environment_options) == 104);
static_assert(offsetof(RuntimeContext, get_environment_options_value) == 112);
static_assert(offsetof(RuntimeContext, wrap_delegate) == 144);
static_assert(sizeof(BufferHandlers) == 136 && offsetof(BufferHandlers, count) == 64);
static_assert(sizeof(AcceleratorDef) == 200 && offsetof(AcceleratorDef, create_delegate) == 40);
static_assert(offsetof(AcceleratorDef, buffers) == 64);

}  // namespace clgpu::litert
