// The commands of an executor's last inferences, with times from the device.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl/handle.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// A command that each inference of a plan runs: a kernel launch, or the copy of a tensor.
struct Command {
  enum class Kind { kUpload, kLaunch, kSwapOut, kSwapIn, kDownload };
  Kind kind = Kind::kLaunch;
  int node = -1;  ///< of the model; of a swap, the one that waits for it; -1: none
  std::string op, family, candidate, kernel;  ///< of a launch
  std::string tensor;                         ///< of a copy
  std::int64_t bytes = 0;                     ///< of a copy
  std::array<std::size_t, 3> global{}, local{};
  bool tensor_cores = false;  ///< of a launch: as kernel::Candidate has it
};
const char* name_of(Command::Kind kind);

/// Nanoseconds of the host's steady clock.
struct Span {
  std::int64_t start = 0, end = 0;
};

struct CommandTimes {
  int command = 0;        ///< index into Recorder::commands()
  Span host;              ///< of the call that enqueued it, or of the host's own copy
  bool is_known = false;  ///< the device has reported the rest
  /// Nanoseconds, the device's clock mapped onto the host's steady clock.
  std::int64_t queued = 0, submitted = 0, start = 0, end = 0;
};

struct InferenceTimes {
  std::uint64_t number = 0;
  Span host;  ///< from the first command to the last result
  std::vector<CommandTimes> commands;
};

/// One inference. Between begin and end, one command is enqueued, with the event that begin gives.
class Recording {
 public:
  explicit Recording(const plan::Plan& plan);

  cl::cl_event* begin_upload(std::size_t i) { return begin(i); }
  cl::cl_event* begin_launch(std::size_t i) { return begin(uploads_ + i); }
  cl::cl_event* begin_move(std::size_t i) { return begin(uploads_ + launches_ + i); }
  cl::cl_event* begin_download(std::size_t i) { return begin(uploads_ + launches_ + moves_ + i); }
  void end(const cl::Api& api);
  /// The host has made the copy itself, without a command.
  void end_on_host();
  /// Of the moves, in their order.
  void adopt(std::vector<cl::EventHandle>& events);

 private:
  friend class Recorder;
  struct Entry {
    CommandTimes times;
    cl::EventHandle event;
  };

  cl::cl_event* begin(std::size_t command);
  void resolve(const cl::Api& api, std::string& problem);
  void map_clock();

  std::size_t uploads_, launches_, moves_;
  std::uint64_t number_ = 0;
  Span host_;
  std::vector<Entry> entries_;
  cl::cl_event event_ = nullptr;  // of the command being enqueued
};

/// Selects the inferences of a graph to record: the first ones after loading, or a requested
/// number, and a share of the others that hardly slows them down. A command with an event takes up
/// to 10 us more than one without on an H200, where kernels take 5 us; on CPUs some 0.5 us.
class Pace {
 public:
  static constexpr int kFirst = 8;

  /// Begins an inference.
  void next();
  /// So many inferences in a row, from the next one on.
  void ask(int in_a_row) { ahead_ = std::max(ahead_, in_a_row); }
  /// The time of a partition, and the cost of its events if it is recorded.
  void add(std::int64_t nanoseconds, std::size_t commands);

  std::uint64_t number() const { return number_; }
  bool is_recorded() const { return is_recorded_; }

 private:
  std::uint64_t number_ = 0, last_ = 0;  // counted from 1; the last one that is recorded
  int ahead_ = kFirst;
  bool is_recorded_ = false;
  std::int64_t taken_ = 0;  // by the inference under way
  std::size_t commands_ = 0;
};

/// Keeps the last inferences of one executor that are recorded, and may outlive it. Events are read
/// on request: an inference creates them, and releases those of the inference that it replaces.
class Recorder {
 public:
  static constexpr std::size_t kInferences = 32, kMostCommands = 1 << 15;

  /// The plan is read here, and by recordings until settle().
  Recorder(const cl::Api& api, const plan::Plan& plan);

  const std::vector<Command>& commands() const { return commands_; }

  // By the thread that runs the executor.
  /// The number of the next inference, and whether it is recorded.
  void set_next(std::uint64_t number, bool record) {
    number_ = number;
    is_due_ = record;
  }
  /// Begins an inference; null: it is not recorded. One that was not kept is forgotten.
  Recording* begin();
  void keep();
  void drop() { current_->entries_.clear(); }

  // Thread-safe.
  /// The inferences that are kept, oldest first, without the one under way.
  std::vector<InferenceTimes> times();
  /// Why times are unknown; empty if the driver has reported all.
  std::string problem() const;
  void clear();
  /// Requests the recording of this many inferences in a row; the pacer takes the request once.
  void ask(int in_a_row) { asked_ = in_a_row; }
  int take_asked() { return asked_.exchange(0); }
  /// Reads all events; to be called before their queues are released.
  void settle();

 private:
  const cl::Api& api_;
  const std::vector<Command> commands_;
  const std::size_t capacity_;
  std::uint64_t number_ = 0;
  bool is_due_ = true;
  std::unique_ptr<Recording> current_;
  std::atomic<int> asked_{0};
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Recording>> kept_, spare_;
  std::string problem_;
};

}  // namespace clgpu::runtime
