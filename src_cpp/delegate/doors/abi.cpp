// The two functions of TensorFlow Lite's external delegate interface.
#include <new>

#include "base/log.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/guard.hpp"

#if defined(_WIN32)
#define CLGPU_EXPORT extern "C" __declspec(dllexport)
#else
#define CLGPU_EXPORT extern "C" __attribute__((visibility("default")))
#endif

using clgpu::delegate::Delegate;
using clgpu::delegate::guarded;

/// Creates a delegate from `count` pairs of option keys and values. Returns null after telling
/// `report_error` what was wrong. Where that is null, as from TfLiteExternalDelegateCreate(), which
/// uses the result without looking at it, a delegate that tells the runtime as soon as it is used.
CLGPU_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values,
                                                           std::size_t count,
                                                           void (*report_error)(const char*)) {
  TfLiteDelegate* none = nullptr;
  const auto report = [&](const char* what) {
    if (report_error != nullptr) {
      report_error(what);
    } else {
      clgpu::log(clgpu::LogLevel::kError, what);
      none = (new Delegate(Delegate::Problem{what}))->tflite();
    }
  };
  TfLiteDelegate* made = guarded(none, report, [&] {
    if (count > 0 && (keys == nullptr || values == nullptr))
      throw clgpu::OptionError("the options are null");
    std::map<std::string, std::string> options;
    for (std::size_t i = 0; i < count; ++i)
      clgpu::delegate::add_option(options, keys[i], values[i]);
    return (new Delegate(options))->tflite();
  });
  return made != nullptr ? made : none;
}

/// Accepts null: a runtime's loader destroys what it failed to create.
CLGPU_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* tflite) {
  clgpu::delegate::destroy(tflite);
}
