#include "litert/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "abi/litert.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cl/device.hpp"
#include "cl/fork.hpp"
#include "delegate/guard.hpp"

namespace clgpu::litert {
namespace {

struct Homes {
  std::mutex mutex;
  std::vector<std::unique_ptr<Home>> all;
};

// Leaked on purpose: buffers may outlive static objects.
Homes& homes() {
  static auto* all = new Homes;
  return *all;
}

// `device` and `context` are those of LiteRT's environment, and null before a model was compiled
// in it: then the device is the one that a delegate takes without options.
const Home& home_in(void* device, void* context) {
  const auto id = static_cast<cl::cl_device_id>(device);
  {
    const std::lock_guard<std::mutex> lock(homes().mutex);
    for (const auto& home : homes().all) {
      if (home->context->handle() == context) return *home;
    }
  }
  if (context == nullptr) return home_of(cl::Context::of(cl::find_device("")));
  for (const cl::Device& known : cl::devices()) {
    if (known.id != id) continue;
    const auto made = cl::Context::adopt(known, static_cast<cl::cl_context>(context));
    if (made->handle() == context) return home_of(made);
  }
  throw Error(
      "the OpenCL context of LiteRT's environment is not used: the device of the environment has "
      "another context in this process, or is not known");
}

class Buffer : public BufferInfo {
 public:
  // A new buffer.
  Buffer(const Home& home, std::size_t bytes) : BufferInfo{}, home_(home), bytes_(bytes) {
    owned_ = home.context->create_buffer(std::max<std::size_t>(bytes, 1), "a tensor buffer",
                                         home.context->device().info.unified_memory);
    memory = raw = owned_.get();
  }
  // The application's buffer.
  Buffer(const Home& home, cl::cl_mem buffer, std::size_t bytes)
      : BufferInfo{}, home_(home), bytes_(bytes) {
    const std::size_t has = home.context->bytes_of(buffer);
    if (has == 0) {
      throw Error(
          "the imported OpenCL buffer belongs to another context than LiteRT's environment, or "
          "kernels may not read and write it; create it with CL_MEM_READ_WRITE in the context of "
          "the environment");
    }
    if (has < bytes) {
      throw Error("the imported OpenCL buffer has " + std::to_string(has) +
                  " bytes; the tensor needs " + std::to_string(bytes));
    }
    imported_ = home.context->retain(buffer);
    memory = raw = buffer;
  }

  void* map(int mode) {
    const cl::cl_bitfield flags = mode == kLockRead    ? cl::CL_MAP_READ
                                  : mode == kLockWrite ? cl::CL_MAP_WRITE_INVALIDATE_REGION
                                                       : cl::CL_MAP_READ | cl::CL_MAP_WRITE;
    cl::cl_int code = cl::CL_SUCCESS;
    void* const data =
        api().clEnqueueMapBuffer(home_.queue.get(), object(), cl::CL_TRUE, flags, 0,
                                 std::max<std::size_t>(bytes_, 1), 0, nullptr, nullptr, &code);
    cl::check(code, "clEnqueueMapBuffer", "a tensor buffer");
    mapped_ = data;
    return data;
  }

  void unmap() {
    if (mapped_ == nullptr) return;
    void* const data = mapped_;
    mapped_ = nullptr;
    cl::check(api().clEnqueueUnmapMemObject(home_.queue.get(), object(), data, 0, nullptr, nullptr),
              "clEnqueueUnmapMemObject", "a tensor buffer");
    // Other queues do not wait for this one.
    cl::check(api().clFinish(home_.queue.get()), "clFinish", "a tensor buffer");
  }

  void clear() {
    std::memset(map(kLockWrite), 0, bytes_);
    unmap();
  }

 private:
  const cl::Api& api() const { return home_.context->api(); }
  cl::cl_mem object() const { return static_cast<cl::cl_mem>(memory); }

  const Home& home_;
  std::size_t bytes_;
  cl::Memory owned_;
  cl::MemHandle imported_;
  void* mapped_ = nullptr;
};

// Runs `body`; the log has the reason for a status that is not kOk.
template <class Body>
int told(Body body) noexcept {
  if (cl::is_forked_child()) return kUnsupported;
  return delegate::guarded(
      static_cast<int>(kRuntimeFailure), [](const char* what) { log(LogLevel::kError, what); },
      [&] {
        body();
        return static_cast<int>(kOk);
      });
}

int create(void* device, void* context, const TensorType*, int, std::size_t bytes,
           std::size_t packed_bytes, BufferInfo** info) {
  if (info == nullptr) return kInvalidArgument;
  return told([&] { *info = new Buffer(home_in(device, context), std::max(bytes, packed_bytes)); });
}

int import(void* device, void* context, const TensorType*, int, void* memory, std::size_t bytes,
           std::size_t packed_bytes, BufferInfo** info) {
  if (info == nullptr || memory == nullptr) return kInvalidArgument;
  return told([&] {
    *info = new Buffer(home_in(device, context), static_cast<cl::cl_mem>(memory),
                       std::max(bytes, packed_bytes));
  });
}

int destroy(BufferInfo* info) {
  if (cl::is_forked_child()) return kOk;
  auto* const buffer = static_cast<Buffer*>(info);
  if (buffer == nullptr) return kOk;
  const int status = told([&] { buffer->unmap(); });
  delete buffer;
  return status;
}

int lock(BufferInfo* info, int mode, void** data) {
  if (info == nullptr || data == nullptr) return kInvalidArgument;
  return told([&] { *data = static_cast<Buffer*>(info)->map(mode); });
}

int unlock(BufferInfo* info) {
  if (info == nullptr) return kInvalidArgument;
  return told([&] { static_cast<Buffer*>(info)->unmap(); });
}

int clear(BufferInfo* info) {
  if (info == nullptr) return kInvalidArgument;
  return told([&] { static_cast<Buffer*>(info)->clear(); });
}

}  // namespace

const Home& home_of(const std::shared_ptr<cl::Context>& context) {
  const std::lock_guard<std::mutex> lock(homes().mutex);
  for (const auto& home : homes().all) {
    if (home->context == context) return *home;
  }
  auto made = std::make_unique<Home>(Home{context, context->create_queue()});
  homes().all.push_back(std::move(made));
  return *homes().all.back();
}

}  // namespace clgpu::litert

/// For libLiteRtGpuAccelerator: the handlers of LiteRT's OpenCL buffers.
extern "C" __attribute__((visibility("default"))) const clgpu::litert::BufferFunctions*
litert_plugin_buffers() {
  using namespace clgpu::litert;
  static constexpr BufferFunctions kFunctions = {create, destroy, lock, unlock, clear, import};
  return &kFunctions;
}
