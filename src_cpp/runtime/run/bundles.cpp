#include "runtime/run/bundles.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {

Bundles::Bundles(cl::Context& context, const Addresses& addresses, const plan::Plan& plan,
                 const std::vector<std::size_t>& local_bytes)
    : context_(context), addresses_(addresses), plan_(plan) {
  for (plan::Bundle& bundle :
       plan::find_bundles(plan, local_bytes, uz(context.device().info.local_bytes)))
    bundles_.push_back({std::move(bundle), {}, {}});
}

BundlesTaken Bundles::taken() const {
  BundlesTaken taken;
  taken.kernels = static_cast<int>(bundles_.size());
  for (const Bound& bound : bundles_)
    taken.launches += static_cast<int>(bound.bundle.kernel.members.size());
  return taken;
}

void Bundles::build(store::Store& store, cl::Context::Programs& programs) {
  for (Bound& bound : bundles_) {
    const kernel::Bundle& bundle = bound.bundle.kernel;
    const kernel::Launch& first = *bundle.members.front().launch;
    kernel::Launch launch(first.file, kernel::kBundleEntry);  // the members' macros are in the text
    launch.build_flags = first.build_flags;
    bound.kernel = create_shared_kernel(
        addresses_, {"of a bundle", kernel::bundle_text(bundle), build_options(launch)},
        kernel::kBundleEntry, plan_, bound.bundle.buffers, store, programs, &bound.first_launch);
    check_work_group(context_, bound.kernel.handle, bundle.items(), "a bundle of " + first.file);
  }
}

void Bundles::set_buffers(const std::function<cl::cl_mem(int buffer)>& memory) {
  for (const Bound& bound : bundles_)
    runtime::set_buffers(addresses_, bound.kernel, plan_, bound.bundle.buffers, memory, "a bundle");
}

void Bundles::try_all(store::Store& store, const cl::QueueHandle& queue) const {
  for (const Bound& bound : bundles_) {
    const store::Attempt attempt =
        bound.first_launch ? store::Attempt(store, bound.first_launch->risk) : store::Attempt();
    launch(uz(bound.bundle.first), queue);
    cl::check(context_.api().clFinish(queue.get()), "clFinish", "the first run of a bundle");
    if (bound.first_launch) context_.has_launched(*bound.first_launch);
  }
}

std::size_t Bundles::launch(std::size_t step, const cl::QueueHandle& queue, std::size_t end) const {
  const auto found = std::lower_bound(
      bundles_.begin(), bundles_.end(), step,
      [](const Bound& bound, std::size_t at) { return uz(bound.bundle.first) < at; });
  if (found == bundles_.end() || uz(found->bundle.first) != step) return step;
  const kernel::Bundle& bundle = found->bundle.kernel;
  if (step + bundle.members.size() > end) return step;
  const std::size_t items = bundle.items(), global = bundle.groups() * items;
  cl::check(context_.api().clEnqueueNDRangeKernel(queue.get(), found->kernel.handle.get(), 1,
                                                  nullptr, &global, &items, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel",
            "a bundle of " + std::to_string(bundle.members.size()) + " launches from number " +
                std::to_string(step));
  ++cl::counters().launches;
  return step + bundle.members.size();
}

}  // namespace clgpu::runtime
