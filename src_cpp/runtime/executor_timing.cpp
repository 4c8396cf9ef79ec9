// How long an executor's launches take on the device.
#include <algorithm>
#include <chrono>

#include "runtime/executor.hpp"

namespace clgpu::runtime {

double Executor::device_time(int runs, int node) {
  const std::lock_guard<std::mutex> lock(busy_);
  std::vector<const BoundLaunch*> timed;
  for (const BoundLaunch& bound : launches_) {
    if (node < 0 || bound.step->node == node) timed.push_back(&bound);
  }
  if (timed.empty()) return 0;
  finish("device_time");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) {
    for (const BoundLaunch* bound : timed) launch(*bound);
  }
  finish("device_time");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / runs;
}

std::vector<double> Executor::launch_times(int rounds) {
  const std::lock_guard<std::mutex> lock(busy_);
  finish("launch_times");
  const cl::Api& api = context_->api();
  const cl::QueueHandle queue = context_->create_queue(true);
  std::vector<std::vector<double>> seconds(launches_.size());
  for (int round = 0; round < rounds; ++round) {
    std::vector<cl::EventHandle> events;
    events.reserve(launches_.size());
    for (const BoundLaunch& bound : launches_) {
      cl::cl_event event = nullptr;
      launch(bound, queue, &event);
      events.emplace_back(api, event);
    }
    cl::check(api.clFinish(queue.get()), "clFinish", "launch_times");
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto moment = [&](cl::cl_uint which) {
        cl::cl_ulong nanoseconds = 0;
        cl::check(api.clGetEventProfilingInfo(events[i].get(), which, sizeof nanoseconds,
                                              &nanoseconds, nullptr),
                  "clGetEventProfilingInfo", launches_[i].step->launch.entry);
        return nanoseconds;
      };
      const cl::cl_ulong start = moment(cl::CL_PROFILING_COMMAND_START);
      seconds[i].push_back(static_cast<double>(moment(cl::CL_PROFILING_COMMAND_END) - start) *
                           1e-9);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& values : seconds) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace clgpu::runtime
