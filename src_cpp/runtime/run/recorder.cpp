#include "runtime/run/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "base/index.hpp"
#include "cl/error.hpp"

namespace clgpu::runtime {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Command copy(Command::Kind kind, const plan::Plan& plan, int buffer, std::int64_t bytes) {
  Command command;
  command.kind = kind;
  command.tensor = plan.buffers[uz(buffer)].name;
  command.bytes = bytes;
  return command;
}

// In the order in which Recording numbers them.
std::vector<Command> commands_of(const plan::Plan& plan) {
  std::vector<Command> commands;
  for (const plan::Transfer& t : plan.uploads)
    commands.push_back(copy(Command::Kind::kUpload, plan, t.buffer, t.bytes));
  for (const plan::Step& step : plan.run) {
    const kernel::Launch& launch = step.launch;
    commands.push_back({Command::Kind::kLaunch, step.node, step.op, step.family, step.candidate,
                        launch.entry, "", 0, launch.global, launch.local, step.tensor_cores});
  }
  for (const plan::Move& move : plan.moves) {
    const bool out = move.kind == plan::Move::Kind::kOut;
    commands.push_back(copy(out ? Command::Kind::kSwapOut : Command::Kind::kSwapIn, plan,
                            move.buffer, move.bytes));
    const auto finish = static_cast<std::size_t>(move.finish);
    if (finish < plan.run.size()) commands.back().node = plan.run[finish].node;
  }
  for (const plan::Transfer& t : plan.downloads)
    commands.push_back(copy(Command::Kind::kDownload, plan, t.buffer, t.bytes));
  return commands;
}

// False if the driver has no such time stamp.
bool stamp(const cl::Api& api, const cl::EventHandle& event, cl::cl_uint which,
           std::int64_t& nanoseconds, std::string& problem) {
  cl::cl_ulong value = 0;
  const cl::cl_int code =
      api.clGetEventProfilingInfo(event.get(), which, sizeof value, &value, nullptr);
  nanoseconds = static_cast<std::int64_t>(value);
  if (code != cl::CL_SUCCESS)
    problem = "the driver does not report the times of commands: clGetEventProfilingInfo: " +
              cl::error_name(code);
  return code == cl::CL_SUCCESS;
}

}  // namespace

const char* name_of(Command::Kind kind) {
  static const char* const kNames[] = {"upload", "launch", "swap_out", "swap_in", "download"};
  return kNames[static_cast<int>(kind)];
}

Recording::Recording(const plan::Plan& plan)
    : uploads_(plan.uploads.size()), launches_(plan.run.size()), moves_(plan.moves.size()) {
  entries_.reserve(uploads_ + launches_ + moves_ + plan.downloads.size());
}

cl::cl_event* Recording::begin(std::size_t command) {
  entries_.emplace_back();
  CommandTimes& times = entries_.back().times;
  times.command = static_cast<int>(command);
  times.host.start = now();
  event_ = nullptr;
  return &event_;
}

void Recording::end(const cl::Api& api) {
  Entry& entry = entries_.back();
  entry.times.host.end = now();
  entry.event = cl::EventHandle(api, event_);
}

void Recording::end_on_host() {
  CommandTimes& times = entries_.back().times;
  times.host.end = now();
  times.is_known = true;
  times.queued = times.submitted = times.start = times.host.start;
  times.end = times.host.end;
}

void Recording::adopt(std::vector<cl::EventHandle>& events) {
  const auto first = static_cast<int>(uploads_ + launches_);
  for (Entry& entry : entries_) {
    const int move = entry.times.command - first;
    if (move >= 0 && move < static_cast<int>(events.size()))
      entry.event = std::move(events[uz(move)]);
  }
}

void Recording::resolve(const cl::Api& api, std::string& problem) {
  bool any = false;
  for (Entry& entry : entries_) {
    if (!entry.event) continue;
    CommandTimes& t = entry.times;
    t.is_known = stamp(api, entry.event, cl::CL_PROFILING_COMMAND_QUEUED, t.queued, problem) &&
                 stamp(api, entry.event, cl::CL_PROFILING_COMMAND_SUBMIT, t.submitted, problem) &&
                 stamp(api, entry.event, cl::CL_PROFILING_COMMAND_START, t.start, problem) &&
                 stamp(api, entry.event, cl::CL_PROFILING_COMMAND_END, t.end, problem);
    any = any || t.is_known;
  }
  if (any) map_clock();
  for (Entry& entry : entries_) entry.event = {};
}

