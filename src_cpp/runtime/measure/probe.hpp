// Abilities of a device that its description does not contain.
#pragma once

#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/chains.hpp"

namespace clgpu::runtime {

/// The facts of a device with those of a probe filled in: half_arithmetic, mma_f16, mma_tf32,
/// mma_s8, wgmma, dot8.
struct ProbedDevice {
  DeviceInfo info;
  std::vector<std::string> notes;  ///< abilities that gave a wrong number, and are not used
  bool is_final = true;            ///< false if a failure may not happen the next time
};

/// Builds and runs a small kernel for each ability that the device may have, and compares with the
/// right numbers. An ability whose kernel does not build is absent; this function throws no errors.
/// A final result is stored for the device and the kernel's source, in the process and in `store`.
ProbedDevice probe(cl::Context& context, store::Store& store);

/// What chains of launches may take on a device. `groups` is 0 if work-groups that wait for each
/// other do not work in a probe, and 1 if only one at a time does, on a CPU. Throws no errors. A
/// result of more groups is stored like that of `probe`; others may be due to a busy device.
plan::ChainLimits chain_limits(cl::Context& context, store::Store& store);

/// For tests: sets the groups of chain_limits() for all devices, whatever works; 0: probe again.
void pretend_chain_groups(std::size_t groups);

/// Sets the result of `probe` for a device, without running anything; for tests, and for devices
/// that compute nothing.
void pretend_probe(const cl::Device& device, const ProbedDevice& facts);
/// For tests: ends that.
void stop_pretending(const cl::Device& device);

}  // namespace clgpu::runtime
