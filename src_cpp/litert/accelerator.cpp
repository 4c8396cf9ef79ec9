// libLiteRtGpuAccelerator.so: the definition that LiteRT looks for. It contains nothing of the
// core, which is the library of the same build in the same folder.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "abi/litert.hpp"

#if defined(__ANDROID__)
// From <android/log.h>, unchanged since API level 1; declared here so that no NDK header is needed.
extern "C" int __android_log_write(int priority, const char* tag, const char* text);
#endif

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

// Asked while the library is loaded: an environment may remove a link to it later, and a name that
// nobody has any more could then be anybody's.
const std::string kFolder = own_folder();

void log_error(const std::string& sentence) {
#if defined(__ANDROID__)
  __android_log_write(6 /* error */, "clgpu_delegate", sentence.c_str());
#else
  std::fprintf(stderr, "clgpu_delegate: %s\n", sentence.c_str());
#endif
}

// A function of the core; null, after a line in the log.
void* find_in_core(const char* name) {
  // Never unloaded: delegates may outlive the environment with which LiteRT unloads this library.
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* core = kFolder.empty() ? nullptr : dlopen((kFolder + CLGPU_CORE).c_str(), kMode);
#if defined(__ANDROID__)  // libraries inside a package have no folder
  if (core == nullptr) core = dlopen(CLGPU_CORE, kMode);
#endif
  void* const found = core != nullptr ? dlsym(core, name) : nullptr;
  if (found == nullptr) {
    const char* const why = dlerror();
    log_error("the accelerator does not find its library " CLGPU_CORE " in " + kFolder + ": " +
              (why != nullptr ? why : "no reason given"));
  }
  return found;
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

// LiteRT uses other accelerators for every model, those for the CPU alone included.
int is_for_asking_models(const void*, bool* is) {
  if (is == nullptr) return kInvalidArgument;
  *is = true;
  return kOk;
}

int create_delegate(const RuntimeContext* context, void* environment, const void*, void* options,
                    void** wrapper) {
  static const auto create =
      reinterpret_cast<Create>(find_in_core("litert_plugin_create_delegate"));
  if (create != nullptr) return create(context, environment, options, wrapper);
  if (wrapper == nullptr) return kInvalidArgument;
  *wrapper = nullptr;  // no delegate: the model runs where else it may
  return kOk;
}

// Handlers of OpenCL buffers, in the core.
template <auto Function, class... Arguments>
int in_core(Arguments... arguments) {
  using Find = const BufferFunctions* (*)();
  static const auto find = reinterpret_cast<Find>(find_in_core("litert_plugin_buffers"));
  return find != nullptr ? (find()->*Function)(arguments...) : kUnsupported;
}

constexpr BufferFunctions kBufferFunctions = {
    in_core<&BufferFunctions::create>, in_core<&BufferFunctions::destroy>,
    in_core<&BufferFunctions::lock>,   in_core<&BufferFunctions::unlock>,
    in_core<&BufferFunctions::clear>,  in_core<&BufferFunctions::import>,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const AcceleratorDef LiteRtAcceleratorImpl = {
    {sizeof(AcceleratorDef), 1, 0, 0},
    get_name,
    get_version,
    get_hardware_support,
    is_for_asking_models,
    create_delegate,
    nullptr,
    nullptr,
    {{sizeof(BufferHandlers), 1, 0, 0},
     kBufferFunctions,
     kOpenClDevice,
     kOpenClContext,
     1,
     {kBufferOpenClPacked}},
};
