// Facts of one OpenCL device, as plain data: what families choose their candidates by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace clgpu {

enum class DeviceType { kGpu, kAccelerator, kCpu, kOther };

struct DeviceInfo {
  std::string name, vendor, driver_version, opencl_version, platform, extensions;
  std::string library;  ///< path of the OpenCL library that offers the device
  DeviceType type = DeviceType::kOther;
  int compute_units = 1;
  std::size_t max_work_group_size = 1;
  std::size_t max_work_item_sizes[3] = {1, 1, 1};
  std::size_t local_bytes = 0;         ///< local memory of one work-group
  std::uint64_t global_bytes = 0;      ///< global memory of the device
  std::uint64_t max_object_bytes = 0;  ///< largest single buffer
  bool unified_memory = false;         ///< device and host share memory
  bool has_half = false;               ///< cl_khr_fp16: half arithmetic

  bool is_cpu() const { return type == DeviceType::kCpu; }
};

}  // namespace clgpu