// The driver stamps a command as queued during the call that enqueues it, no command starts before
// its call, and all have ended when the inference has. These bounds fix the offset between the
// device's clock and the host's to less than a microsecond, without a query of the clocks.
void Recording::map_clock() {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();  // an effect cannot precede
  std::int64_t most = std::numeric_limits<std::int64_t>::max();   // its cause
  std::int64_t queued_least = least, queued_most = most;
  for (const Entry& entry : entries_) {
    const CommandTimes& t = entry.times;
    if (!entry.event || !t.is_known) continue;
    least = std::max(least, t.end - host_.end);
    most = std::min(most, t.start - t.host.start);
    queued_least = std::max(queued_least, t.queued - t.host.end);
    queued_most = std::min(queued_most, t.queued - t.host.start);
  }
  const std::int64_t low = std::max(least, queued_least), high = std::min(most, queued_most);
  // If the stamps of queueing contradict the rest, they mean something else in this driver.
  const std::int64_t ahead = low <= high ? low + (high - low) / 2 : least + (most - least) / 2;
  for (Entry& entry : entries_) {
    CommandTimes& t = entry.times;
    if (!entry.event || !t.is_known) continue;
    for (std::int64_t* moment : {&t.queued, &t.submitted, &t.start, &t.end}) *moment -= ahead;
    // Within a driver, the stamps of host and device may come from different clocks.
    t.end = std::max(t.end, t.start);
    t.submitted = std::min(t.submitted, t.start);
    t.queued = std::min(t.queued, t.submitted);
  }
}

void Pace::next() {
  constexpr double kShare = 0.025, kCommand = 10e3;  // share of all time; nanoseconds
  // An inference that was not recorded tells how long one takes.
  const double earned = kShare * static_cast<double>(taken_) * static_cast<double>(number_ - last_);
  is_recorded_ =
      ahead_ > 0 || (!is_recorded_ && earned >= kCommand * static_cast<double>(commands_));
  ahead_ -= ahead_ > 0 ? 1 : 0;
  ++number_;
  if (is_recorded_) last_ = number_;
  taken_ = 0;
  commands_ = 0;
}

void Pace::add(std::int64_t nanoseconds, std::size_t commands) {
  taken_ += nanoseconds;
  commands_ += commands;
}

Recorder::Recorder(const cl::Api& api, const plan::Plan& plan)
    : api_(api),
      commands_(commands_of(plan)),
      capacity_(std::clamp<std::size_t>(kMostCommands / std::max<std::size_t>(commands_.size(), 1),
                                        1, kInferences)) {
  // One more than is kept, for the inference in progress.
  for (std::size_t i = 0; i <= capacity_; ++i) spare_.push_back(std::make_unique<Recording>(plan));
  kept_.reserve(capacity_ + 1);  // keep() must not fail, so it allocates nothing
}

Recording* Recorder::begin() {
  if (!is_due_) return nullptr;
  if (current_ == nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = std::move(spare_.back());
    spare_.pop_back();
  }
  current_->entries_.clear();
  current_->number_ = number_;
  current_->host_.start = now();
  return current_.get();
}

void Recorder::keep() {
  current_->host_.end = now();
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(std::move(current_));
  if (kept_.size() <= capacity_) return;
  kept_.front()->entries_.clear();
  spare_.push_back(std::move(kept_.front()));
  kept_.erase(kept_.begin());
}

std::vector<InferenceTimes> Recorder::times() {
  settle();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<InferenceTimes> result;
  for (const auto& recording : kept_) {
    InferenceTimes inference{recording->number_, recording->host_, {}};
    for (const Recording::Entry& entry : recording->entries_)
      inference.commands.push_back(entry.times);
    result.push_back(std::move(inference));
  }
  return result;
}

std::string Recorder::problem() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return problem_;
}

void Recorder::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& recording : kept_) recording->entries_.clear();
  std::move(kept_.begin(), kept_.end(), std::back_inserter(spare_));
  kept_.clear();
}

void Recorder::settle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& recording : kept_) recording->resolve(api_, problem_);
}

}  // namespace clgpu::runtime
