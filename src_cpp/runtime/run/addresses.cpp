#include "runtime/run/addresses.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/error.hpp"
#include "cl/error.hpp"
#include "kernel/sources.hpp"
#include "store/attempt.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kFile = "device/address.cl";
const std::string kOptions = "-cl-std=CL1.2";

std::atomic<bool> all_try{false};
std::atomic<std::uint64_t> all_set{0};

// The result of `attempt`, false where the driver refuses it or has ended a process during it: it
// gets buffers then. A lack of memory is an error, as everywhere.
template <class Attempt>
bool or_buffers(Attempt attempt) {
  try {
    return attempt();
  } catch (const cl::BuildError&) {
  } catch (const store::LeftOut&) {
  } catch (const cl::OpenCLError& error) {
    if (error.out_of_memory()) throw;
  }
  return false;
}

}  // namespace

void Addresses::try_on_all(bool on_all) { all_try = on_all; }
std::uint64_t Addresses::arguments_set() { return all_set; }

Addresses::Addresses(cl::Context& context, store::Store& store, cl::Context::Programs& used,
                     bool wanted)
    : context_(context) {
  const bool is_nvidia = context.device().info.is(GpuFamily::kNvidia);
  if (!wanted || (!is_nvidia && !all_try)) return;
  way_ = is_nvidia ? Way::kIntegers : Way::kPointers;
  set_pointer_ =
      reinterpret_cast<decltype(set_pointer_)>(context.api().symbol("clSetKernelArgSVMPointer"));
  if (!or_buffers([&] { return reads_back(store, used); })) way_ = Way::kNone;
}

cl::KernelHandle Addresses::create_kernel(cl::ProgramSource source, const std::string& entry,
                                          const std::string& variant, store::Store& store,
                                          cl::Context::Programs& used,
                                          std::optional<cl::FirstLaunch>* first_launch,
                                          std::vector<int>& arguments) const {
  if (!work()) arguments.clear();
  if (way_ == Way::kIntegers && !arguments.empty()) {
    source.addresses = arguments;
    cl::KernelHandle kernel;
    const bool made = or_buffers([&] {
      kernel = context_.create_kernel(source, entry, variant, store, &used, first_launch);
      return true;
    });
    if (made) return kernel;
    if (first_launch != nullptr) first_launch->reset();
    source.addresses.clear();
    arguments.clear();
  }
  return context_.create_kernel(source, entry, variant, store, &used, first_launch);
}

void Addresses::learn(const std::vector<cl::cl_mem>& buffers) {
  known_.clear();
  if (buffers.empty()) return;
  std::vector<cl::cl_ulong> addresses(buffers.size());
  const cl::Api& api = context_.api();
  const std::size_t bytes = addresses.size() * sizeof addresses[0], one = 1;
  // In the host's memory, which does not count: plans predict the device's to the byte.
  const cl::MemHandle noted = context_.create_pinned(bytes);
  const cl::Memory otherwise =
      noted ? cl::Memory() : context_.create_buffer(bytes, "addresses of buffers");
  const cl::cl_mem to = noted ? noted.get() : otherwise.get();
  const auto set = [&](cl::cl_uint index, std::size_t size, const void* value) {
    cl::check(api.clSetKernelArg(note_.get(), index, size, value), "clSetKernelArg", kFile);
  };
  set(1, sizeof to, &to);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto at = static_cast<cl::cl_int>(i);
    set(0, sizeof buffers[i], &buffers[i]);
    set(2, sizeof at, &at);
    cl::check(api.clEnqueueNDRangeKernel(queue_.get(), note_.get(), 1, nullptr, &one, &one, 0,
                                         nullptr, nullptr),
              "clEnqueueNDRangeKernel", kFile);
  }
  cl::check(api.clEnqueueReadBuffer(queue_.get(), to, cl::CL_TRUE, 0, bytes, addresses.data(), 0,
                                    nullptr, nullptr),
            "clEnqueueReadBuffer", kFile);
  for (std::size_t i = 0; i < buffers.size(); ++i) known_[buffers[i]] = addresses[i];
}

void Addresses::set(const cl::KernelHandle& kernel, const std::vector<int>& arguments,
                    std::size_t argument, cl::cl_mem buffer, const std::string& what) const {
  const auto index = static_cast<cl::cl_uint>(argument);
  if (!std::binary_search(arguments.begin(), arguments.end(), static_cast<int>(argument))) {
    cl::check(context_.api().clSetKernelArg(kernel.get(), index, sizeof buffer, &buffer),
              "clSetKernelArg", what);
    return;
  }
  const auto found = known_.find(buffer);
  CLGPU_CHECK(found != known_.end());
  const cl::cl_ulong address = found->second;
  if (way_ == Way::kIntegers) {
    cl::check(context_.api().clSetKernelArg(kernel.get(), index, sizeof address, &address),
              "clSetKernelArg", what);
  } else {
    const auto* const pointer = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
    cl::check(set_pointer_(kernel.get(), index, pointer), "clSetKernelArgSVMPointer", what);
  }
  ++all_set;
}

bool Addresses::reads_back(store::Store& store, cl::Context::Programs& used) {
  if (way_ == Way::kPointers && set_pointer_ == nullptr) return false;
  constexpr cl::cl_uint kNumber = 0x5EED1234;
  const cl::Api& api = context_.api();
  queue_ = context_.create_queue();
  const cl::ProgramSource source{kFile, kernel::assemble(kFile), kOptions};
  note_ = context_.create_kernel(source, "device_address", {}, store, &used);
  std::vector<int> arguments{0};
  const cl::KernelHandle read =
      create_kernel(source, "device_address_read", {}, store, used, nullptr, arguments);
  if (arguments.empty()) return false;
  const cl::Memory from = context_.create_buffer(sizeof kNumber, "a number of addresses");
  const cl::Memory target = context_.create_buffer(sizeof kNumber, "a number of addresses");
  const cl::cl_mem to = target.get();
  cl::check(api.clEnqueueWriteBuffer(queue_.get(), from.get(), cl::CL_TRUE, 0, sizeof kNumber,
                                     &kNumber, 0, nullptr, nullptr),
            "clEnqueueWriteBuffer", kFile);
  learn({from.get()});
  if (known_[from.get()] == 0) return false;
  set(read, arguments, 0, from.get(), kFile);
  cl::check(api.clSetKernelArg(read.get(), 1, sizeof to, &to), "clSetKernelArg", kFile);
  const std::size_t one = 1;
  cl::check(api.clEnqueueNDRangeKernel(queue_.get(), read.get(), 1, nullptr, &one, &one, 0, nullptr,
                                       nullptr),
            "clEnqueueNDRangeKernel", kFile);
  cl::cl_uint got = 0;
  cl::check(api.clEnqueueReadBuffer(queue_.get(), to, cl::CL_TRUE, 0, sizeof got, &got, 0, nullptr,
                                    nullptr),
            "clEnqueueReadBuffer", kFile);
  known_.clear();
  return got == kNumber;
}

}  // namespace clgpu::runtime
