// Faults and habits of drivers that their answers do not tell, as a table.
#pragma once

#include <climits>
#include <vector>

#include "base/device_info.hpp"

namespace clgpu {

/// Which devices a quirk concerns; a device must match every field that is set.
struct Concerned {
  GpuFamily family = GpuFamily::kOther;                 ///< kOther: any, CPUs included
  int first_generation = 0, last_generation = INT_MAX;  ///< of Gpu::generation
  /// The last driver, by the first number of its version; drivers whose version does not begin with
  /// a number are concerned, too.
  int last_driver = INT_MAX;
  const char* platform = "";  ///< its name; empty: any
};

struct Quirk {
  const char* name;  ///< unique; a word for reports and tests
  Concerned concerned;
  void (*apply)(DeviceInfo& info);  ///< sets the properties of a device that others read
  // For the page of devices.
  const char* devices;
  const char* drivers;
  const char* change;  ///< what is off or done differently
  const char* why;
  const char* source;
};

/// The table, in the order of the page.
const std::vector<Quirk>& quirks();

/// Whether a device has a quirk, by the names and versions in its description.
bool has_quirk(const DeviceInfo& info, const Quirk& quirk);

/// Applies the quirks of a device to its description.
void apply_quirks(DeviceInfo& info);

}  // namespace clgpu
