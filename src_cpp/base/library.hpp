// Shared libraries that are loaded by name.
#pragma once

#include <string>

namespace clgpu {

/// Whether a path depends on the current folder; a name without '/' does not.
bool is_relative(const std::string& path);

/// Loads a library for good: the file of an absolute path, or what the system finds by a name
/// without '/'. Null, with `why` filled, where that fails, and for a relative path, which would
/// load whatever lies in the current folder.
void* open_library(const std::string& path, std::string& why);

}  // namespace clgpu
