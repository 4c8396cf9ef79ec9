// Families of GPUs whose kernels differ by default, told apart by what their drivers call them.
#pragma once

#include <string>

namespace clgpu {

enum class GpuFamily { kOther, kNvidia, kAmd, kIntel, kAdreno, kMali, kPowerVr, kVideoCore };

/// DeviceInfo::gpu_generation of Mali, by architecture.
constexpr int kMidgard = 1, kBifrost = 2, kValhall = 3, kFifthGeneration = 4;

struct Gpu {
  GpuFamily family = GpuFamily::kOther;
  int generation = 0;  ///< Adreno: 6 of a 660; Mali: its architecture; else, or unknown: 0
};

/// From CL_DEVICE_VENDOR, CL_DEVICE_NAME and CL_DEVICE_VERSION, where Qualcomm's driver has the
/// number that its device's name lacks.
Gpu classify_gpu(const std::string& vendor, const std::string& name, const std::string& version);

/// "adreno", "mali", ...; "other".
const char* name_of(GpuFamily family);

}  // namespace clgpu
