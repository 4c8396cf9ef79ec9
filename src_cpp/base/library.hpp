// Shared libraries that are loaded by name.
#pragma once

#include <string>

namespace clgpu {

/// Whether a path depends on the current folder; a name without '/' does not.
bool is_relative(const std::string& path);

/// Loads a library until the process ends: the file of an absolute path, or, for a name without
/// '/', the library that the system finds. Returns null and sets `why` if that fails, and for a
/// relative path, because that would load a file of the current folder.
void* open_library(const std::string& path, std::string& why);

}  // namespace clgpu
