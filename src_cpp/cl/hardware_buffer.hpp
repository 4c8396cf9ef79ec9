// Android's AHardwareBuffer: the part of its C API that we call, loaded at run time.
#pragma once

#include <cstddef>
#include <cstdint>

struct AHardwareBuffer;

namespace clgpu::cl {

// Values follow the NDK's hardware_buffer.h.
constexpr std::uint32_t kRgba8888 = 1, kRgbx8888 = 2, kBlob = 0x21;

/// AHardwareBuffer_Desc.
struct HardwareBufferDesc {
  std::uint32_t width, height, layers;  ///< width is bytes if the format is kBlob
  std::uint32_t format;
  std::uint64_t usage;
  std::uint32_t stride;  ///< pixels
  std::uint32_t reserved0;
  std::uint64_t reserved1;
};
static_assert(sizeof(HardwareBufferDesc) == 40 && offsetof(HardwareBufferDesc, usage) == 16);

struct HardwareBufferApi {
  void (*acquire)(AHardwareBuffer* buffer);
  void (*release)(AHardwareBuffer* buffer);
  void (*describe)(const AHardwareBuffer* buffer, HardwareBufferDesc* desc);
};

/// The functions of libnativewindow.so. Throws DeviceError where the system lacks them.
const HardwareBufferApi& hardware_buffers();

}  // namespace clgpu::cl
