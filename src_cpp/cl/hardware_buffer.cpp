#include "cl/hardware_buffer.hpp"

#include <dlfcn.h>

#include <string>

#include "base/error.hpp"
#include "base/library.hpp"

namespace clgpu::cl {
namespace {

HardwareBufferApi load() {
  constexpr const char* kLibrary = "libnativewindow.so";
  std::string why;
  void* const library = open_library(kLibrary, why);
  if (library == nullptr) {
    throw DeviceError(
        "this system has no AHardwareBuffers, which Android has from version 8.0 on: " + why);
  }
  const auto find = [&](const char* name) {
    void* const address = dlsym(library, name);
    if (address == nullptr)
      throw DeviceError(std::string(kLibrary) + " lacks the function " + name);
    return address;
  };
  HardwareBufferApi api{};
  api.acquire = reinterpret_cast<decltype(api.acquire)>(find("AHardwareBuffer_acquire"));
  api.release = reinterpret_cast<decltype(api.release)>(find("AHardwareBuffer_release"));
  api.describe = reinterpret_cast<decltype(api.describe)>(find("AHardwareBuffer_describe"));
  return api;
}

}  // namespace

const HardwareBufferApi& hardware_buffers() {
  static const HardwareBufferApi api = load();  // tried again after an exception
  return api;
}

}  // namespace clgpu::cl
