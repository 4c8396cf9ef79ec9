// Launches of an executor that its driver takes as a command list.
#include "base/finally.hpp"
#include "base/index.hpp"
#include "base/sha256.hpp"
#include "runtime/run/executor.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kFaster = "faster";
constexpr const char* kSlower = "slower";
constexpr const char* kSlowerReason = "the launches are faster one by one";
constexpr double kShare = 0.97;  // of the launches' time, which a list must be below: less is noise

}  // namespace

ListTaken Executor::command_list() const {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  return list_taken_;
}

void Executor::take_list(const ListTaken& taken) {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  list_taken_ = taken;
}

void Executor::forget_list() noexcept {
  const std::lock_guard<std::mutex> lock(list_mutex_);
  if (list_ != nullptr) list_->forget();
}

void Executor::leave_list(const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(list_mutex_);
    list_.reset();
  }
  list_attempt_.reset();
  take_list({"", 0, reason});
}

// What the time of launches depends on.
std::string Executor::list_key() const {
  Sha256 digest;
  digest.update(context_->identity()).update("command list\n").update(list_->extension());
  for (const auto& [key, program] : programs_) digest.update(key);
  for (const plan::Step& step : plan_.run) {
    const kernel::Launch& launch = step.launch;
    digest.update("\n" + launch.file + ":" + launch.entry + " " + build_options(launch));
    for (const auto* sizes : {&launch.global, &launch.local}) {
      for (const std::size_t size : *sizes) digest.update(" " + std::to_string(size));
    }
  }
  return hex(digest.digest());
}

// The buffers that other objects may replace between inferences. An image over one of them cannot
// be replaced; then the list must be recorded again.
void Executor::find_replaced() {
  if (!list_->replaces_arguments()) return;
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const plan::Step& step = *launches_[i].step;
    std::size_t next = 0;
    for (std::size_t index = 0; index < step.launch.args.size(); ++index) {
      const auto* operand = std::get_if<kernel::Operand>(&step.launch.args[index]);
      if (operand == nullptr) continue;
      const int buffer = step.buffers[next++];
      if (!transfers_.may_replace(buffer)) continue;
      if (operand->image) {
        replaced_.clear();
        return;
      }
      replaced_.push_back({i, static_cast<cl::cl_uint>(index), buffer, nullptr});
    }
  }
  list_replaces_ = true;
}

// A failure leaves the executor with its launches.
void Executor::make_list(Listing listing, bool may_run) {
  if (mover_ != nullptr) return take_list({"", 0, "tensors move between device and host"});
  if (!runners_.empty()) return take_list({"", 0, "the host decides what a node runs"});
  if (chains_ != nullptr) return take_list({"", 0, "launches run as stages of chains"});
  if (launches_.size() < 2) return take_list({"", 0, "there are fewer than two launches"});
  const bool measured = listing == Listing::kIfFaster;
  try {
    std::string problem;
    list_ = CommandList::make(*context_, queue_, problem);
    if (list_ == nullptr) return take_list({"", 0, problem});
    const std::string key = list_key();
    const std::string stored = measured ? store_->get(store::kTuning, key).value_or("") : kFaster;
    const bool measures = stored != kFaster;
    if (stored == kSlower) return leave_list(kSlowerReason);
    if (measures && !may_run)
      return leave_list("nothing is measured with the option 'warm_up' off");
    find_replaced();
    if (may_run) {
      const Finally drain([this] {
        finish_all();
        transfers_.forget();
      });
      transfers_.stand_in();
      give_buffers();
      record_list();
      launch_listed(true);
      if (measures && list_ != nullptr) measure_list(key);
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    finish_all();
    return leave_list(error.what());
  }
  if (list_ != nullptr) take_list({list_->extension(), static_cast<int>(launches_.size()), ""});
}

void Executor::measure_list(const std::string& key) {
  const bool waits = !list_->may_overlap();
  const std::optional<bool> faster = is_faster(
      kShare,
      [&] {
        launch_all();
        if (waits) finish("the time of launches");
      },
      [&] {
        if (list_ != nullptr) launch_listed(waits);
      },
      [&] {
        if (list_ == nullptr) throw Error(list_taken_.reason);
      });
  if (!faster) return leave_list("an inference takes so long that launches cost nothing");
  if (!*faster) leave_list(kSlowerReason);
  store_verdict(key, "the command list of launches", *faster ? kFaster : kSlower, !*faster);
}

// Arguments that are replaced are not set in their kernels while these are recorded. The first list
// that a driver runs is an attempt, like the first launch of a kernel.
void Executor::record_list() {
  std::vector<CommandList::Launch> launches;
  for (const BoundLaunch& bound : launches_) {
    const kernel::Launch& launch = bound.step->launch;
    launches.push_back({bound.kernel.get(), launch.global.data(), launch.local.data()});
  }
  if (!list_tried_) {
    Sha256 digest;
    digest.update(context_->identity()).update("the first command list\n");
    const std::string key = hex(digest.update(list_->extension()).digest());
    const std::string what = std::string("the first command list by ") + list_->extension() +
                             " on " + context_->device().info.name;
    list_attempt_.emplace(*store_, store::Risk{key, key, what});
  }
  if (list_replaces_) stale_ = true;
  list_->record(launches, replaced_);
  give_buffers();
}

// Whether the inference that begins can use it. Recording takes as long as launches: where the
// arguments change again and again, they are launched one by one.
bool Executor::has_list() {
  if (list_ == nullptr || list_->is_recorded()) return list_ != nullptr;
  if (!steady_) return false;
  try {
    record_list();
    return true;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    leave_list(error.what());
  }
  give_buffers();
  return false;
}

// Releasing a recording of Adreno's driver may not wait until it has ended.
bool Executor::has_flying_list() {
  return list_ != nullptr && list_->may_overlap() &&
         (list_replaces_ || !list_->replaces_arguments()) && has_list();
}

// If the driver refuses the list, or the rest of it, that is launched as usual.
void Executor::launch_listed(bool waits) {
  remind();
  for (CommandList::Argument& argument : replaced_) argument.object = memory(argument.buffer);
  cl::cl_int code = cl::CL_SUCCESS;
  const std::size_t started = list_->start(replaced_, flusher_, code);
  if (code != cl::CL_SUCCESS) {
    const cl::OpenCLError error(list_->start_call(), code, "the command list");
    finish("the command list");  // before it is released
    leave_list(error.what());
    for (std::size_t i = started; i < launches_.size(); ++i) launch(launches_[i]);
  }
  if (waits || list_attempt_) finish("the command list");
  if (list_attempt_) list_tried_ = true;
  list_attempt_.reset();
}

}  // namespace clgpu::runtime
