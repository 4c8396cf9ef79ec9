// The functions of clgpu_delegate.h.
#include <clgpu_delegate.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "cl/device.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/guard.hpp"
#include "delegate/options.hpp"
#include "delegate/tell/telling.hpp"

using clgpu::delegate::Delegate;
using clgpu::delegate::guarded;

namespace {

// Null when out of memory.
char* copy_of(const std::string& text) noexcept {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Runs `body`; writes the message of an exception to `*error`.
template <class Result, class Body>
Result* told(char** error, Body body) noexcept {
  if (error != nullptr) *error = nullptr;
  return guarded(
      static_cast<Result*>(nullptr),
      [&](const char* what) {
        if (error != nullptr) *error = copy_of(clgpu::valid_utf8(what));
      },
      body);
}

std::map<std::string, std::string> values_of(const clgpu_delegate_option* options,
                                             std::size_t count) {
  if (count > 0 && options == nullptr) throw clgpu::OptionError("the options are null");
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < count; ++i)
    clgpu::delegate::add_option(values, options[i].key, options[i].value);
  return values;
}

char* needed_copy_of(const std::string& text) {
  char* copy = copy_of(text);
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

// `tell(state)` returns the text to write.
template <class Tell>
char* json_of(const TfLiteDelegate* tflite, char** error, Tell tell) noexcept {
  return told<char>(error, [&] {
    const auto state = Delegate::state_of(tflite);
    if (state == nullptr) {
      throw clgpu::Error(tflite == nullptr ? "the delegate is null"
                                           : "this is not a working delegate of this library");
    }
    return needed_copy_of(clgpu::to_json(tell(*state)));
  });
}

}  // namespace

const char* clgpu_delegate_version(void) { return CLGPU_VERSION; }

TfLiteDelegate* clgpu_delegate_create(const clgpu_delegate_option* options, std::size_t count,
                                      char** error) {
  return told<TfLiteDelegate>(error,
                              [&] { return (new Delegate(values_of(options, count)))->tflite(); });
}

char* clgpu_delegate_find_device(const clgpu_delegate_option* options, std::size_t count,
                                 char** error) {
  return told<char>(error, [&] {
    const auto chosen = clgpu::delegate::parse_options(values_of(options, count));
    return needed_copy_of(clgpu::valid_utf8(clgpu::cl::find_device(chosen.device).info.name));
  });
}

void clgpu_delegate_destroy(TfLiteDelegate* delegate) { clgpu::delegate::destroy(delegate); }

char* clgpu_delegate_explain_json(TfLiteDelegate* delegate, char** error) {
  return json_of(delegate, error, [](clgpu::delegate::State& state) {
    return clgpu::delegate::explain(state.target, state.report());
  });
}

char* clgpu_delegate_profile_json(TfLiteDelegate* delegate, char** error) {
  return json_of(delegate, error, [](clgpu::delegate::State& state) {
    if (!state.target.options.profile) {
      throw clgpu::OptionError(
          "nothing is recorded: create the delegate with the option 'profile' as 'on'");
    }
    return clgpu::delegate::recorded_profile(state.target, state.ledger, /*with_peaks=*/true);
  });
}

void clgpu_delegate_free(char* text) { std::free(text); }
