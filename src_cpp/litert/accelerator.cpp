// libLiteRtGpuAccelerator.so: the definition that LiteRT looks for. It contains nothing of the
// core, which is the library of the same build in the same folder.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "abi/litert.hpp"

namespace {

using namespace clgpu::litert;

using Create = int (*)(const RuntimeContext*, void*, void*, void**);

// The folder of this file, or of the target if it is a link; empty if the loader does not know.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  char* const real = realpath(info.dli_fname, nullptr);
  const std::string path = real != nullptr ? real : info.dli_fname;
  std::free(real);
  return path.substr(0, path.rfind('/') + 1);
}

// The function of the core that creates delegates; null, after a line on standard error, if there
// is none.
Create find_create() {
  // Never unloaded: delegates may outlive the environment with which LiteRT unloads this library.
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const std::string folder = own_folder();
  void* core = folder.empty() ? nullptr : dlopen((folder + CLGPU_CORE).c_str(), kMode);
  if (core == nullptr) core = dlopen(CLGPU_CORE, kMode);  // libraries inside an Android package
  void* const create = core != nullptr ? dlsym(core, "litert_plugin_create_delegate") : nullptr;
  if (create == nullptr) {
    const char* const why = dlerror();
    std::fprintf(stderr,
                 "clgpu_delegate: the accelerator does not find its library " CLGPU_CORE
                 " in %s: %s\n",
                 folder.c_str(), why != nullptr ? why : "no reason given");
  }
  return reinterpret_cast<Create>(create);
}

int get_name(const void*, const char** name) {
  if (name == nullptr) return kInvalidArgument;
  *name = "clgpu_delegate (OpenCL)";
  return kOk;
}

int get_version(const void*, Version* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = {1, 0, 0};  // of the interface; LiteRT only prints it
  return kOk;
}

int get_hardware_support(const void*, int* hardware) {
  if (hardware == nullptr) return kInvalidArgument;
  *hardware = kHardwareGpu;
  return kOk;
}

int compiles_models(const void*, bool* does) {
  if (does == nullptr) return kInvalidArgument;
  *does = false;
  return kOk;
}

int create_delegate(const RuntimeContext* context, void* environment, const void*, void* options,
                    void** wrapper) {
  static const Create create = find_create();
  return create != nullptr ? create(context, environment, options, wrapper) : kDynamicLoading;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const AcceleratorDef LiteRtAcceleratorImpl = {
    {sizeof(AcceleratorDef), 1, 0, 0},
    get_name,
    get_version,
    get_hardware_support,
    compiles_models,
    create_delegate,
    nullptr,
    nullptr,
    {{sizeof(BufferHandlers), 1, 0, 0}, {}, 0, 0, 0, {}},
};
