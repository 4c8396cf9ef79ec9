// What a delegate's options ask of its OpenCL context.
#pragma once

#include <tuple>

namespace clgpu::cl {

/// Of the device's work among that of others, or of its clock rates.
enum class Level { kDefault, kLow, kNormal, kHigh };

enum class IsolateBuilds {
  kAuto,  ///< with drivers whose compilers this project has not tested
  kOff,
  kOn,
};

struct ContextOptions {
  Level priority = Level::kDefault;     ///< kDefault: the driver is not told
  Level performance = Level::kDefault;  ///< kDefault: the driver is not told
  IsolateBuilds isolate_builds = IsolateBuilds::kAuto;

  bool operator<(const ContextOptions& other) const {
    return std::tie(priority, performance, isolate_builds) <
           std::tie(other.priority, other.performance, other.isolate_builds);
  }
};

}  // namespace clgpu::cl
