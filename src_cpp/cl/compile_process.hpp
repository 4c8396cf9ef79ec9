// A child process that builds programs before this process does, because compilers of some drivers
// end the process at some programs.
#pragma once

#include <string>

#include "cl/device.hpp"

namespace clgpu::cl {

/// The exit code of a child that leaves because it was not asked for long.
constexpr int kIdleCode = 10;

/// Whether this project has not tested the compiler of a device: Mesa's, and all but NVIDIA's,
/// Intel's for CPUs, PoCL and Oclgrind.
bool has_untested_compiler(const DeviceInfo& info);

/// The child is the program `clgpu_compile` in the folder of this library. It is started by
/// posix_spawn, since a process with threads may do nothing but exec after a fork. It opens the
/// same OpenCL library, and builds what it gets over a socket, one program after the other. It is
/// in a process group of its own, so a terminal's Ctrl-C does not end it. Not thread-safe.
class CompileProcess {
 public:
  enum class Outcome {
    kBuilt,    ///< or refused with an error, which this process will see, too
    kEnded,    ///< the child ended during the build
    kNoChild,  ///< nothing was tried: there is no such program here, or it finds no such device
  };
  struct Result {
    Outcome outcome = Outcome::kNoChild;
    std::string binary;  ///< kBuilt: of the program; empty if the driver gives none
    std::string why;     ///< kEnded: "by signal 9"; kNoChild: a reason
  };

  CompileProcess() = default;
  ~CompileProcess() { end(); }
  CompileProcess(const CompileProcess&) = delete;
  CompileProcess& operator=(const CompileProcess&) = delete;

  /// Builds a program of a source and creates the kernel `entry` in a child, which is started
  /// first if there is none. A child that is not asked for ten seconds leaves.
  Result build(const Device& device, const std::string& text, const std::string& options,
               const std::string& entry);
  /// Ends the child, if there is one, and waits for it. The next build starts another.
  void end();

 private:
  void start(const Device& device);
  Result ask(const std::string& text, const std::string& options, const std::string& entry);
  std::string wait();

  int socket_ = -1;
  int child_ = 0;     // its process id
  std::string none_;  // why no child could be started; empty: it was not tried, or it was started
};

}  // namespace clgpu::cl
