// The part of the OpenCL 1.2 C API that we call, declared by us and loaded at run time.
//
// There is a table for each library instead of linking. So a machine without OpenCL can import the
// package and gets a clear error, one process can use several libraries (the system's loader,
// runtimes installed by pip), and the build needs no header package. Values follow the OpenCL
// specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#if defined(_WIN32)
#define CLGPU_CL_CALL __stdcall
#else
#define CLGPU_CL_CALL
#endif

namespace clgpu::cl {

using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;

using cl_platform_id = struct _cl_platform_id*;
using cl_device_id = struct _cl_device_id*;
using cl_context = struct _cl_context*;
using cl_command_queue = struct _cl_command_queue*;
using cl_mem = struct _cl_mem*;
using cl_program = struct _cl_program*;
using cl_kernel = struct _cl_kernel*;
using cl_event = struct _cl_event*;

constexpr cl_int CL_SUCCESS = 0;
constexpr cl_int CL_DEVICE_NOT_AVAILABLE = -2, CL_OUT_OF_RESOURCES = -5;
constexpr cl_int CL_MEM_OBJECT_ALLOCATION_FAILURE = -4, CL_OUT_OF_HOST_MEMORY = -6;
constexpr cl_bool CL_TRUE = 1, CL_FALSE = 0;
constexpr cl_bitfield CL_DEVICE_TYPE_CPU = 1U << 1, CL_DEVICE_TYPE_GPU = 1U << 2,
                      CL_DEVICE_TYPE_ACCELERATOR = 1U << 3, CL_DEVICE_TYPE_ALL = 0xFFFFFFFFU;
constexpr cl_bitfield CL_MEM_READ_WRITE = 1U << 0, CL_MEM_READ_ONLY = 1U << 2,
                      CL_MEM_USE_HOST_PTR = 1U << 3, CL_MEM_ALLOC_HOST_PTR = 1U << 4;
constexpr cl_bitfield CL_MAP_READ = 1U << 0, CL_MAP_WRITE = 1U << 1,
                      CL_MAP_WRITE_INVALIDATE_REGION = 1U << 2;
constexpr cl_uint CL_BUFFER_CREATE_TYPE_REGION = 0x1220;
constexpr cl_uint CL_MEM_TYPE = 0x1100, CL_MEM_FLAGS = 0x1101, CL_MEM_SIZE = 0x1102,
                  CL_MEM_CONTEXT = 0x1106, CL_MEM_ASSOCIATED_MEMOBJECT = 0x1107,
                  CL_MEM_OBJECT_BUFFER = 0x10F0;
constexpr cl_bitfield CL_MEM_WRITE_ONLY = 1U << 1;
constexpr cl_uint CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3, CL_EVENT_CONTEXT = 0x11D4;
constexpr cl_int CL_COMPLETE = 0;
constexpr cl_bitfield CL_QUEUE_PROFILING_ENABLE = 1U << 1;
constexpr cl_ulong CL_QUEUE_PROPERTIES = 0x1093, CL_QUEUE_PRIORITY_KHR = 0x1096,
                   CL_QUEUE_PRIORITY_HIGH_KHR = 1U << 0, CL_QUEUE_PRIORITY_MED_KHR = 1U << 1,
                   CL_QUEUE_PRIORITY_LOW_KHR = 1U << 2;
constexpr std::intptr_t CL_CONTEXT_PLATFORM = 0x1084, CL_CONTEXT_PERF_HINT_QCOM = 0x40C2,
                        CL_PERF_HINT_HIGH_QCOM = 0x40C3, CL_PERF_HINT_NORMAL_QCOM = 0x40C4,
                        CL_PERF_HINT_LOW_QCOM = 0x40C5, CL_CONTEXT_PRIORITY_HINT_QCOM = 0x40C9,
                        CL_PRIORITY_HINT_HIGH_QCOM = 0x40CA, CL_PRIORITY_HINT_NORMAL_QCOM = 0x40CB,
                        CL_PRIORITY_HINT_LOW_QCOM = 0x40CC;
constexpr cl_uint CL_PLATFORM_VERSION = 0x0901, CL_PLATFORM_NAME = 0x0902;
constexpr cl_uint CL_DEVICE_TYPE = 0x1000, CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
                  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004, CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
                  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010, CL_DEVICE_IMAGE_SUPPORT = 0x1016,
                  CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019, CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
                  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023, CL_DEVICE_AVAILABLE = 0x1027,
                  CL_DEVICE_COMPILER_AVAILABLE = 0x1028, CL_DEVICE_NAME = 0x102B,
                  CL_DEVICE_VENDOR = 0x102C, CL_DRIVER_VERSION = 0x102D, CL_DEVICE_VERSION = 0x102F,
                  CL_DEVICE_EXTENSIONS = 0x1030, CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
                  CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,
                  CL_DEVICE_IMAGE_MAX_BUFFER_SIZE = 0x1040,
                  CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE = 0x1067,
                  CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000, CL_DEVICE_WARP_SIZE_NV = 0x4003,
                  CL_DEVICE_WAVEFRONT_WIDTH_AMD = 0x4043;
constexpr cl_uint CL_PROGRAM_BINARY_SIZES = 0x1165, CL_PROGRAM_BINARIES = 0x1166,
                  CL_PROGRAM_BUILD_LOG = 0x1183;
constexpr cl_uint CL_KERNEL_WORK_GROUP_SIZE = 0x11B0, CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11B1,
                  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2;
constexpr cl_uint CL_PROFILING_COMMAND_QUEUED = 0x1280, CL_PROFILING_COMMAND_SUBMIT = 0x1281;
constexpr cl_uint CL_PROFILING_COMMAND_START = 0x1282, CL_PROFILING_COMMAND_END = 0x1283;

/// Part of a buffer, for CL_BUFFER_CREATE_TYPE_REGION.
struct cl_buffer_region {
  std::size_t origin, size;
};

constexpr cl_uint CL_RGBA = 0x10B5, CL_UNORM_INT8 = 0x10D2, CL_HALF_FLOAT = 0x10DD,
                  CL_FLOAT = 0x10DE, CL_MEM_OBJECT_IMAGE2D = 0x10F1,
                  CL_MEM_OBJECT_IMAGE1D_BUFFER = 0x10F6;
constexpr cl_uint CL_IMAGE_FORMAT = 0x1110, CL_IMAGE_WIDTH = 0x1114, CL_IMAGE_HEIGHT = 0x1115;

struct cl_image_format {
  cl_uint order, type;
};

struct cl_image_desc {
  cl_uint type;
  std::size_t width, height, depth, array_size, row_pitch, slice_pitch;
  cl_uint mip_levels, samples;
  cl_mem object;  ///< the buffer of an image over one
};

// cl_khr_gl_sharing: properties of a context.
constexpr std::intptr_t CL_GL_CONTEXT_KHR = 0x2008, CL_EGL_DISPLAY_KHR = 0x2009,
                        CL_GLX_DISPLAY_KHR = 0x200A;

// cl_arm_import_memory_android_hardware_buffer
constexpr std::intptr_t CL_IMPORT_TYPE_ARM = 0x40B2,
                        CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM = 0x41E2;
constexpr std::size_t CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM = SIZE_MAX;

// cl_qcom_android_ahardwarebuffer_host_ptr
constexpr cl_bitfield CL_MEM_EXT_HOST_PTR_QCOM = 1U << 29;
constexpr cl_uint CL_MEM_ANDROID_AHARDWAREBUFFER_HOST_PTR_QCOM = 0x4119,
                  CL_MEM_HOST_WRITEBACK_QCOM = 0x40A5, CL_MEM_HOST_IOCOHERENT_QCOM = 0x40A9;
struct cl_mem_ahardwarebuffer_host_ptr {
  cl_uint allocation_type, host_cache_policy;
  void* buffer;
};

using ContextNotify = void(CLGPU_CL_CALL*)(const char*, const void*, std::size_t, void*);
using ProgramNotify = void(CLGPU_CL_CALL*)(cl_program, void*);

// X(result, name, parameters)
#define CLGPU_CL_FUNCTIONS(X)                                                                      \
  X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id*, cl_uint*))                                \
  X(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, std::size_t, void*, std::size_t*))        \
  X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*))       \
  X(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, std::size_t, void*, std::size_t*))            \
  X(cl_context, clCreateContext,                                                                   \
    (const std::intptr_t*, cl_uint, const cl_device_id*, ContextNotify, void*, cl_int*))           \
  X(cl_int, clReleaseContext, (cl_context))                                                        \
  X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int*))      \
  X(cl_int, clReleaseCommandQueue, (cl_command_queue))                                             \
  X(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, std::size_t, void*, cl_int*))                \
  X(cl_mem, clCreateSubBuffer, (cl_mem, cl_bitfield, cl_uint, const void*, cl_int*))               \
  X(cl_mem, clCreateImage,                                                                         \
    (cl_context, cl_bitfield, const cl_image_format*, const cl_image_desc*, void*, cl_int*))       \
  X(cl_int, clReleaseMemObject, (cl_mem))                                                          \
  X(cl_program, clCreateProgramWithSource,                                                         \
    (cl_context, cl_uint, const char**, const std::size_t*, cl_int*))                              \
  X(cl_program, clCreateProgramWithBinary,                                                         \
    (cl_context, cl_uint, const cl_device_id*, const std::size_t*, const unsigned char**, cl_int*, \
     cl_int*))                                                                                     \
  X(cl_int, clGetProgramInfo, (cl_program, cl_uint, std::size_t, void*, std::size_t*))             \
  X(cl_int, clBuildProgram,                                                                        \
    (cl_program, cl_uint, const cl_device_id*, const char*, ProgramNotify, void*))                 \
  X(cl_int, clGetProgramBuildInfo,                                                                 \
    (cl_program, cl_device_id, cl_uint, std::size_t, void*, std::size_t*))                         \
  X(cl_int, clReleaseProgram, (cl_program))                                                        \
  X(cl_kernel, clCreateKernel, (cl_program, const char*, cl_int*))                                 \
  X(cl_int, clReleaseKernel, (cl_kernel))                                                          \
  X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, std::size_t, const void*))                        \
  X(cl_int, clGetKernelWorkGroupInfo,                                                              \
    (cl_kernel, cl_device_id, cl_uint, std::size_t, void*, std::size_t*))                          \
  X(cl_int, clEnqueueNDRangeKernel,                                                                \
    (cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,                 \
     const std::size_t*, cl_uint, const cl_event*, cl_event*))                                     \
  X(cl_int, clEnqueueReadBuffer,                                                                   \
    (cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint, const cl_event*, \
     cl_event*))                                                                                   \
  X(cl_int, clEnqueueWriteBuffer,                                                                  \
    (cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, const void*, cl_uint,            \
     const cl_event*, cl_event*))                                                                  \
  X(cl_int, clEnqueueCopyBuffer,                                                                   \
    (cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint,             \
     const cl_event*, cl_event*))                                                                  \
  X(void*, clEnqueueMapBuffer,                                                                     \
    (cl_command_queue, cl_mem, cl_bool, cl_bitfield, std::size_t, std::size_t, cl_uint,            \
     const cl_event*, cl_event*, cl_int*))                                                         \
  X(cl_int, clEnqueueUnmapMemObject,                                                               \
    (cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event*))                        \
  X(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))  \
  X(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, std::size_t, void*, std::size_t*))        \
  X(cl_int, clWaitForEvents, (cl_uint, const cl_event*))                                           \
  X(cl_int, clReleaseEvent, (cl_event))                                                            \
  X(cl_int, clFlush, (cl_command_queue))                                                           \
  X(cl_int, clFinish, (cl_command_queue))

