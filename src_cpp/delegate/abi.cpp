// The two functions of TensorFlow Lite's external delegate interface.
#include <new>

#include "delegate/delegate.hpp"
#include "delegate/guard.hpp"

#if defined(_WIN32)
#define CLGPU_EXPORT extern "C" __declspec(dllexport)
#else
#define CLGPU_EXPORT extern "C" __attribute__((visibility("default")))
#endif

using clgpu::delegate::Delegate;
using clgpu::delegate::guarded;

/// Creates a delegate from `count` pairs of option keys and values. Returns null after telling
/// `report_error` (may be null) what was wrong.
CLGPU_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values,
                                                           std::size_t count,
                                                           void (*report_error)(const char*)) {
  return guarded(
      static_cast<TfLiteDelegate*>(nullptr),
      [&](const char* what) {
        if (report_error != nullptr) report_error(what);
      },
      [&] {
        std::map<std::string, std::string> options;
        for (std::size_t i = 0; i < count; ++i) options[keys[i]] = values[i];
        return (new Delegate(options))->tflite();
      });
}

/// Accepts null: a runtime's loader destroys what it failed to create.
CLGPU_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* tflite) {
  if (tflite == nullptr) return;
  guarded(
      0, [](const char*) {},
      [&] {
        Delegate::release(&Delegate::of(tflite));
        return 0;
      });
}
