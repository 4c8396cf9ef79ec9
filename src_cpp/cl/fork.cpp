#include "cl/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"

namespace clgpu::cl {
namespace {

std::atomic<bool> forked{false};

// OpenCL libraries wait at exit for commands in flight, and in a forked child that wait never ends.
// So exit() runs only the handlers that the child itself has registered, and skips those of the
// parent.
#if defined(__GLIBC__)
void leave(int status, void* /*unused*/) {
  std::fflush(nullptr);
  _exit(status);
}
#endif

void in_child() {
  forked.store(true, std::memory_order_relaxed);
#if defined(__GLIBC__)
  on_exit(leave, nullptr);
#endif
}

}  // namespace

void watch_forks() {
  // Without memory for it, children are not notified; nothing else is lost.
  static const int code = pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(code);
}

bool is_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

void refuse_forked_child() {
  if (!is_forked_child()) return;
  throw DeviceError(
      "this process was forked after OpenCL was used, and OpenCL does not work in a forked child; "
      "start processes by 'spawn' or 'forkserver' "
      "(multiprocessing.get_context('spawn')), or fork them before the first use of a device, "
      "which includes listing devices");
}

}  // namespace clgpu::cl
