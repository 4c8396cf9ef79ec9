#include "base/quirks.hpp"

#include <algorithm>
#include <cstdlib>

namespace clgpu {
namespace {

Concerned family(GpuFamily family) {
  Concerned concerned;
  concerned.family = family;
  return concerned;
}

Concerned drivers_up_to(GpuFamily of, int last) {
  Concerned concerned = family(of);
  concerned.last_driver = last;
  return concerned;
}

Concerned generations(GpuFamily of, int first, int last) {
  Concerned concerned = family(of);
  concerned.first_generation = first;
  concerned.last_generation = last;
  return concerned;
}

Concerned platform(const char* name) {
  Concerned concerned;
  concerned.platform = name;
  return concerned;
}

// 1 of "1.15@6133110", 580 of "580.95.05"; 0 if a version does not begin with a number.
int main_number(const std::string& version) {
  const long number = std::strtol(version.c_str(), nullptr, 10);
  return static_cast<int>(std::min<long>(number, INT_MAX));
}

void keep_images_off_sub_buffers(DeviceInfo& info) { info.sub_buffer_images = false; }

template <int launches>
void flush(DeviceInfo& info) {
  info.flush_every = launches;
}
constexpr const char* kWhyFlush =
    "the driver collects launches, and the device is idle while it does; of too many it may refuse "
    "the next";
constexpr const char* kMlDriftFlushes =
    "[ML Drift]"
    "(https://github.com/google-ai-edge/ml-drift/blob/main/ml_drift/cl/inference_context.cc)";

}  // namespace

const std::vector<Quirk>& quirks() {
  static const std::vector<Quirk> table = {
      {"powervr_sub_buffer_images", drivers_up_to(GpuFamily::kPowerVr, 23),
       keep_images_off_sub_buffers, "PowerVR",
       "versions that begin with a number up to 23, such as `1.15@6133110`",
       "no images over sub-buffers: a plan that reads intermediate tensors as images puts each of "
       "them at the start of a buffer; sub-buffers of the application are copied",
       "crashes and wrong results; OpenCL's conformance tests do not cover such images",
       "[ML "
       "Drift](https://github.com/google-ai-edge/ml-drift/blob/main/ml_drift/cl/environment.cc)"},
      {"mali_sub_buffer_images", generations(GpuFamily::kMali, kMidgard, kBifrost),
       keep_images_off_sub_buffers, "Mali: Midgard and Bifrost", "all",
       "no images over sub-buffers, where the tuner or the option `engines` has chosen images",
       "a fault of the driver on G72, G76, T830 and T880",
       "[ML "
       "Drift](https://github.com/google-ai-edge/ml-drift/blob/main/ml_drift/cl/environment.cc)"},
      {"powervr_flushes", family(GpuFamily::kPowerVr), flush<1>, "PowerVR", "all",
       "a queue is flushed after each launch", kWhyFlush, kMlDriftFlushes},
      {"mali_flushes", family(GpuFamily::kMali), flush<24>, "Mali", "all",
       "a queue is flushed after 24 launches", kWhyFlush, kMlDriftFlushes},
      {"adreno_flushes", family(GpuFamily::kAdreno), flush<16>, "Adreno", "all",
       "a queue is flushed after 16 launches", kWhyFlush, "a precaution, not measured"},
      {"videocore_flushes", family(GpuFamily::kVideoCore), flush<16>, "VideoCore", "all",
       "a queue is flushed after 16 launches", kWhyFlush, "a precaution, not measured"},
      {"rusticl_vectors", platform("rusticl"), [](DeviceInfo& info) { info.vector_elements = 16; },
       "Mesa's rusticl", "all", "int8 products on CPUs use vectors of half the width",
       "vectors of 32 elements, which clang has beside OpenCL's, end the process",
       "seen with Mesa 22.3, llvmpipe"},
      {"nvidia_sub_buffers", family(GpuFamily::kNvidia),
       [](DeviceInfo& info) { info.sub_buffers_save = std::uint64_t{64} << 20; }, "NVIDIA", "all",
       "whole buffers, or sub-buffers of few sizes, where they take at most 64 MiB more",
       "the driver tracks the sub-buffers of a buffer at every launch: with the 100 tensors of "
       "InceptionV3 in one buffer, an inference took seven times as long",
       "measured on an H200, driver 580"},
      {"pocl_programs", platform("Portable Computing Language"),
       [](DeviceInfo& info) { info.compiles_at_launch = true; }, "PoCL", "all",
       "the variable `CLGPU_PROGRAMS` stores no programs",
       "PoCL compiles at the first launch, also a program from a binary, and keeps the result "
       "itself",
       "seen with PoCL 3.1 and 6.0"},
  };
  return table;
}

bool has_quirk(const DeviceInfo& info, const Quirk& quirk) {
  const Concerned& concerned = quirk.concerned;
  if (concerned.family != GpuFamily::kOther && !info.is(concerned.family)) return false;
  if (info.gpu.generation < concerned.first_generation ||
      info.gpu.generation > concerned.last_generation)
    return false;
  if (main_number(info.driver_version) > concerned.last_driver) return false;
  return *concerned.platform == '\0' || info.platform == concerned.platform;
}

void apply_quirks(DeviceInfo& info) {
  for (const Quirk& quirk : quirks()) {
    if (has_quirk(info, quirk)) quirk.apply(info);
  }
}

}  // namespace clgpu
