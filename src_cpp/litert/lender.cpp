#include "litert/lender.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cl/imported.hpp"
#include "litert/buffers.hpp"

namespace clgpu::litert {
namespace {

// A reference to a tensor buffer.
class Held {
 public:
  Held(const RuntimeContext& context, void* buffer) : context_(context), buffer_(buffer) {}
  ~Held() {
    if (locked_) context_.unlock_buffer(buffer_);
    context_.destroy_buffer(buffer_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void* get() const { return buffer_; }

  // The host's memory; null if LiteRT refuses.
  void* lock(int mode) {
    void* data = nullptr;
    locked_ = context_.lock_buffer(buffer_, &data, mode) == kOk;
    return locked_ ? data : nullptr;
  }

 private:
  const RuntimeContext& context_;
  void* const buffer_;
  bool locked_ = false;
};

// How LiteRT can be told when the outputs are written.
enum class Events { kNone, kOpenCl, kCustom };

// The end of an inference, for a LiteRT that has no OpenCL functions itself.
class End : public CustomEvent {
 public:
  static End* make(const cl::Api& api, std::shared_ptr<const cl::EventHandle> event) {
    return new End(api, std::move(event));
  }

  // Null if another library has made it.
  static const End* of(const CustomEvent* event) {
    return event != nullptr && event->wait == wait_for ? static_cast<const End*>(event) : nullptr;
  }

  cl::cl_event opencl() const { return event_->get(); }

 private:
  End(const cl::Api& api, std::shared_ptr<const cl::EventHandle> event)
      : CustomEvent{add, drop, wait_for, has_come, object}, api_(api), event_(std::move(event)) {}

  static End& self(CustomEvent* event) { return *static_cast<End*>(event); }
  static void add(CustomEvent* event) { ++self(event).references_; }
  static void drop(CustomEvent* event) {
    if (--self(event).references_ == 0) delete &self(event);
  }
  static void wait_for(CustomEvent* event, std::int64_t) {
    const cl::cl_event waited = self(event).opencl();
    const cl::cl_int code = self(event).api_.clWaitForEvents(1, &waited);
    if (code != cl::CL_SUCCESS)  // LiteRT takes no status here
      log(LogLevel::kError, "an asynchronous inference has failed, its outputs are not written: " +
                                std::string("clWaitForEvents returns ") + std::to_string(code));
  }
  static int has_come(CustomEvent* event) {
    cl::cl_int status = 0;
    const cl::Api& api = self(event).api_;
    return api.clGetEventInfo(self(event).opencl(), cl::CL_EVENT_COMMAND_EXECUTION_STATUS,
                              sizeof status, &status, nullptr) == cl::CL_SUCCESS &&
                   status > cl::CL_COMPLETE
               ? 0
               : 1;
  }
  static void* object(CustomEvent* event) { return self(event).opencl(); }

  const cl::Api& api_;
  const std::shared_ptr<const cl::EventHandle> event_;
  std::atomic<int> references_{1};
};

struct Lent {
  int tensor;
  bool is_input, is_output;
  std::unique_ptr<Held> buffer;
  cl::cl_mem memory = nullptr;
  std::shared_ptr<const cl::Imported> imported{};  // by us, what `memory` is
  bool is_mapped = false;
};

class BufferLoan : public delegate::Loan {
 public:
  BufferLoan(const RuntimeContext& context, TfLiteContext& tflite, void* buffers,
             std::shared_ptr<cl::Context> device, Events events)
      : context_(context),
        tflite_(tflite),
        buffers_(buffers),
        shared_device_(std::move(device)),
        device_(*shared_device_),
        events_(events) {}

  ~BufferLoan() override {
    for (const Lent& lent : all_) {
      if (lent.is_mapped) tflite_.tensors[lent.tensor].data = nullptr;
    }
  }

  bool is_empty() const { return all_.empty(); }

  void add(int tensor, bool is_input) {
    if (Lent* known = find(tensor)) {
      (is_input ? known->is_input : known->is_output) = true;
      return;
    }
    const TfLiteTensor& tflite = tflite_.tensors[tensor];
    void* buffer = nullptr;
    if (tflite.data != nullptr || context_.get_tensor_buffer(buffers_, &tflite, &buffer) != kOk)
      return;
    Lent lent{tensor, is_input, !is_input, std::make_unique<Held>(context_, buffer)};
    int type = kBufferHost;
    void* memory = nullptr;
    // GL buffers would have to be acquired for OpenCL: LiteRT maps them.
    const bool known = context_.get_buffer_type(buffer, &type) == kOk;
    if (known && (type == kBufferOpenClPacked || type == kBufferAndroid) &&
        context_.get_opencl_memory(buffer, &memory) == kOk)
      lent.memory = static_cast<cl::cl_mem>(memory);
    else if (known && type == kBufferAndroid)
      import(lent);
    all_.push_back(std::move(lent));
  }

  cl::cl_mem buffer(int tensor) const override {
    for (const Lent& lent : all_) {
      if (lent.tensor == tensor && !lent.is_mapped) return lent.memory;
    }
    return nullptr;
  }

  void map(int tensor) override {
    Lent* const lent = find(tensor);
    if (lent == nullptr || lent->is_mapped) return;
    TfLiteTensor& tflite = tflite_.tensors[tensor];
    std::size_t bytes = 0;
    if (context_.get_buffer_size(lent->buffer->get(), &bytes) != kOk || bytes < tflite.bytes) {
      throw Error(name_of(tflite) + " has a buffer of " + std::to_string(bytes) +
                  " bytes; it needs " + std::to_string(tflite.bytes));
    }
    void* data = nullptr;
    bool reads = lent->is_input, writes = lent->is_output;
    for (const Lent& other : all_) {
      if (other.buffer->get() != lent->buffer->get()) continue;
      if (other.is_mapped) data = tflite_.tensors[other.tensor].data;
      reads = reads || other.is_input;
      writes = writes || other.is_output;
    }
    if (data == nullptr)
      data = lent->buffer->lock(!writes ? kLockRead : reads ? kLockReadWrite : kLockWrite);
    if (data == nullptr)
      throw Error(name_of(tflite) + " cannot be locked; it may be locked already");
    tflite.data = data;
    lent->is_mapped = true;
  }

  std::vector<cl::cl_event> ready() override {
    std::vector<cl::cl_event> events;
    for (const Lent& lent : all_) {
      if (lent.is_mapped) continue;
      bool has = false;
      void *event = nullptr, *opencl = nullptr;
      if (context_.has_event(lent.buffer->get(), &has) != kOk || !has) continue;
      int type = 0;
      if (context_.get_event(lent.buffer->get(), &event) != kOk ||
          context_.get_event_type(event, &type) != kOk) {
        throw Error(name_of(tflite_.tensors[lent.tensor]) + " has an event that is not readable");
      }
      if (type == kEventOpenCl) {
        context_.get_opencl_event(event, &opencl);
      } else if (type == kEventCustom) {
        CustomEvent* custom = nullptr;
        if (context_.get_custom_event(event, &custom) == kOk && End::of(custom) != nullptr)
          opencl = End::of(custom)->opencl();
      }
      if (opencl != nullptr && device_.has(static_cast<cl::cl_event>(opencl))) {
        events.push_back(static_cast<cl::cl_event>(opencl));
      } else if (context_.wait_event(event, -1) != kOk) {
        throw Error("waiting for the event of " + name_of(tflite_.tensors[lent.tensor]) +
                    " has failed");
      }
    }
    return events;
  }

  // References of LiteRT's buffers keep their memory; what is imported here goes with the loan.
  bool may_be_kept() const override {
    return std::none_of(all_.begin(), all_.end(),
                        [](const Lent& lent) { return lent.imported != nullptr; });
  }

  bool may_fly() const override {
    bool is_async = false;
    return events_ != Events::kNone && may_be_kept() &&
           context_.is_async(buffers_, &is_async) == kOk && is_async;
  }

  void deliver(cl::EventHandle done) override {
    const auto end = std::make_shared<const cl::EventHandle>(std::move(done));
    for (const Lent& lent : all_) {
      void* event = nullptr;
      if (!lent.is_output ||
          (make_event(end, &event) && context_.set_event(lent.buffer->get(), event) == kOk))
        continue;
      const cl::cl_event waited = end->get();
      cl::check(device_.api().clWaitForEvents(1, &waited), "clWaitForEvents", "an inference");
    }
  }

 private:
  static std::string name_of(const TfLiteTensor& tensor) {
    return "the buffer of tensor '" + std::string(tensor.name != nullptr ? tensor.name : "") + "'";
  }

  Lent* find(int tensor) {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const Lent& lent) { return lent.tensor == tensor; });
    return found == all_.end() ? nullptr : &*found;
  }

