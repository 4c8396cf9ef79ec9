// The OpenCL libraries of systems, and how a library becomes a table of functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cl/api.hpp"

namespace clgpu::cl {

/// The properties of a system, as data: tests use those of a phone on a desktop.
struct System {
  std::vector<std::string> libraries;  ///< Names and paths, in the order in which they are tried.
  /// Drivers may be in the vendor's linker namespace, from which libvndksupport.so loads them.
  bool vendor_namespace;
  /// All names refer to the same driver: the search ends with the first that has devices.
  bool one_driver;
  std::string no_library, no_device;  ///< What to do if there is none: the end of a sentence.
};

const System& android();
/// The system that this library was built for.
const System& this_system();

/// Loads a library and never unloads it, because drivers keep threads. Returns null and sets `why`
/// if it cannot be loaded or lacks a function.
std::unique_ptr<Api> load_library(const std::string& path, const System& system, std::string& why);

}  // namespace clgpu::cl
