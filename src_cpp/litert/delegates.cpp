#include "litert/delegates.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include "abi/litert.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cl/fork.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/guard.hpp"
#include "delegate/options.hpp"
#include "litert/gpu_options.hpp"
#include "litert/lender.hpp"

namespace clgpu::litert {
namespace {

using delegate::Delegate;

struct Registry {
  std::mutex mutex;
  std::map<std::string, OptionTexts> offers;  // by folder
  std::vector<Made> living;
  std::set<std::string> told;  // options without effect that have been reported
};

// Leaked on purpose: delegates may outlive static objects.
Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

// "key=value;key=value" of the variable CLGPU_LITERT_OPTIONS.
OptionTexts of_variable() {
  OptionTexts options;
  const char* const text = std::getenv("CLGPU_LITERT_OPTIONS");
  std::string rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const std::string part = rest.substr(0, rest.find(';')), pair = trimmed(part);
    rest.erase(0, part.size() + 1);
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    if (equals == std::string::npos) {
      throw OptionError("the variable CLGPU_LITERT_OPTIONS has '" + pair +
                        "'; allowed: key=value;key=value");
    }
    delegate::add_option(options, trimmed(pair.substr(0, equals)).c_str(),
                         trimmed(pair.substr(equals + 1)).c_str());
  }
  return options;
}

// The folder from which LiteRT's environment loads accelerators; empty if it names none.
std::string folder_of(const RuntimeContext& context, void* environment) {
  void* options = nullptr;
  Any value{};
  if (context.get_environment_options(environment, &options) != kOk || options == nullptr)
    return {};
  if (context.get_environment_options_value(options, kRuntimeLibraryDir, &value) != kOk) return {};
  return value.type == kAnyString && value.string != nullptr ? value.string : "";
}

// The options that the application has set for this model by LiteRT's own interface.
GpuOptions of_model(const RuntimeContext& context, void* options) {
  void *opaque = nullptr, *text = nullptr;
  if (options == nullptr || context.get_opaque_options(options, &opaque) != kOk ||
      opaque == nullptr || context.find_opaque_options_data(opaque, "gpu_options", &text) != kOk ||
      text == nullptr)
    return {};
  return read_gpu_options(static_cast<const char*>(text));
}

void tell_once(const std::vector<std::string>& ignored) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const std::string& key : ignored) {
    if (all.told.insert(key).second)
      log(LogLevel::kWarning, "LiteRT's GPU option '" + key + "' has no effect on OpenCL");
  }
}

// Options closer to the model take precedence: the variable, the environment's, the model's.
OptionTexts gathered(const RuntimeContext& context, void* environment, void* model_options) {
  OptionTexts options = of_variable();
  const std::string folder = folder_of(context, environment);
  {
    Registry& all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (const auto offer = all.offers.find(folder); offer != all.offers.end()) {
      for (const auto& [key, value] : offer->second) options[key] = value;
    }
  }
  const GpuOptions of_litert = of_model(context, model_options);
  for (const auto& [key, value] : of_litert.options) options[key] = value;
  tell_once(of_litert.ignored);
  return options;
}

void forget(const TfLiteDelegate* tflite) noexcept {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto entry = std::find_if(all.living.begin(), all.living.end(),
                                  [&](const Made& made) { return made.delegate == tflite; });
  if (entry != all.living.end()) all.living.erase(entry);
}

void destroy(TfLiteDelegate* tflite) noexcept {
  if (cl::is_forked_child()) return;  // another thread may hold the lock for ever
  forget(tflite);
  delegate::destroy(tflite);
}

// Whether the context has the functions that are used here.
bool is_known(const RuntimeContext& context) {
  constexpr std::size_t kNeeded =
      offsetof(RuntimeContext, wrap_delegate) + sizeof(RuntimeContext::wrap_delegate);
  if (context.header.major != 1 || context.header.size < kNeeded) {
    log(LogLevel::kError,
        "LiteRT's accelerator interface has version " + std::to_string(context.header.major) + "." +
            std::to_string(context.header.minor) + " and " + std::to_string(context.header.size) +
            " bytes; supported: version 1 from " + std::to_string(kNeeded) +
            " bytes on (LiteRT 2.2 and later)");
    return false;
  }
  return true;
}

// Of the environment; null if it is not set.
void* opencl_object(const RuntimeContext& context, void* environment, int tag) {
  void* options = nullptr;
  Any value{};
  if (context.get_environment_options(environment, &options) != kOk || options == nullptr ||
      context.get_environment_options_value(options, tag, &value) != kOk ||
      value.type != kAnyInteger)
    return nullptr;
  return reinterpret_cast<void*>(value.integer);
}

// An application that gives the environment its device and context exchanges buffers of these.
void use_objects(const RuntimeContext& context, void* environment, OptionTexts& options) {
  const auto handle =
      static_cast<cl::cl_context>(opencl_object(context, environment, kOpenClContext));
  const void* const id = opencl_object(context, environment, kOpenClDevice);
  if (id == nullptr || options.count("device") > 0) return;
  const std::vector<cl::Device>& devices = cl::devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].id != id) continue;
    options["device"] = std::to_string(i);
    if (handle != nullptr) cl::Context::adopt(devices[i], handle);
    return;
  }
}

struct Release {
  void operator()(Delegate* made) const noexcept { delegate::destroy(made->tflite()); }
};

int create(const RuntimeContext& context, void* environment, void* options, void** wrapper) {
  Made made{nullptr, gathered(context, environment, options)};
  use_objects(context, environment, made.options);
  std::unique_ptr<Delegate, Release> owned(new Delegate(made.options));
  owned->state()->lender = make_lender(context, environment, owned->state()->target.context);
  TfLiteDelegate* const tflite = owned->tflite();
  made.delegate = tflite;
  Registry& all = registry();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.living.push_back(std::move(made));
  }
  owned.release();  // from here on destroy() ends it
  const int status = context.wrap_delegate(tflite, destroy, wrapper);
  if (status != kOk) {
    destroy(tflite);
    log(LogLevel::kError, "LiteRT does not take the delegate: status " + std::to_string(status));
  }
  return status;
}

}  // namespace

void offer(const std::string& folder, const OptionTexts& options) {
  delegate::parse_options(options);  // throws here, not when a model is compiled
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.offers[folder] = options;
}

void withdraw(const std::string& folder) noexcept {
  if (cl::is_forked_child()) return;
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.offers.erase(folder);
}

std::vector<Made> living() {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.living;
}

}  // namespace clgpu::litert

/// For libLiteRtGpuAccelerator: makes a delegate for a model that LiteRT compiles. Returns a status
/// of LiteRT's. After an error, which is logged, there is no delegate, and no error for LiteRT.
extern "C" __attribute__((visibility("default"))) int litert_plugin_create_delegate(
    const clgpu::litert::RuntimeContext* context, void* environment, void* options,
    void** wrapper) {
  using namespace clgpu;
  if (context == nullptr || wrapper == nullptr) return litert::kInvalidArgument;
  // Without a delegate LiteRT goes on: a model that may use the CPU, too, runs there.
  *wrapper = nullptr;
  constexpr int kNone = litert::kOk;
  return delegate::guarded(
      kNone, [](const char* what) { log(LogLevel::kError, what); },
      [&] {
        return litert::is_known(*context) ? litert::create(*context, environment, options, wrapper)
                                          : kNone;
      });
}