  // LiteRT itself imports by ARM's extension only. Where the driver cannot, LiteRT maps the buffer.
  void import(Lent& lent) const {
    AHardwareBuffer* buffer = nullptr;
    std::size_t offset = 0;
    const bool starts_later =
        context_.get_buffer_offset(lent.buffer->get(), &offset) == kOk && offset != 0;
    if (starts_later || context_.get_hardware_buffer(lent.buffer->get(), &buffer) != kOk) return;
    try {
      auto imported = cl::Imported::hardware_buffer(shared_device_, buffer);
      if (imported->is_image()) return;
      lent.memory = imported->object();
      lent.imported = std::move(imported);
    } catch (const Error&) {
    }
  }

  bool make_event(const std::shared_ptr<const cl::EventHandle>& end, void** event) const {
    if (events_ == Events::kOpenCl)
      return context_.create_event_from_opencl(environment(), end->get(), event) == kOk;
    if (context_.create_event(environment(), kEventCustom, event) != kOk) return false;
    End* const made = End::make(device_.api(), end);
    const int status = context_.set_custom_event(*event, made);
    made->release(made);
    return status == kOk;
  }

  void* environment() const {
    void* environment = nullptr;
    return context_.get_environment(buffers_, &environment) == kOk ? environment : nullptr;
  }

