// Checks of the numbers that drivers report.
#pragma once

#include "base/device_info.hpp"

namespace clgpu::cl {

/// Replaces each impossible number (0 after a failed query, or all bits set) by the minimum that
/// OpenCL guarantees, so that other code may divide by it or allocate as much. This is the only
/// place that does so.
void make_plausible(DeviceInfo& info);

}  // namespace clgpu::cl
