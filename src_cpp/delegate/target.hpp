// What a delegate computes on: its options, the device, and the cache.
#pragma once

#include <memory>
#include <string>

#include "cl/context.hpp"
#include "delegate/options.hpp"
#include "runtime/measure/probe.hpp"
#include "store/store.hpp"

namespace clgpu::delegate {

struct Target {
  /// Finds the device, and probes it at its first use. Throws DeviceError.
  explicit Target(Options chosen);

  const Options options;
  const std::shared_ptr<cl::Context> context;
  const std::shared_ptr<store::Store> store;  ///< off where the options or the system say so
  const runtime::ProbedDevice probed;

  /// With the facts that the probe has found.
  const DeviceInfo& device() const { return probed.info; }
  /// Key in the store of what holds for this device and its driver alone.
  std::string key(const std::string& signature) const;
};

}  // namespace clgpu::delegate
