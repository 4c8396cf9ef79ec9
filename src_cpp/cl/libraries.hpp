// Where systems have OpenCL, and how a library becomes a table of functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cl/api.hpp"

namespace clgpu::cl {

/// What is particular to a system, as data: tests take a phone's on a desktop.
struct System {
  std::vector<std::string> libraries;  ///< Names and paths, in the order in which they are tried.
  /// Drivers may live in a linker namespace of the vendor's, where libvndksupport.so loads them.
  bool vendor_namespace;
  /// All names stand for the one driver of the device: after one that has devices the search ends.
  bool one_driver;
  std::string no_library, no_device;  ///< What to do where there is none: the end of a sentence.
};

const System& android();
/// The one this is built for.
const System& this_system();

/// Loads a library for good (drivers keep threads); null with `why` filled when it cannot be loaded
/// or lacks a function.
std::unique_ptr<Api> load_library(const std::string& path, const System& system, std::string& why);

}  // namespace clgpu::cl
