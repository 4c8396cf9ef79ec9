// The functions of clgpu_delegate.h.
#include <clgpu_delegate.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "cl/device.hpp"
#include "cl/fork.hpp"
#include "cl/imported.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/guard.hpp"
#include "delegate/options.hpp"
#include "delegate/tell/telling.hpp"
#include "runtime/run/allocation.hpp"

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

std::shared_ptr<clgpu::delegate::State> state_of(const TfLiteDelegate* tflite) {
  auto state = Delegate::state_of(tflite);
  if (state == nullptr) {
    throw clgpu::Error(tflite == nullptr ? "the delegate is null"
                                         : "this is not a working delegate of this library");
  }
  return state;
}

// `tell(state)` returns the text to write.
template <class Tell>
char* json_of(const TfLiteDelegate* tflite, char** error, Tell tell) noexcept {
  return told<char>(error, [&] { return needed_copy_of(clgpu::to_json(tell(*state_of(tflite)))); });
}

using Memory = std::shared_ptr<const clgpu::cl::Imported>;

// The memory that the application has imported and not released: it may pass any address.
struct Memories {
  std::mutex mutex;
  std::map<const clgpu_delegate_memory*, Memory> all;
};

// Leaked on purpose: they may outlive static objects.
Memories& memories() {
  static auto* all = new Memories;
  return *all;
}

// The address of the object itself names it; nobody reads through it.
clgpu_delegate_memory* keep(Memory memory) {
  void* const name = const_cast<clgpu::cl::Imported*>(memory.get());
  auto* const handle = static_cast<clgpu_delegate_memory*>(name);
  const std::lock_guard<std::mutex> lock(memories().mutex);
  memories().all.emplace(handle, std::move(memory));
  return handle;
}

Memory find(const clgpu_delegate_memory* handle) {
  const std::lock_guard<std::mutex> lock(memories().mutex);
  const auto found = memories().all.find(handle);
  if (found == memories().all.end()) {
    throw clgpu::Error(
        "this is no memory that clgpu_delegate_import_... has returned, or it was released before");
  }
  return found->second;
}

}  // namespace

const char* clgpu_delegate_version(void) { return CLGPU_VERSION; }

TfLiteDelegate* clgpu_delegate_create(const clgpu_delegate_option* options, std::size_t count,
                                      char** error) {
  return told<TfLiteDelegate>(error,
                              [&] { return (new Delegate(values_of(options, count)))->tflite(); });
}

TfLiteDelegate* clgpu_delegate_create_with_gl(const clgpu_delegate_option* options,
                                              std::size_t count, const clgpu_delegate_gl* gl,
                                              char** error) {
  using clgpu::cl::GlContext;
  return told<TfLiteDelegate>(error, [&] {
    if (gl == nullptr || gl->context == nullptr || gl->display == nullptr)
      throw clgpu::OptionError("the OpenGL context, or its display, is null");
    if (gl->window_system != CLGPU_DELEGATE_EGL && gl->window_system != CLGPU_DELEGATE_GLX) {
      throw clgpu::OptionError("the window system is " + std::to_string(gl->window_system) +
                               "; allowed: CLGPU_DELEGATE_EGL (1), CLGPU_DELEGATE_GLX (2)");
    }
    const bool is_egl = gl->window_system == CLGPU_DELEGATE_EGL;
    const GlContext shared{is_egl ? GlContext::System::kEgl : GlContext::System::kGlx, gl->display,
                           gl->context};
    return (new Delegate(values_of(options, count), &shared))->tflite();
  });
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

clgpu_delegate_memory* clgpu_delegate_import_hardware_buffer(TfLiteDelegate* delegate,
                                                             AHardwareBuffer* buffer,
                                                             char** error) {
  return told<clgpu_delegate_memory>(error, [&] {
    return keep(clgpu::cl::Imported::hardware_buffer(state_of(delegate)->target.context, buffer));
  });
}

clgpu_delegate_memory* clgpu_delegate_import_gl_buffer(TfLiteDelegate* delegate, unsigned buffer,
                                                       char** error) {
  return told<clgpu_delegate_memory>(error, [&] {
    return keep(clgpu::cl::Imported::gl_buffer(state_of(delegate)->target.context, buffer));
  });
}

clgpu_delegate_memory* clgpu_delegate_import_gl_texture(TfLiteDelegate* delegate, unsigned target,
                                                        int level, unsigned texture, char** error) {
  return told<clgpu_delegate_memory>(error, [&] {
    return keep(clgpu::cl::Imported::gl_texture(state_of(delegate)->target.context, target, level,
                                                texture));
  });
}

int clgpu_delegate_bind(TfLiteDelegate* delegate, int tensor, clgpu_delegate_memory* memory,
                        const clgpu_delegate_scaling* scaling, char** error) {
  static constexpr char kBound = 0;
  const char* const done = told<const char>(error, [&] {
    const auto state = state_of(delegate);
    if (memory == nullptr) {
      state->bindings->unbind(tensor);
    } else {
      clgpu::delegate::Bindings::Scaling scale;
      if (scaling != nullptr) scale = {scaling->scale, scaling->offset};
      state->bindings->bind(tensor, find(memory), scale);
    }
    return &kBound;
  });
  return done != nullptr ? 1 : 0;
}

void clgpu_delegate_release_memory(clgpu_delegate_memory* memory) {
  using clgpu::LogLevel;
  if (memory == nullptr || clgpu::cl::is_forked_child()) return;
  const auto complain = [](const char* what) { clgpu::log(LogLevel::kError, what); };
  guarded(0, complain, [&] {
    Memory last;  // ends outside of the lock
    const std::lock_guard<std::mutex> lock(memories().mutex);
    const auto found = memories().all.find(memory);
    if (found == memories().all.end()) {
      complain("the memory to release does not belong to this library, or was released before");
      return 0;
    }
    last = std::move(found->second);
    memories().all.erase(found);
    return 0;
  });
}

void* clgpu_delegate_allocate(TfLiteDelegate* delegate, std::size_t bytes, char** error) {
  return told<void>(error, [&] {
    return clgpu::runtime::Allocation::allocate(state_of(delegate)->target.context, bytes);
  });
}

void clgpu_delegate_deallocate(void* memory) {
  using clgpu::LogLevel;
  if (memory == nullptr || clgpu::cl::is_forked_child()) return;
  const auto complain = [](const char* what) { clgpu::log(LogLevel::kError, what); };
  guarded(0, complain, [&] {
    if (!clgpu::runtime::Allocation::deallocate(memory)) {
      complain(
          "the memory to deallocate is not of clgpu_delegate_allocate(), or was deallocated "
          "before");
    }
    return 0;
  });
}

void clgpu_delegate_free(char* text) { std::free(text); }
