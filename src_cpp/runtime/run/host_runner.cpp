#include "runtime/run/host_runner.hpp"

#include <cstdint>
#include <utility>

#include "base/index.hpp"

namespace clgpu::runtime {

HostRunner::HostRunner(std::shared_ptr<cl::Context> context, ir::Runs runs,
                       std::shared_ptr<CarriedSet> carried,
                       std::vector<std::shared_ptr<Executor>> graphs)
    : context_(std::move(context)),
      runs_(runs),
      carried_(std::move(carried)),
      graphs_(std::move(graphs)) {
  CLGPU_CHECK(graphs_.size() == 2);
}

void HostRunner::copy(const cl::QueueHandle& queue, cl::cl_mem from, cl::cl_mem to, int number) {
  const plan::CarriedForm& form = *carried_->form(number);
  cl::check(context_->api().clEnqueueCopyBuffer(queue.get(), from, to, 0, 0, form.bytes(), 0,
                                                nullptr, nullptr),
            "clEnqueueCopyBuffer", carried_->name(number));
}

// Graphs read only some of the inputs.
void HostRunner::take(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& inputs,
                      std::size_t first) {
  for (std::size_t i = first; i < inputs.size(); ++i) {
    const int number = static_cast<int>(i - first);
    if (carried_->form(number) == nullptr) continue;
    copy(queue, inputs[i], carried_->memory(number), number);
    carried_->touch({number});
  }
  finish(queue);  // the graphs have queues of their own
}

void HostRunner::give(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& outputs,
                      int first) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const int number = static_cast<int>(i) + first;
    copy(queue, carried_->memory(number), outputs[i], number);
  }
  finish(queue);  // the next inference, or another thread, may change the states
}

void HostRunner::finish(const cl::QueueHandle& queue) {
  cl::check(context_->api().clFinish(queue.get()), "clFinish", "graphs of a node");
}

bool HostRunner::more(Executor& graph) {
  graph.run({}, {&flag_});
  return flag_ != 0;
}

void HostRunner::run(const cl::QueueHandle& queue, const std::vector<cl::cl_mem>& inputs,
                     const std::vector<cl::cl_mem>& outputs) {
  if (runs_ == ir::Runs::kLoop) {
    take(queue, inputs, 0);
    for (bool again = more(*graphs_[0]); again; again = more(*graphs_[1])) {
    }
    return give(queue, outputs, 0);
  }
  std::uint8_t condition = 0;
  cl::check(context_->api().clEnqueueReadBuffer(queue.get(), inputs.at(0), cl::CL_TRUE, 0,
                                                sizeof condition, &condition, 0, nullptr, nullptr),
            "clEnqueueReadBuffer", "the condition of a branch");
  take(queue, inputs, 1);
  graphs_[condition != 0 ? 0 : 1]->run({}, {});
  give(queue, outputs, static_cast<int>(inputs.size()) - 1);
}

}  // namespace clgpu::runtime
