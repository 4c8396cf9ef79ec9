// What a device can do that its own description does not tell.
#pragma once

#include <string>
#include <vector>

#include "cl/context.hpp"

namespace clgpu::runtime {

/// The facts of a device with those of a probe filled in: half_arithmetic, mma_f16, mma_tf32,
/// mma_s8, dot8.
struct ProbedDevice {
  DeviceInfo info;
  std::vector<std::string> notes;  ///< abilities that gave a wrong number, and are not used
  bool is_final = true;            ///< false where something failed that may succeed the next time
};

/// Builds and runs a small kernel for each ability that the device may have, and compares with the
/// right numbers. What does not build is not there; no error leaves this function. Done once for a
/// device and a kernel's text, if the result is final; `store` keeps what was found in another
/// process.
ProbedDevice probe(cl::Context& context, store::Store& store);

/// What `probe` says of a device from now on, without running anything; for tests, and for devices
/// that compute nothing.
void pretend_probe(const cl::Device& device, const ProbedDevice& facts);

}  // namespace clgpu::runtime
