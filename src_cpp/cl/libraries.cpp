#include "cl/libraries.hpp"

#include <dlfcn.h>

#include "base/library.hpp"

namespace clgpu::cl {
namespace {

constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

void* open(const std::string& path, const System& system, std::string& why) {
  if (void* library = open_library(path, why); library != nullptr) return library;
  if (!system.vendor_namespace || is_relative(path)) return nullptr;
  void* support = dlopen("libvndksupport.so", kFlags);
  if (support == nullptr) return nullptr;
  using Load = void* (*)(const char*, int);
  const auto load = reinterpret_cast<Load>(dlsym(support, "android_load_sphal_library"));
  return load != nullptr ? load(path.c_str(), kFlags) : nullptr;
}

}  // namespace

// The order of LiteRT's GPU delegate, then names of drivers without a loader in front of them. From
// API level 26 on, the files of all vendors are in /vendor.
const System& android() {
  static const System system{
      {
          "libOpenCL.so",                       // Adreno, Mali, PowerVR: the vendor's library
          "libOpenCL-pixel.so",                 // Pixel phones
          "libOpenCL-car.so",                   // Android Automotive
          "/vendor/lib64/libOpenCL.so",         // Adreno, and a name that other vendors link to
          "/system/lib64/libOpenCL.so",         // older systems
          "/vendor/lib64/egl/libGLES_mali.so",  // Mali: OpenCL is a part of the OpenGL driver
          "/vendor/lib64/libmali.so",           // Mali, on boards
          "/vendor/lib64/libPVROCL.so",         // PowerVR
      },
      true,
      true,
      "the app's manifest needs, inside <application>, <uses-native-library "
      "android:name=\"libOpenCL.so\" android:required=\"false\"/> and the same for "
      "libOpenCL-pixel.so, libOpenCL-car.so and libvndksupport.so; if it has them, the device "
      "offers no OpenCL to apps",
      "the driver of this system offers none to apps"};
  return system;
}

const System& this_system() {
#if defined(__ANDROID__)
  return android();
#else
  static const std::string driver =
      "install your GPU vendor's OpenCL driver (with its .icd file in /etc/OpenCL/vendors), or a "
      "CPU runtime with: pip install 'clgpu_delegate[cpu]'; `clgpu doctor` tells what is wrong";
#if defined(__APPLE__)
  static const std::vector<std::string> names{"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
  static const std::vector<std::string> names{"libOpenCL.so.1", "libOpenCL.so"};
#endif
  static const System system{
      names, false, false,
      "install the loader (Debian and Ubuntu: ocl-icd-libopencl1) and then " + driver, driver};
  return system;
#endif
}

std::unique_ptr<Api> load_library(const std::string& path, const System& system, std::string& why) {
  void* library = open(path, system, why);
  if (library == nullptr) return nullptr;
  // Pixel phones and cars hide the driver behind these two functions.
  using Enable = void (*)();
  using Find = void* (*)(const char*);
  const auto enable = reinterpret_cast<Enable>(dlsym(library, "enableOpenCL"));
  const auto find = reinterpret_cast<Find>(dlsym(library, "loadOpenCLPointer"));
  if (enable != nullptr) enable();
  auto api = std::make_unique<Api>();
  api->symbol = [=](const char* name) {
    void* address = find != nullptr ? find(name) : nullptr;
    return address != nullptr ? address : dlsym(library, name);
  };
  const char* missing = nullptr;
  const auto symbol = [&](const char* name) {
    void* address = api->symbol(name);
    if (address == nullptr) missing = name;
    return address;
  };
#define CLGPU_CL_LOAD(result, name, parameters) \
  api->name = reinterpret_cast<decltype(api->name)>(symbol(#name));
  CLGPU_CL_FUNCTIONS(CLGPU_CL_LOAD)
  const char* const needed = missing;
  CLGPU_CL_OPTIONAL_FUNCTIONS(CLGPU_CL_LOAD)
  missing = needed;
#undef CLGPU_CL_LOAD
  if (missing == nullptr) return api;
  why = path + " lacks the function " + missing;
  return nullptr;
}

}  // namespace clgpu::cl
