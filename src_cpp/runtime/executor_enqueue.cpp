// Inferences of an executor that are enqueued and not waited for.
#include "runtime/executor.hpp"

namespace clgpu::runtime {

cl::EventHandle Executor::enqueue(const std::vector<cl::cl_mem>& inputs,
                                  const std::vector<cl::cl_mem>& outputs, cl::cl_event ready) {
  const std::lock_guard<std::mutex> lock(busy_);
  const auto turn = take_turn();
  const cl::Api& api = context_->api();
  const auto copy = [&](const plan::Transfer& t, cl::cl_mem from, cl::cl_mem to) {
    cl::check(api.clEnqueueCopyBuffer(queue_.get(), from, to, 0, 0,
                                      static_cast<std::size_t>(t.bytes), 0, nullptr, nullptr),
              "clEnqueueCopyBuffer", plan_.buffers[static_cast<std::size_t>(t.buffer)].name);
  };
  cl::cl_event done = nullptr;
  try {
    cl::check(api.clEnqueueMarkerWithWaitList(queue_.get(), 1, &ready, nullptr),
              "clEnqueueMarkerWithWaitList", "the queue of launches");
    for (std::size_t i = 0; i < inputs.size(); ++i)
      copy(plan_.uploads[i], inputs[i], memory(plan_.uploads[i].buffer));
    launch_all();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      copy(plan_.downloads[i], memory(plan_.downloads[i].buffer), outputs[i]);
    cl::check(api.clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &done),
              "clEnqueueMarkerWithWaitList", "the queue of launches");
    // What another queue waits for has to be flushed.
    cl::check(api.clFlush(queue_.get()), "clFlush", "the queue of launches");
  } catch (...) {
    finish_all();
    if (done != nullptr) api.clReleaseEvent(done);
    throw;
  }
  arena_->leave_in_flight([this] { finish_all(); });
  return {api, done};
}

void Executor::finish_all() noexcept {
  if (mover_ != nullptr) mover_->finish();
  if (queue_) context_->api().clFinish(queue_.get());
}

}  // namespace clgpu::runtime
