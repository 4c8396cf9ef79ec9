// Launches that the driver records once and then takes in one call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "cl/flusher.hpp"

namespace clgpu::runtime {

/// Whether an executor makes a command list of its launches.
enum class Listing { kNever, kIfFaster, kAlways };

/// What became of the command list of an executor.
struct ListTaken {
  std::string extension;  ///< that the driver has for it; empty if there is no list
  int launches = 0;       ///< of the plan, all of which it holds
  std::string reason;     ///< why there is none; empty if there is one, and with Listing::kNever
};

/// Kernels keep their arguments beside it: they can be launched as usual at any time. Not
/// thread-safe.
class CommandList {
 public:
  /// Of one launch; all must exist as long as the list.
  struct Launch {
    cl::cl_kernel kernel;
    const std::size_t *global, *local;  ///< of three axes
  };
  /// A buffer that is an argument of a launch.
  struct Argument {
    std::size_t launch;
    cl::cl_uint index;
    int buffer;  ///< of the plan
    cl::cl_mem object;
  };

  /// With the extension that the device has; null, and `problem` is set, if it has none. `queue`
  /// takes the launches and must outlive the list.
  static std::unique_ptr<CommandList> make(cl::Context& context, const cl::QueueHandle& queue,
                                           std::string& problem);
  virtual ~CommandList() = default;

  virtual const char* extension() const = 0;
  /// Whether start() can replace arguments; otherwise record() is needed where they change.
  virtual bool replaces_arguments() const = 0;
  /// Whether it may be started before it has ended.
  virtual bool may_overlap() const = 0;

  /// Records the launches with the current arguments of their kernels, and drops what was recorded
  /// before. If arguments can be replaced, those in `replaced` are not set in their kernels
  /// afterwards, and every start() gives them. Throws cl::OpenCLError; then nothing is recorded.
  virtual void record(const std::vector<Launch>& launches,
                      const std::vector<Argument>& replaced) = 0;
  virtual bool is_recorded() const = 0;
  /// Drops what was recorded, which must precede the release of any object that is an argument in
  /// it. It may be under way.
  virtual void forget() noexcept = 0;

  /// Enqueues what was recorded. Returns how many of the launches are enqueued: the first ones, and
  /// less than all only if `code` is set to that of an error. Throws cl::OpenCLError if
  /// flushing fails.
  virtual std::size_t start(const std::vector<Argument>& replaced, cl::Flusher& flusher,
                            cl::cl_int& code) = 0;
  /// The function that start() calls, for messages.
  virtual const char* start_call() const = 0;
};

}  // namespace clgpu::runtime
