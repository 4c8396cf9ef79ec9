// One OpenCL context per device and process, with the programs built in it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cl/device.hpp"
#include "cl/error.hpp"
#include "cl/handle.hpp"

namespace clgpu::cl {

/// What this thread has asked of OpenCL so far. Differences prove what an inference costs.
struct Counters {
  std::uint64_t objects_created = 0;  ///< buffers, programs, kernels, queues
  std::uint64_t programs_built = 0;   ///< compiled from source
  std::uint64_t launches = 0;
  std::uint64_t bytes_up = 0, bytes_down = 0;

  Counters operator-(const Counters& o) const {
    return {objects_created - o.objects_created, programs_built - o.programs_built,
            launches - o.launches, bytes_up - o.bytes_up, bytes_down - o.bytes_down};
  }
  void operator+=(const Counters& o) {
    objects_created += o.objects_created;
    programs_built += o.programs_built;
    launches += o.launches;
    bytes_up += o.bytes_up;
    bytes_down += o.bytes_down;
  }
};
Counters& counters();

/// Thread-safe. Lives as long as the process: programs stay built when the last delegate goes.
class Context {
 public:
  /// The context of a device, created at its first use.
  static std::shared_ptr<Context> of(const Device& device);

  explicit Context(const Device& device);

  const Device& device() const { return device_; }
  const Api& api() const { return *device_.api; }

  /// An in-order queue; with `profiling`, its events tell when they started and ended.
  QueueHandle create_queue(bool profiling = false);
  MemHandle create_buffer(std::size_t bytes, const std::string& what);
  /// A new kernel object (they hold arguments, so each launch has its own) of a program that is
  /// built on first use. Source and options identify the program; `file` is for messages. Throws
  /// BuildError.
  KernelHandle create_kernel(const std::string& file, const std::string& source,
                             const std::string& entry, const std::string& options);
  /// Largest work-group this kernel can be launched with.
  std::size_t max_work_group_size(const KernelHandle& kernel) const;

 private:
  cl_program program(const std::string& file, const std::string& source,
                     const std::string& options);

  const Device& device_;
  ContextHandle context_;
  std::mutex mutex_;
  std::map<std::string, ProgramHandle> programs_;  // by options + assembled source
};

}  // namespace clgpu::cl
