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

/// Creates a delegate from `count` pairs of option keys and values. On an error, reports it through
/// `report_error` and returns null. If `report_error` is null, returns a delegate that reports the
/// error at its first use instead: TfLiteExternalDelegateCreate() passes no callback and uses the
/// result without checking it.
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

/// Accepts null: a runtime's loader also destroys a delegate that it failed to create.
CLGPU_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* tflite) {
  clgpu::delegate::destroy(tflite);
}
