// Finding OpenCL libraries and their devices.
#pragma once

#include <string>
#include <vector>

#include "base/device_info.hpp"
#include "cl/api.hpp"

namespace clgpu::cl {

struct Device {
  const Api* api = nullptr;
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  DeviceInfo info;
};

/// Registers a library to be tried after the system's OpenCL loader (a runtime installed by pip,
/// say). Paths already known are ignored.
void add_library(const std::string& path);

/// Every device of every library found: GPUs, then accelerators, then CPUs, each in the order the
/// platforms report them. A platform offered by two libraries counts once. The environment variable
/// CLGPU_OPENCL_LIBRARY names the only library to use. Throws DeviceError, which says
/// what to install, if there is no library, platform or device, and in a process that was forked
/// after OpenCL was used. Until devices are found, each call searches again.
const std::vector<Device>& devices();

struct System;

/// The result of devices() on another system with the libraries of this machine.
std::vector<Device> devices_as_on(const System& system);

/// The device chosen by `selector`: an index into devices(), a part of a device's or platform's
/// name (case-insensitive), or empty for the first. Throws a DeviceError that lists all devices.
const Device& find_device(const std::string& selector);

}  // namespace clgpu::cl
