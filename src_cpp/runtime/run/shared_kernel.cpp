#include "runtime/run/shared_kernel.hpp"

#include "base/index.hpp"

namespace clgpu::runtime {

void set_buffers(const cl::Context& context, const cl::KernelHandle& kernel, const plan::Plan& plan,
                 const std::vector<int>& buffers,
                 const std::function<cl::cl_mem(int buffer)>& memory, const std::string& what) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const cl::cl_mem object = memory(buffers[i]);
    if (object == nullptr) continue;
    cl::check(context.api().clSetKernelArg(kernel.get(), static_cast<cl::cl_uint>(i), sizeof object,
                                           &object),
              "clSetKernelArg", "'" + plan.buffers[uz(buffers[i])].name + "' of " + what);
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
