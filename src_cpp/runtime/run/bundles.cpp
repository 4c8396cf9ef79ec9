#include "runtime/run/bundles.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "runtime/run/programs.hpp"
#include "runtime/run/shared_kernel.hpp"

namespace clgpu::runtime {

Bundles::Bundles(cl::Context& context, const plan::Plan& plan,
                 const std::vector<std::size_t>& local_bytes, store::Store& store)
    : context_(context),
      plan_(plan),
      // Seen right and faster with decoders, whose caches are carried; nothing else was compared.
      addresses_(context, store, !plan.carries.empty()) {
  for (plan::Bundle& bundle : plan::find_bundles(
           plan, local_bytes, uz(context.device().info.local_bytes), addresses_.work()))
    bundles_.push_back({std::move(bundle), {}, {}});
}

BundlesTaken Bundles::taken() const {
  BundlesTaken taken;
  for (const Bound& bound : bundles_) {
    const std::size_t members = bound.bundle.kernel.members.size();
    if (members == 1) continue;  // for its arguments alone
    ++taken.kernels;
    taken.launches += static_cast<int>(members);
  }
  return taken;
}

void Bundles::build(store::Store& store, cl::Context::Programs& programs) {
  for (Bound& bound : bundles_) {
    const kernel::Bundle& bundle = bound.bundle.kernel;
    const kernel::Launch& first = *bundle.members.front().launch;
    kernel::Launch launch(first.file, kernel::kBundleEntry);  // the members' macros are in the text
    launch.build_flags = first.build_flags;
    bound.kernel =
        context_.create_kernel({"of a bundle", kernel::bundle_text(bundle), build_options(launch)},
                               kernel::kBundleEntry, {}, store, &programs, &bound.first_launch);
    check_work_group(context_, bound.kernel, bundle.items(), "a bundle of " + first.file);
  }
}

void Bundles::set_buffers(const std::function<cl::cl_mem(int buffer)>& memory) {
  for (const Bound& bound : bundles_) {
    const std::vector<bool>& by_address = bound.bundle.kernel.by_address;
    const auto object = [&](int buffer) {
      const auto& all = bound.bundle.buffers;
      const auto at = std::find(all.begin(), all.end(), buffer) - all.begin();
      return !by_address.empty() && by_address[uz(at)] ? nullptr : memory(buffer);
    };
    runtime::set_buffers(context_, bound.kernel, plan_, bound.bundle.buffers, object, "a bundle");
  }
  if (addresses_.work()) set_addresses(memory);
}

void Bundles::set_addresses(const std::function<cl::cl_mem(int buffer)>& memory) {
  const auto for_all = [&](const auto& use) {
    for (const Bound& bound : bundles_) {
      for (std::size_t i = 0; i < bound.bundle.buffers.size(); ++i) {
        if (bound.bundle.kernel.by_address[i]) use(bound, i, bound.bundle.buffers[i]);
      }
    }
  };
  std::map<int, std::size_t> places;  // by buffer, in `objects`
  std::vector<cl::cl_mem> objects;
  for_all([&](const Bound&, std::size_t, int buffer) {
    if (places.count(buffer) > 0) return;
    const cl::cl_mem object = memory(buffer);
    if (object == nullptr) return;
    places[buffer] = objects.size();
    objects.push_back(object);
  });
  const std::vector<cl::cl_ulong> addresses = addresses_.of(objects);
  for_all([&](const Bound& bound, std::size_t i, int buffer) {
    const auto place = places.find(buffer);
    if (place == places.end()) return;
    const cl::cl_ulong address = addresses[place->second];
    cl::check(context_.api().clSetKernelArg(bound.kernel.get(), static_cast<cl::cl_uint>(i),
                                            sizeof address, &address),
              "clSetKernelArg", "the address of '" + plan_.buffers[uz(buffer)].name + "'");
  });
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
  cl::check(context_.api().clEnqueueNDRangeKernel(queue.get(), found->kernel.get(), 1, nullptr,
                                                  &global, &items, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel",
            "a bundle of " + std::to_string(bundle.members.size()) + " launches from number " +
                std::to_string(step));
  ++cl::counters().launches;
  return step + bundle.members.size();
}

}  // namespace clgpu::runtime
