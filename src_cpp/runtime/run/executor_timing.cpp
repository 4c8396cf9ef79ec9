// Measures how long an executor's launches take on the device.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/finally.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {
namespace {

constexpr double kSlice = 1e-3;  // seconds of a measurement
// Share of the time with a chain below which its launches are faster.
constexpr double kLess = 0.985;
constexpr int kRounds = 5, kTrials = 3;
// Further attempts, and the pause before each: another process on the device slows chains down
// more than launches, which leave it idle in between.
constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kPause{15};

}  // namespace

double Executor::seconds_of(int runs, const std::function<void()>& enqueue) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) enqueue();
  finish("the time of launches");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / runs;
}

double Executor::launches_seconds() {
  const auto launches = [this] { launch_all(); };
  double least = seconds_of(1, launches);
  for (int i = 1; i < kTrials; ++i) least = std::min(least, seconds_of(1, launches));
  const double pretended = pretended_seconds().launch * static_cast<double>(launches_.size());
  return pretended > 0 ? pretended : least;
}

// The least time of several is the one without disturbance.
std::optional<bool> Executor::is_faster(double share, const std::function<void()>& launches,
                                        const std::function<void()>& other,
                                        const std::function<void()>& check) {
  double usual = seconds_of(1, launches), others = 1e9;
  for (int i = 1; i < kTrials; ++i) usual = std::min(usual, seconds_of(1, launches));
  if (usual > kWorthwhile) return std::nullopt;
  const int runs = std::clamp(static_cast<int>(kSlice / usual), 1, 50);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    for (int round = 0; round < kRounds; ++round) {
      usual = std::min(usual, seconds_of(runs, launches));
      others = std::min(others, seconds_of(runs, other));
      check();
    }
    if (others < share * usual) return true;
  }
  return false;
}

// Others on the device slow chains down more than launches, so each attempt must show it.
bool Executor::is_slower_with(int chain) {
  double with = 1e9, without = 1e9;
  int runs = 1;
  const auto time = [&](bool chained) {
    if (!chained) as_launches_.insert(chain);
    const double seconds = seconds_of(runs, [this] { launch_chained(); });
    as_launches_.erase(chain);
    return seconds;
  };
  runs = std::clamp(static_cast<int>(kSlice / std::max(time(true), 1e-6)), 1, 50);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    for (int round = 0; round < kRounds; ++round) {
      with = std::min(with, time(true));
      without = std::min(without, time(false));
      if (!chains_->finished()) return false;
    }
    if (without >= kLess * with) return false;
  }
  return true;
}

void Executor::store_verdict(const std::string& key, const std::string& label,
                             const std::string& verdict, bool is_reversible) {
  const std::string once = verdict + " once";
  const auto known = store_->get(store::kTuning, key);
  const bool is_final = !is_reversible || (known && (*known == once || *known == verdict));
  const std::string& row = is_final ? verdict : once;
  store_->put(store::kTuning, key, row, label + ": " + row);
}

double Executor::device_time(int runs, int node) {
  const std::lock_guard<std::mutex> lock(busy_);
  std::vector<const BoundLaunch*> timed;
  for (const BoundLaunch& bound : launches_) {
    if (node < 0 || bound.step->node == node) timed.push_back(&bound);
  }
  if (timed.empty()) return 0;
  const auto turn = take_turn();
  double seconds = 0;
  without_traces([&] { seconds = time_of(runs, node, timed); });
  return seconds;
}

double Executor::time_of(int runs, int node, const std::vector<const BoundLaunch*>& timed) {
  const Finally drain([this] { finish_all(); });
  transfers_.stand_in();
  give_buffers();
  // Of inferences whose inputs have changed: the launches of one node find what a whole one leaves.
  if (plan_.reuse.state >= 0 && node >= 0) {
    forget_kept();
    launch_all();
  }
  finish("device_time");
  const bool chained = chains_ != nullptr && node < 0;
  steady_ = true;
  const bool listed = node < 0 && has_list();
  const auto alone = chained ? context_->whole_device() : std::unique_lock<std::mutex>();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) {
    forget_kept();
    if (chained) {
      launch_chained();
    } else if (listed && list_ != nullptr) {
      launch_listed(!list_->may_overlap());
    } else if (node < 0) {
      launch_all();
    } else {
      for (const BoundLaunch* bound : timed) launch(*bound);
    }
  }
  finish("device_time");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (chained && !chains_->finished()) {
    leave_chains(ChainVerdict::kWaited);
    throw DeviceError(taken_.reason + "; measure again");
  }
  return elapsed.count() / runs;
}

Executor::Times Executor::launch_times(int rounds) {
  const std::lock_guard<std::mutex> lock(busy_);
  const auto turn = take_turn();
  Times times;
  without_traces([&] { times = times_of(rounds); });
  return times;
}

Executor::Times Executor::times_of(int rounds) {
  transfers_.stand_in();
  give_buffers();
  finish("launch_times");
  const cl::Api& api = context_->api();
  const cl::QueueHandle queue = context_->create_queue(true);
  const cl::QueueHandle moves =
      mover_ != nullptr ? context_->create_queue(true) : cl::QueueHandle{};
  const Finally drain([&] {
    for (const cl::QueueHandle* each : {&moves, &queue}) {
      if (*each) api.clFinish(each->get());
    }
  });
  std::vector<std::vector<double>> seconds(launches_.size()), moving(plan_.moves.size());
  const auto duration = [&](const cl::EventHandle& event, const std::string& what) {
    const auto moment = [&](cl::cl_uint which) {
      cl::cl_ulong nanoseconds = 0;
      cl::check(api.clGetEventProfilingInfo(event.get(), which, sizeof nanoseconds, &nanoseconds,
                                            nullptr),
                "clGetEventProfilingInfo", what);
      return nanoseconds;
    };
    const cl::cl_ulong start = moment(cl::CL_PROFILING_COMMAND_START);
    return static_cast<double>(moment(cl::CL_PROFILING_COMMAND_END) - start) * 1e-9;
  };
  for (int round = 0; round < rounds; ++round) {
    forget_kept();
    remind();
    std::vector<cl::EventHandle> events;
    events.reserve(launches_.size());
    for (const BoundLaunch& bound : launches_) {
      if (mover_ != nullptr) mover_->before(static_cast<int>(events.size()), queue, moves);
      cl::cl_event event = nullptr;
      launch(bound, queue, &event);
      events.emplace_back(api, event);
    }
    if (mover_ != nullptr) mover_->before(static_cast<int>(events.size()), queue, moves);
    cl::check(api.clFinish(queue.get()), "clFinish", "launch_times");
    for (std::size_t i = 0; i < events.size(); ++i)
      seconds[i].push_back(duration(events[i], launches_[i].step->launch.entry));
    for (std::size_t i = 0; i < moving.size(); ++i)
      moving[i].push_back(duration(mover_->events()[i], "a move"));
  }
  if (mover_ != nullptr) mover_->release_events();
  const auto medians = [](std::vector<std::vector<double>>& series) {
    std::vector<double> result;
    for (std::vector<double>& values : series) {
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      result.push_back(*middle);
    }
    return result;
  };
  return {medians(seconds), medians(moving)};
}

}  // namespace clgpu::runtime
