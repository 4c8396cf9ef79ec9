#include "runtime/run/chains.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/index.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {
namespace {

// Looks of a work-group at the others before it gives up: a look takes a microsecond or less, and
// displays stop a kernel after two seconds.
constexpr cl::cl_uint kPatience = 500'000;

constexpr std::size_t kState = 33;  // numbers, as kernels/common/chain.cl has them

}  // namespace

Chains::Chains(cl::Context& context, store::Store& store, const plan::Plan& plan,
               const std::vector<std::size_t>& local_bytes, const plan::ChainLimits& limits,
               cl::Context::Programs& programs)
    : plan_(plan), context_(context) {
  const cl::Api& api = context.api();
  std::vector<plan::Chain> chains = plan::find_chains(plan, local_bytes, limits);
  if (chains.empty()) return;
  state_ = context.create_buffer(kState * sizeof(cl::cl_uint), "the state of chains");
  const std::array<cl::cl_uint, kState> zeros{};
  const cl::QueueHandle queue = context.create_queue();
  cl::check(api.clEnqueueWriteBuffer(queue.get(), state_.get(), cl::CL_TRUE, 0, sizeof zeros,
                                     zeros.data(), 0, nullptr, nullptr),
            "clEnqueueWriteBuffer", "the state of chains");
  report_ = context.create_pinned(4096);
  cl::cl_int code = 0;
  reported_ = static_cast<volatile cl::cl_uint*>(api.clEnqueueMapBuffer(
      queue.get(), report_.get(), cl::CL_TRUE, cl::CL_MAP_READ | cl::CL_MAP_WRITE, 0, 4096, 0, nullptr, nullptr, &code));
  cl::check(code, "clEnqueueMapBuffer", "the report of chains");
  *reported_ = 0;
  for (plan::Chain& chain : chains) {
    if (const char* f = std::getenv("CLGPU_CHAIN_CALLS")) chain.kernel.inlined = *f == '0';
    if (const char* f = std::getenv("CLGPU_CHAIN_TEXT")) {
      if (FILE* file = std::fopen(f, "w")) { std::fputs(kernel::chain_text(chain.kernel).c_str(), file); std::fclose(file); }
    }
    const kernel::Launch& first = plan.run[uz(chain.first)].launch;
    kernel::Launch launch(first.file, kernel::kChainEntry);
    launch.build_flags = first.build_flags;
    cl::KernelHandle kernel = context.create_kernel(
        {"a chain", kernel::chain_text(chain.kernel), build_options(launch)}, kernel::kChainEntry,
        {}, store, &programs);
    const Bound& bound = chains_.emplace_back(Bound{std::move(chain), std::move(kernel)});
    const auto set = [&](std::size_t index, std::size_t size, const void* value) {
      cl::check(api.clSetKernelArg(bound.kernel.get(), static_cast<cl::cl_uint>(index), size, value),
                "clSetKernelArg", kernel::kChainEntry);
    };
    const cl::cl_mem state = state_.get();
    set(bound.chain.buffers.size(), sizeof state, &state);
    const cl::cl_mem report = report_.get();
    set(bound.chain.buffers.size() + 1, sizeof report, &report);
    set(bound.chain.buffers.size() + 2, sizeof kPatience, &kPatience);
  }
}

void Chains::test(const cl::QueueHandle& queue) {
  if (chains_.empty()) return;
  const auto patience = [&](cl::cl_uint n) {
    for (const Bound& bound : chains_)
      context_.api().clSetKernelArg(bound.kernel.get(), static_cast<cl::cl_uint>(bound.chain.buffers.size() + 2), sizeof n, &n);
  };
  for (int i = 0; i < 2; ++i) {
    patience(i == 0 ? kPatience : 0);
    launch(uz(chains_[0].chain.first), queue);
    cl::check(context_.api().clFinish(queue.get()), "clFinish", "chain");
    std::fprintf(stderr, "report %u\n", *reported_);
    *reported_ = 0;
  }
  patience(kPatience);
}

void Chains::tell() const {
  for (const Bound& b : chains_) {
    std::size_t waits = 0;
    for (const auto& s : b.chain.kernel.stages) waits += s.waits ? 1 : 0;
    std::fprintf(stderr, "  chain at %d: %zu stages, %zu waits, %zu buffers, local %zu, max group %zu\n", b.chain.first,
                 b.chain.kernel.stages.size(), waits, b.chain.buffers.size(), b.chain.kernel.local_bytes,
                 context_.max_work_group_size(b.kernel));
  }
}

void Chains::set_buffers(const std::function<cl::cl_mem(int buffer)>& memory) {
  for (const Bound& bound : chains_) {
    for (std::size_t i = 0; i < bound.chain.buffers.size(); ++i) {
      const int buffer = bound.chain.buffers[i];
      const cl::cl_mem object = memory(buffer);
      if (object == nullptr) continue;
      cl::check(context_.api().clSetKernelArg(bound.kernel.get(), static_cast<cl::cl_uint>(i),
                                              sizeof object, &object),
                "clSetKernelArg", "'" + plan_.buffers[uz(buffer)].name + "' of a chain");
    }
  }
}

std::size_t Chains::launch(std::size_t step, const cl::QueueHandle& queue) {
  const auto found = std::find_if(chains_.begin(), chains_.end(), [&](const Bound& bound) {
    return uz(bound.chain.first) == step;
  });
  if (found == chains_.end()) return step;
  const kernel::Chain& kernel = found->chain.kernel;
  const std::size_t global = kernel.groups * kernel.items;
  cl::check(context_.api().clEnqueueNDRangeKernel(queue.get(), found->kernel.get(), 1, nullptr,
                                                  &global, &kernel.items, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel", "a chain of " + std::to_string(kernel.stages.size()));
  ++cl::counters().launches;
  return step + kernel.stages.size();
}

bool Chains::finished() {
  if (reported_ == nullptr || *reported_ == 0) return true;
  *reported_ = 0;
  return false;
}

}  // namespace clgpu::runtime
