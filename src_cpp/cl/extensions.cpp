#include "cl/extensions.hpp"

#include <cstring>
#include <vector>

namespace clgpu::cl {
namespace {

// As CL_DEVICE_EXTENSIONS_WITH_VERSION has it.
struct NameVersion {
  cl_uint version;
  char name[64];
};

constexpr cl_uint version(cl_uint major, cl_uint minor, cl_uint patch) {
  return major << 22 | minor << 12 | patch;
}

bool lists(const Device& device, const std::string& extension) {
  return (" " + device.info.extensions + " ").find(" " + extension + " ") != std::string::npos;
}

// 0 if unknown: devices before OpenCL 3.0 tell names only.
cl_uint version_of(const Device& device, const char* extension) {
  const Api& api = *device.api;
  std::size_t bytes = 0;
  if (api.clGetDeviceInfo(device.id, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &bytes) !=
      CL_SUCCESS)
    return 0;
  std::vector<NameVersion> all(bytes / sizeof(NameVersion));
  if (api.clGetDeviceInfo(device.id, CL_DEVICE_EXTENSIONS_WITH_VERSION,
                          all.size() * sizeof(NameVersion), all.data(), nullptr) != CL_SUCCESS)
    return 0;
  for (const NameVersion& each : all) {
    if (std::strncmp(each.name, extension, sizeof each.name) == 0) return each.version;
  }
  return 0;
}

template <class Number>
Number ask(const Device& device, cl_uint what) {
  Number value = 0;
  const cl_int code = device.api->clGetDeviceInfo(device.id, what, sizeof value, &value, nullptr);
  return code == CL_SUCCESS ? value : 0;
}

// A loader knows the functions of extensions by platform; Adreno's library exports them.
void* address_of(const Device& device, const char* name) {
  using Address = void*(CLGPU_CL_CALL*)(cl_platform_id, const char*);
  const auto& symbol = device.api->symbol;
  const auto find = reinterpret_cast<Address>(symbol("clGetExtensionFunctionAddressForPlatform"));
  void* address = find != nullptr ? find(device.platform, name) : nullptr;
  return address != nullptr ? address : symbol(name);
}

std::string lacks(const char* name) {
  return std::string("the driver lists the extension and lacks its function ") + name;
}

#define CLGPU_CL_LOAD(result, name, parameters)                               \
  api.name = reinterpret_cast<decltype(api.name)>(address_of(device, #name)); \
  if (api.name == nullptr) {                                                  \
    why = lacks(#name);                                                       \
    return std::nullopt;                                                      \
  }

}  // namespace

std::optional<CommandBufferApi> command_buffer_api(const Device& device, std::string& why) {
  constexpr const char* kName = "cl_khr_command_buffer";
  if (!lists(device, kName)) return std::nullopt;
  if (ask<cl_bitfield>(device, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR) != 0) {
    why = "command buffers of this driver need queues with special properties";
    return std::nullopt;
  }
  CommandBufferApi api;
  CLGPU_CL_COMMAND_BUFFER_FUNCTIONS(CLGPU_CL_LOAD)
  // Up to 0.9.7, a command buffer under way could not be enqueued again without this capability.
  api.simultaneous_use = (ask<cl_bitfield>(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR) &
                          CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
  api.may_overlap = api.simultaneous_use || version_of(device, kName) >= version(0, 9, 8);
  return api;
}

std::optional<RecordingApi> recording_api(const Device& device, std::string& why) {
  if (!lists(device, "cl_qcom_recordable_queues")) return std::nullopt;
  RecordingApi api;
  CLGPU_CL_RECORDING_FUNCTIONS(CLGPU_CL_LOAD)
  api.most_launches = ask<cl_uint>(device, CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE);
  if (api.most_launches == 0) {
    why = "the driver says that a recording holds no launch";
    return std::nullopt;
  }
  return api;
}

#undef CLGPU_CL_LOAD

}  // namespace clgpu::cl
