#include "runtime/run/chains.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/index.hpp"
#include "base/sha256.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {
namespace {

// A look takes up to a microsecond, and displays stop a kernel after two seconds.
std::atomic<cl::cl_uint> patience{500'000};

// A twentieth of what displays allow: other devices and other clocks are slower than the measured.
std::atomic<double> longest{0.1};
std::atomic<double> pretended_launch{0}, pretended_stage{0};

struct Judged {
  std::mutex mutex;
  ChainJudgement judgement;
};
Judged& judged() {
  static auto* instance = new Judged;
  return *instance;
}

// As kernels/common/chain.cl has it: the numbers of the state, and the place of one.
constexpr std::size_t kState = 3, kGaveUp = 2;

constexpr std::size_t kWord = sizeof(cl::cl_uint);

}  // namespace

void set_chain_patience(cl::cl_uint looks) { patience = looks; }

double longest_chain() { return longest; }
std::string longest_chain_text() {
  std::ostringstream out;
  out << longest << " s";
  return out.str();
}
void set_longest_chain(double seconds) { longest = seconds; }
ChainJudgement chain_judgement() {
  const std::lock_guard<std::mutex> lock(judged().mutex);
  return judged().judgement;
}
void set_chain_judgement(ChainJudgement judgement) {
  const std::lock_guard<std::mutex> lock(judged().mutex);
  judged().judgement = std::move(judgement);
}

PretendedSeconds pretended_seconds() { return {pretended_launch, pretended_stage}; }
void pretend_seconds(const PretendedSeconds& seconds) {
  pretended_launch = seconds.launch;
  pretended_stage = seconds.stage;
}

Chains::Chains(cl::Context& context, const Addresses& addresses, const plan::Plan& plan,
               const std::vector<std::size_t>& local_bytes, const plan::ChainLimits& limits,
               const std::set<int>& cuts)
    : context_(context), addresses_(addresses), plan_(plan) {
  for (plan::Chain& chain : plan::find_chains(plan, local_bytes, limits, cuts)) {
    const kernel::Launch& first = plan.run[uz(chain.first)].launch;
    kernel::Launch launch(first.file, kernel::kChainEntry);  // the stages' macros are in the text
    launch.build_flags = first.build_flags;
    std::string text = kernel::chain_text(chain.kernel);
    chains_.push_back({std::move(chain), std::move(text), build_options(launch), {}});
  }
}

ChainsTaken Chains::taken() const {
  ChainsTaken taken;
  taken.kernels = static_cast<int>(chains_.size());
  for (const Bound& bound : chains_) {
    const std::vector<kernel::Stage>& stages = bound.chain.kernel.stages;
    taken.launches += static_cast<int>(stages.size());
    taken.early += static_cast<int>(std::count_if(
        stages.begin(), stages.end(),
        [](const kernel::Stage& stage) { return stage.waits && stage.waits_within; }));
  }
  return taken;
}

std::vector<plan::Span> Chains::spans() const {
  std::vector<plan::Span> spans;
  for (const Bound& bound : chains_) {
    const int first = bound.chain.first;
    spans.push_back({first, first + static_cast<int>(bound.chain.kernel.stages.size())});
  }
  return spans;
}

std::string Chains::key() const {
  Sha256 digest;
  digest.update(context_.identity()).update("chains\n");
  if (addresses_.work()) digest.update("addresses\n");  // they change what a launch costs
  for (const Bound& bound : chains_) digest.update(bound.options + "\n").update(bound.text);
  return hex(digest.digest());
}

void Chains::build(store::Store& store, cl::Context::Programs& programs) {
  const cl::Api& api = context_.api();
  queue_ = context_.create_queue();
  state_ = context_.create_buffer(kState * kWord, "the state of chains");
  cl::cl_int problem = cl::CL_SUCCESS;
  pinned_ = Pinned(context_, queue_, kWord, &problem);
  cl::check(problem, "clEnqueueMapBuffer", "the state of chains");
  const std::array<cl::cl_uint, kState> zeros{};
  cl::check(api.clEnqueueWriteBuffer(queue_.get(), state_.get(), cl::CL_TRUE, 0, sizeof zeros,
                                     zeros.data(), 0, nullptr, nullptr),
            "clEnqueueWriteBuffer", "the state of chains");
  // Another queue launches the chains. Even a blocking write may be unfinished: it promises only
  // that its source has been read.
  cl::check(api.clFinish(queue_.get()), "clFinish", "the state of chains");
  for (Bound& bound : chains_) {
    bound.kernel =
        create_shared_kernel(addresses_, {"of a chain", std::move(bound.text), bound.options},
                             kernel::kChainEntry, plan_, bound.chain.buffers, store, programs);
    bound.text.clear();
    check_work_group(context_, bound.kernel.handle, bound.chain.kernel.items, "a chain");
    const auto set = [&](std::size_t index, std::size_t size, const void* value) {
      cl::check(api.clSetKernelArg(bound.kernel.handle.get(), static_cast<cl::cl_uint>(index), size,
                                   value),
                "clSetKernelArg", kernel::kChainEntry);
    };
    const cl::cl_mem state = state_.get();
    const std::size_t buffers = bound.chain.buffers.size();
    set(buffers, sizeof state, &state);
    const cl::cl_uint looks = patience;
    set(buffers + 1, sizeof looks, &looks);
  }
}

void Chains::set_buffers(const std::function<cl::cl_mem(int buffer)>& memory) {
  for (const Bound& bound : chains_)
    runtime::set_buffers(addresses_, bound.kernel, plan_, bound.chain.buffers, memory, "a chain");
}

std::size_t Chains::next(std::size_t step) const {
  const auto found = std::find_if(chains_.begin(), chains_.end(), [&](const Bound& bound) {
    return uz(bound.chain.first) >= step;
  });
  return found == chains_.end() ? SIZE_MAX : uz(found->chain.first);
}

std::size_t Chains::launch(std::size_t step, const cl::QueueHandle& queue) {
  const auto found = std::find_if(chains_.begin(), chains_.end(), [&](const Bound& bound) {
    return uz(bound.chain.first) == step;
  });
  if (found == chains_.end()) return step;
  const kernel::Chain& kernel = found->chain.kernel;
  const std::size_t global = kernel.groups * kernel.items;
  cl::check(
      context_.api().clEnqueueNDRangeKernel(queue.get(), found->kernel.handle.get(), 1, nullptr,
                                            &global, &kernel.items, 0, nullptr, nullptr),
      "clEnqueueNDRangeKernel",
      "a chain of " + std::to_string(kernel.stages.size()) + " launches from number " +
          std::to_string(step));
  ++cl::counters().launches;
  return step + kernel.stages.size();
}

void Chains::ask(const cl::QueueHandle& queue) {
  cl::check(
      context_.api().clEnqueueReadBuffer(queue.get(), state_.get(), cl::CL_FALSE, kGaveUp * kWord,
                                         kWord, pinned_.data(), 0, nullptr, nullptr),
      "clEnqueueReadBuffer", "the state of chains");
}

}  // namespace clgpu::runtime
