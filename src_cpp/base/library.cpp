#include "base/library.hpp"

#include <dlfcn.h>

namespace clgpu {

bool is_relative(const std::string& path) {
  return path.find('/') != std::string::npos && path.front() != '/';
}

void* open_library(const std::string& path, std::string& why) {
  if (is_relative(path)) {
    why = path + " is a relative path; allowed: an absolute path, or a name without '/'";
    return nullptr;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* message = dlerror();
    why = message != nullptr ? message : "cannot load " + path;
  }
  return library;
}

}  // namespace clgpu
