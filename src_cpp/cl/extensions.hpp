// Extensions that record launches and enqueue them together, declared by us like cl/api.hpp.
#pragma once

#include <optional>
#include <string>

#include "cl/device.hpp"

namespace clgpu::cl {

using cl_command_buffer = struct _cl_command_buffer_khr*;
using cl_mutable_command = struct _cl_mutable_command_khr*;
using cl_recording = struct _cl_recording_qcom*;

constexpr cl_bitfield CL_QUEUE_RECORDABLE_QCOM = 1U << 30;
constexpr cl_uint CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE = 0x41DE;
constexpr cl_uint CL_DEVICE_EXTENSIONS_WITH_VERSION = 0x1060;
constexpr cl_uint CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR = 0x12A9;
constexpr cl_uint CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR = 0x12AA;
constexpr cl_bitfield CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR = 1U << 2;
constexpr cl_ulong CL_COMMAND_BUFFER_FLAGS_KHR = 0x1293;
constexpr cl_ulong CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR = 1U << 0;

/// An argument that a launch of a recording gets instead of the one that was recorded.
struct cl_array_arg {
  cl_uint launch, argument;
  std::size_t bytes;
  const void* value;
};

// X(result, name, parameters). These have been the same since version 0.9.0 of the extension; other
// functions of it have changed.
#define CLGPU_CL_COMMAND_BUFFER_FUNCTIONS(X)                                                       \
  X(cl_command_buffer, clCreateCommandBufferKHR,                                                   \
    (cl_uint, const cl_command_queue*, const cl_ulong*, cl_int*))                                  \
  X(cl_int, clReleaseCommandBufferKHR, (cl_command_buffer))                                        \
  X(cl_int, clFinalizeCommandBufferKHR, (cl_command_buffer))                                       \
  X(cl_int, clCommandNDRangeKernelKHR,                                                             \
    (cl_command_buffer, cl_command_queue, const cl_ulong*, cl_kernel, cl_uint, const std::size_t*, \
     const std::size_t*, const std::size_t*, cl_uint, const cl_uint*, cl_uint*,                    \
     cl_mutable_command*))                                                                         \
  X(cl_int, clEnqueueCommandBufferKHR,                                                             \
    (cl_uint, cl_command_queue*, cl_command_buffer, cl_uint, const cl_event*, cl_event*))

#define CLGPU_CL_RECORDING_FUNCTIONS(X)                                                          \
  X(cl_recording, clNewRecordingQCOM, (cl_command_queue, cl_int*))                               \
  X(cl_int, clEndRecordingQCOM, (cl_recording))                                                  \
  X(cl_int, clReleaseRecordingQCOM, (cl_recording))                                              \
  X(cl_int, clEnqueueRecordingQCOM,                                                              \
    (cl_command_queue, cl_recording, std::size_t, const cl_array_arg*, std::size_t, const void*, \
     std::size_t, const void*, std::size_t, const void*, cl_uint, const cl_event*, cl_event*))

#define CLGPU_CL_MEMBER(result, name, parameters) result(CLGPU_CL_CALL* name) parameters = nullptr;

/// cl_khr_command_buffer.
struct CommandBufferApi {
  CLGPU_CL_COMMAND_BUFFER_FUNCTIONS(CLGPU_CL_MEMBER)
  bool simultaneous_use = false;  ///< command buffers can be created for it
  /// In an in-order queue, a command buffer may be enqueued again before it has ended.
  bool may_overlap = false;
};

/// cl_qcom_recordable_queues.
struct RecordingApi {
  CLGPU_CL_RECORDING_FUNCTIONS(CLGPU_CL_MEMBER)
  std::size_t most_launches = 0;  ///< of a recording
};

#undef CLGPU_CL_MEMBER

/// The functions of the extension for a device; none if it does not have it, or not with the queues
/// that we create. Then `why` is set if the device lists it.
std::optional<CommandBufferApi> command_buffer_api(const Device& device, std::string& why);
std::optional<RecordingApi> recording_api(const Device& device, std::string& why);

}  // namespace clgpu::cl
