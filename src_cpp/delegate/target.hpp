// The options, the device and the cache of a delegate.
#pragma once

#include <memory>
#include <string>

#include "cl/context.hpp"
#include "delegate/options.hpp"
#include "runtime/measure/probe.hpp"
#include "store/store.hpp"

namespace clgpu::delegate {

struct Target {
  /// Finds the device, and probes it at its first use. With `gl`, its context shares objects with
  /// OpenGL. Throws DeviceError.
  explicit Target(Options chosen, const cl::GlContext* gl = nullptr);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const Options options;
  const std::shared_ptr<cl::Context> context;
  const std::shared_ptr<store::Store> store;  ///< off if the options or the system require it
  const runtime::ProbedDevice probed;

  /// With the results of the probe.
  const DeviceInfo& device() const { return probed.info; }
  /// The part of keys in the store that ties rows to this device and its driver.
  std::string key(const std::string& signature) const;
};

}  // namespace clgpu::delegate