  const RuntimeContext& context_;
  TfLiteContext& tflite_;
  void* const buffers_;
  const std::shared_ptr<cl::Context> shared_device_;
  const cl::Context& device_;
  const Events events_;
  std::vector<Lent> all_;
};

class BufferLender : public delegate::Lender {
 public:
  BufferLender(const RuntimeContext& context, Events events) : context_(context), events_(events) {}

  std::shared_ptr<void> enter(TfLiteContext&, bool) override { return std::make_shared<int>(); }

  bool fixes_sizes() const override { return true; }

  void announce(TfLiteContext& tflite, int tensor, std::size_t bytes, bool /*is_input*/) override {
    void* const buffers = tflite.GetExternalContext(&tflite, kBufferContext);
    if (buffers == nullptr) return;
    // What is first is what LiteRT creates by default. Not OpenCL: LiteRT ends the process when
    // such a buffer ends after its environment.
    static constexpr int kTypes[] = {
        kBufferHost,    kBufferOpenClPacked,
#if defined(__ANDROID__)  // imported by the driver if possible, otherwise locked by LiteRT
        kBufferAndroid, kBufferGl,           kBufferDma, kBufferFastRpc,
#endif
    };
    void* requirements = nullptr;
    constexpr int kCount = static_cast<int>(sizeof kTypes / sizeof *kTypes);
    if (context_.create_requirements(kCount, kTypes, bytes, 0, nullptr, &requirements) == kOk)
      context_.register_requirements(buffers, &tflite.tensors[tensor], requirements);
  }

  std::unique_ptr<delegate::Loan> borrow(TfLiteContext& tflite,
                                         const std::shared_ptr<cl::Context>& device,
                                         const std::vector<int>& inputs,
                                         const std::vector<int>& outputs) override {
    void* const buffers = tflite.GetExternalContext(&tflite, kBufferContext);
    if (buffers == nullptr) return nullptr;
    auto loan = std::make_unique<BufferLoan>(context_, tflite, buffers, device, events_);
    for (const int tensor : inputs) loan->add(tensor, true);
    for (const int tensor : outputs) loan->add(tensor, false);
    if (loan->is_empty()) return nullptr;
    return loan;
  }

