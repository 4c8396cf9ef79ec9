// Inferences of an executor that it enqueues without waiting for them.
#include "base/index.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {
namespace {

std::size_t bytes_of(const plan::Transfer& t) { return static_cast<std::size_t>(t.bytes); }

}  // namespace

// `up` and `down` enqueue a transfer.
template <class Up, class Down>
cl::EventHandle Executor::enqueue_all(Up up, Down down) {
  const std::lock_guard<std::mutex> lock(busy_);
  const auto turn = take_turn();
  transfers_.lend({});  // the application's buffers belong to the runtime's inferences
  give_buffers();
  const cl::Api& api = context_->api();
  cl::cl_event done = nullptr;
  arena_->leave_in_flight([this] { finish_all(); });
  try {
    for (std::size_t i = 0; i < plan_.uploads.size(); ++i) up(plan_.uploads[i], i);
    if (has_flying_list()) {
      launch_listed(false);
    } else {
      launch_all();
    }
    const std::size_t count = plan_.downloads.size();
    CLGPU_CHECK(count > 0);
    // The queue is in order: the event of the last command covers all.
    for (std::size_t i = 0; i < count; ++i)
      down(plan_.downloads[i], i, i + 1 == count ? &done : nullptr);
    // Another queue can wait only for commands that were flushed.
    cl::check(api.clFlush(queue_.get()), "clFlush", "the queue of launches");
  } catch (...) {
    forget_kept();
    finish_all();
    if (done != nullptr) api.clReleaseEvent(done);
    throw;
  }
  return {api, done};
}

cl::EventHandle Executor::enqueue(const std::vector<cl::cl_mem>& inputs,
                                  const std::vector<cl::cl_mem>& outputs, cl::cl_event ready) {
  const auto copy = [&](const plan::Transfer& t, cl::cl_mem from, cl::cl_mem to, cl::cl_uint waits,
                        cl::cl_event* event) {
    cl::check(context_->api().clEnqueueCopyBuffer(queue_.get(), from, to, 0, 0, bytes_of(t), waits,
                                                  waits > 0 ? &ready : nullptr, event),
              "clEnqueueCopyBuffer", plan_.buffers[uz(t.buffer)].name);
  };
  return enqueue_all(
      [&](const plan::Transfer& t, std::size_t i) {
        copy(t, inputs[i], memory(t.buffer), i == 0 ? 1 : 0, nullptr);
      },
      [&](const plan::Transfer& t, std::size_t i, cl::cl_event* done) {
        copy(t, memory(t.buffer), outputs[i], 0, done);
      });
}

cl::EventHandle Executor::enqueue(const std::vector<const void*>& inputs,
                                  const std::vector<void*>& outputs) {
  const cl::Api& api = context_->api();
  return enqueue_all(
      [&](const plan::Transfer& t, std::size_t i) {
        cl::check(api.clEnqueueWriteBuffer(queue_.get(), memory(t.buffer), cl::CL_FALSE, 0,
                                           bytes_of(t), inputs[i], 0, nullptr, nullptr),
                  "clEnqueueWriteBuffer", plan_.buffers[uz(t.buffer)].name);
        cl::counters().bytes_up += bytes_of(t);
      },
      [&](const plan::Transfer& t, std::size_t i, cl::cl_event* done) {
        cl::check(api.clEnqueueReadBuffer(queue_.get(), memory(t.buffer), cl::CL_FALSE, 0,
                                          bytes_of(t), outputs[i], 0, nullptr, done),
                  "clEnqueueReadBuffer", plan_.buffers[uz(t.buffer)].name);
        cl::counters().bytes_down += bytes_of(t);
      });
}

void Executor::settle() noexcept {
  const std::lock_guard<std::mutex> lock(busy_);
  finish_all();
}

void Executor::finish_all() noexcept {
  if (mover_ != nullptr) mover_->finish();
  if (queue_) context_->api().clFinish(queue_.get());
}

}  // namespace clgpu::runtime