// For buffers and events of applications, and queues of a priority; null in a library that lacks
// them.
#define CLGPU_CL_OPTIONAL_FUNCTIONS(X)                                                           \
  X(cl_command_queue, clCreateCommandQueueWithProperties,                                        \
    (cl_context, cl_device_id, const cl_ulong*, cl_int*))                                        \
  X(cl_int, clGetMemObjectInfo, (cl_mem, cl_uint, std::size_t, void*, std::size_t*))             \
  X(cl_int, clGetImageInfo, (cl_mem, cl_uint, std::size_t, void*, std::size_t*))                 \
  X(cl_int, clRetainMemObject, (cl_mem))                                                         \
  X(cl_int, clGetEventInfo, (cl_event, cl_uint, std::size_t, void*, std::size_t*))               \
  X(cl_int, clRetainContext, (cl_context))                                                       \
  X(void*, clGetExtensionFunctionAddressForPlatform, (cl_platform_id, const char*))              \
  X(cl_mem, clCreateFromGLBuffer, (cl_context, cl_bitfield, cl_uint, cl_int*))                   \
  X(cl_mem, clCreateFromGLTexture, (cl_context, cl_bitfield, cl_uint, cl_int, cl_uint, cl_int*)) \
  X(cl_int, clEnqueueAcquireGLObjects,                                                           \
    (cl_command_queue, cl_uint, const cl_mem*, cl_uint, const cl_event*, cl_event*))             \
  X(cl_int, clEnqueueReleaseGLObjects,                                                           \
    (cl_command_queue, cl_uint, const cl_mem*, cl_uint, const cl_event*, cl_event*))             \
  X(cl_mem, clImportMemoryARM,                                                                   \
    (cl_context, cl_bitfield, const std::intptr_t*, void*, std::size_t, cl_int*))

/// Function pointers of one loaded library. Lives until the process ends.
struct Api {
#define CLGPU_CL_MEMBER(result, name, parameters) result(CLGPU_CL_CALL* name) parameters = nullptr;
  CLGPU_CL_FUNCTIONS(CLGPU_CL_MEMBER)
  CLGPU_CL_OPTIONAL_FUNCTIONS(CLGPU_CL_MEMBER)
#undef CLGPU_CL_MEMBER
  /// The address of any other function of the library; null if it has none of this name.
  std::function<void*(const char* name)> symbol;
};

}  // namespace clgpu::cl
