// Properties of one OpenCL device, as plain data. Families choose candidates by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/gpu_family.hpp"

namespace clgpu {

/// Instruction for a sum of four products of 8-bit integers; the number is the macro DOT8 of
/// kernels/common/dot8.cl.
enum class Dot8 : int { kNone = 0, kKhronos = 1, kArm = 2, kNvidia = 3 };

enum class DeviceType { kGpu, kAccelerator, kCpu, kOther };

struct DeviceInfo {
  std::string name, vendor, driver_version, opencl_version, platform, platform_version, extensions;
  std::string library;  ///< path of the OpenCL library that offers the device
  DeviceType type = DeviceType::kOther;
  int compute_units = 1;
  std::size_t max_work_group_size = 1;
  std::size_t max_work_item_sizes[3] = {1, 1, 1};
  int lanes = 1;         ///< work-items in lockstep (warp, wavefront): groups are multiples of it
  int vector_width = 1;  ///< floats per vector register; 1 where work-items are scalar
  int vector_elements = 32;               ///< of the widest vectors that its compiler takes
  std::size_t local_bytes = 0;            ///< local memory of one work-group
  std::uint64_t global_bytes = 0;         ///< global memory of the device
  std::uint64_t max_object_bytes = 0;     ///< largest single buffer
  std::size_t base_align_bytes = 128;     ///< alignment of sub-buffers' offsets
  bool sub_buffer_images = true;          ///< images can be made over sub-buffers
  std::uint64_t sub_buffers_save = 0;     ///< bytes that they must save to be worth slower launches
  int flush_every = 0;                    ///< launches until its queue is flushed; 0: never
  bool compiles_at_launch = false;        ///< also a program from a binary: storing it saves little
  bool unified_memory = false;            ///< device and host share memory
  bool has_half = false;                  ///< it lists cl_khr_fp16
  Gpu gpu;                                ///< none for CPUs
  std::uint64_t image_buffer_texels = 0;  ///< largest image over a buffer; 0 without images
  // Results of probes (runtime/measure/probe.cpp); false in a device's own description.
  bool half_arithmetic = false;  ///< kernels compute in half once they enable cl_khr_fp16
  bool mma_f16 = false;          ///< kernels/common/mma.cl works with half operands
  bool mma_tf32 = false;         ///< ... and with TF32 operands
  bool mma_s8 = false;           ///< ... and with int8 operands
  bool wgmma = false;            ///< kernels/common/wgmma.cl works, with half and int8 operands
  Dot8 dot8 = Dot8::kNone;

  /// Whether the driver lists an extension of this name.
  bool has_extension(const std::string& wanted) const {
    return (" " + extensions + " ").find(" " + wanted + " ") != std::string::npos;
  }
  bool is_cpu() const { return type == DeviceType::kCpu; }
  bool is(GpuFamily family) const { return gpu.family == family; }
  bool is_mobile() const {
    return is(GpuFamily::kAdreno) || is(GpuFamily::kMali) || is(GpuFamily::kPowerVr) ||
           is(GpuFamily::kVideoCore);
  }
  /// Reads through texture units, which have a separate cache, are faster than reads of buffers.
  bool prefers_images() const {
    return image_buffer_texels > 0 && (is(GpuFamily::kAdreno) || is(GpuFamily::kPowerVr));
  }
};

}  // namespace clgpu
