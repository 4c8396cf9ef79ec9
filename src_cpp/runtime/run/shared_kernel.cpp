#include "runtime/run/shared_kernel.hpp"

#include <utility>

#include "base/index.hpp"
#include "plan/lasting.hpp"

namespace clgpu::runtime {

SharedKernel create_shared_kernel(const Addresses& addresses, cl::ProgramSource source,
                                  const std::string& entry, const plan::Plan& plan,
                                  const std::vector<int>& buffers, store::Store& store,
                                  cl::Context::Programs& programs,
                                  std::optional<cl::FirstLaunch>* first_launch) {
  SharedKernel made;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (plan::is_lasting(plan, buffers[i])) made.addresses.push_back(static_cast<int>(i));
  }
  made.handle = addresses.create_kernel(std::move(source), entry, {}, store, programs, first_launch,
                                        made.addresses);
  return made;
}

void set_buffers(const Addresses& addresses, const SharedKernel& kernel, const plan::Plan& plan,
                 const std::vector<int>& buffers,
                 const std::function<cl::cl_mem(int buffer)>& memory, const std::string& what) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const cl::cl_mem object = memory(buffers[i]);
    if (object == nullptr) continue;
    const std::string which = "'" + plan.buffers[uz(buffers[i])].name + "' of " + what;
    addresses.set(kernel.handle, kernel.addresses, i, object, which);
  }
}

void check_work_group(const cl::Context& context, const cl::KernelHandle& kernel, std::size_t items,
                      const std::string& what) {
  const std::size_t most = context.max_work_group_size(kernel);
  if (most >= items) return;
  throw Error("the kernel of " + what + " allows work-groups of " + std::to_string(most) +
              " work-items; it needs " + std::to_string(items));
}

}  // namespace clgpu::runtime
