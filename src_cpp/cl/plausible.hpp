// What drivers say of a device is believed as far as it can be true.
#pragma once

#include "base/device_info.hpp"

namespace clgpu::cl {

/// Replaces each number that no device has (nothing, where the driver did not answer, or all bits)
/// by what OpenCL guarantees at least, so that whoever divides by it or allocates as much need not
/// ask. The only place where this is done.
void make_plausible(DeviceInfo& info);

}  // namespace clgpu::cl
