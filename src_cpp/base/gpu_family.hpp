// Families of GPUs with different default kernels, recognised by the names that drivers report.
#pragma once

#include <string>

namespace clgpu {

enum class GpuFamily { kOther, kNvidia, kAmd, kIntel, kAdreno, kMali, kPowerVr, kVideoCore };

/// DeviceInfo::gpu_generation of Mali, by architecture.
constexpr int kMidgard = 1, kBifrost = 2, kValhall = 3, kFifthGeneration = 4;

struct Gpu {
  GpuFamily family = GpuFamily::kOther;
  int generation = 0;  ///< Adreno: 6 of a 660; Mali: its architecture; others and unknown ones: 0
};

/// From CL_DEVICE_VENDOR, CL_DEVICE_NAME and CL_DEVICE_VERSION. Some drivers of Qualcomm have the
/// number of the GPU in the version, not in the name.
Gpu classify_gpu(const std::string& vendor, const std::string& name, const std::string& version);

/// "adreno", "mali", ...; "other".
const char* name_of(GpuFamily family);

}  // namespace clgpu
