#include "runtime/run/addresses.hpp"

#include <atomic>
#include <string>

#include "cl/error.hpp"
#include "kernel/sources.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kFile = "device/address.cl";
const std::string kOptions = "-cl-std=CL1.2";

std::atomic<bool> all_try{false};

}  // namespace

void Addresses::try_on_all(bool on_all) { all_try = on_all; }

Addresses::Addresses(cl::Context& context, store::Store& store, bool wanted) : context_(context) {
  if (!all_try && (!wanted || !context.device().info.is(GpuFamily::kNvidia))) return;
  // A driver that cannot do this makes bundles smaller. A lack of memory is an error, as
  // everywhere.
  try {
    queue_ = context.create_queue();
    note_ = context.create_kernel({kFile, kernel::assemble(kFile), kOptions}, "device_address", {},
                                  store);
    work_ = reads_back(store);
  } catch (const cl::BuildError&) {
  } catch (const cl::OpenCLError& error) {
    if (error.out_of_memory()) throw;
  }
}

std::vector<cl::cl_ulong> Addresses::of(const std::vector<cl::cl_mem>& buffers) const {
  std::vector<cl::cl_ulong> addresses(buffers.size());
  if (buffers.empty()) return addresses;
  const cl::Api& api = context_.api();
  const std::size_t bytes = addresses.size() * sizeof addresses[0], one = 1;
  const cl::Memory noted = context_.create_buffer(bytes, "addresses of buffers");
  const cl::cl_mem to = noted.get();
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
  return addresses;
}

bool Addresses::reads_back(store::Store& store) const {
  constexpr cl::cl_uint kNumber = 0x5EED1234;
  const cl::Api& api = context_.api();
  const cl::KernelHandle read = context_.create_kernel({kFile, kernel::assemble(kFile), kOptions},
                                                       "device_address_read", {}, store);
  const cl::Memory source = context_.create_buffer(sizeof kNumber, "a number of addresses");
  const cl::Memory target = context_.create_buffer(sizeof kNumber, "a number of addresses");
  const cl::cl_mem from = source.get(), to = target.get();
  cl::check(api.clEnqueueWriteBuffer(queue_.get(), from, cl::CL_TRUE, 0, sizeof kNumber, &kNumber,
                                     0, nullptr, nullptr),
            "clEnqueueWriteBuffer", kFile);
  const cl::cl_ulong address = of({from}).front();
  if (address == 0) return false;
  cl::check(api.clSetKernelArg(read.get(), 0, sizeof address, &address), "clSetKernelArg", kFile);
  cl::check(api.clSetKernelArg(read.get(), 1, sizeof to, &to), "clSetKernelArg", kFile);
  const std::size_t one = 1;
  cl::check(api.clEnqueueNDRangeKernel(queue_.get(), read.get(), 1, nullptr, &one, &one, 0, nullptr,
                                       nullptr),
            "clEnqueueNDRangeKernel", kFile);
  cl::cl_uint got = 0;
  cl::check(api.clEnqueueReadBuffer(queue_.get(), to, cl::CL_TRUE, 0, sizeof got, &got, 0, nullptr,
                                    nullptr),
            "clEnqueueReadBuffer", kFile);
  return got == kNumber;
}

}  // namespace clgpu::runtime