 private:
  const RuntimeContext& context_;
  const Events events_;
};

EnvironmentOption option(int tag, const void* object) {
  EnvironmentOption made{tag, {kAnyInteger, {}}};
  made.value.integer = reinterpret_cast<std::int64_t>(object);
  return made;
}

bool has_option(const RuntimeContext& context, void* environment, int tag) {
  void* options = nullptr;
  Any value{};
  return context.get_environment_options(environment, &options) == kOk && options != nullptr &&
         context.get_environment_options_value(options, tag, &value) == kOk;
}

// Whether the library whose name LiteRT asks for is in this process.
bool has_loaded_opencl() {
#if defined(__ANDROID__)
  return true;  // LiteRT finds it where we have found it
#else
  return dlopen("libOpenCL.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
#endif
}

// Buffers that LiteRT creates, and those of the application, are in the environment's context.
// Returns whether LiteRT has loaded the OpenCL functions that its events need, which it does with
// its GPU environment if it finds a library of the name libOpenCL.so. Without that it would call
// null pointers.
bool share_objects(const RuntimeContext& context, void* environment, const cl::Context& device) {
  if (!has_option(context, environment, kOpenClContext)) {
    const EnvironmentOption objects[] = {
        option(kOpenClDevice, device.device().id),
        option(kOpenClPlatform, device.device().platform),
        option(kOpenClContext, device.handle()),
    };
    context.add_environment_options(environment, 3, objects, true);
  }
  bool has_gpu = false;
  context.has_gpu_environment(environment, &has_gpu);
  const bool had_queue = has_option(context, environment, kOpenClQueue);
  if (!has_gpu && context.create_gpu_environment(environment, 0, nullptr) != kOk) return false;
  // LiteRT makes a queue with these functions; one that was there before proves nothing.
  return has_option(context, environment, kOpenClQueue) && (!had_queue || has_loaded_opencl());
}

// LiteRT's Python package has no function that gives or takes an OpenCL buffer. What is announced
// fixes the size of the buffers that it creates, even after a resize_input_tensor that is not
// strict: so nothing is announced to it.
bool is_python_package(const RuntimeContext& context) {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(context.create_buffer), &library) == 0 ||
      library.dli_fname == nullptr)
    return false;
  return std::strstr(library.dli_fname, "libpywrap_") != nullptr;
}

// Whether the environment creates OpenCL buffers, which it may have been built without. `customs`:
// whether their events may be custom ones.
bool creates_buffers(const RuntimeContext& context, void* environment, bool& customs) {
  const TensorType tensor{kElementFloat32, 1, 0, {1}, {}};
  void* buffer = nullptr;
  const int status =
      context.create_buffer(environment, kBufferOpenClPacked, &tensor, sizeof(float), &buffer);
  if (status != kOk || buffer == nullptr) return false;
  void* event = nullptr;
  customs = context.create_event(environment, kEventCustom, &event) == kOk &&
            context.set_event(buffer, event) == kOk;  // which ends with the buffer
  context.destroy_buffer(buffer);
  return true;
}

}  // namespace

std::shared_ptr<delegate::Lender> make_lender(const RuntimeContext& context, void* environment,
                                              const std::shared_ptr<cl::Context>& device) {
  if (context.header.size < sizeof(RuntimeContext) || environment == nullptr) return nullptr;
  if (is_python_package(context)) return nullptr;
  home_of(device);
  const bool has_opencl = share_objects(context, environment, *device);
  bool customs = false;
  if (!creates_buffers(context, environment, customs)) return nullptr;
  return std::make_shared<BufferLender>(context, has_opencl ? Events::kOpenCl
                                                 : customs  ? Events::kCustom
                                                            : Events::kNone);
}

}  // namespace clgpu::litert
