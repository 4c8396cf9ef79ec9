// Flushes a queue after as many launches as its driver should keep at most.
#pragma once

#include "cl/context.hpp"

namespace clgpu::cl {

/// See DeviceInfo::flush_every.
class Flusher {
 public:
  explicit Flusher(const Context& context) : context_(context) {}

  /// After each launch, or after a call that makes several. Throws OpenCLError.
  void launched(const QueueHandle& queue, int launches = 1) {
    const int most = context_.device().info.flush_every;
    launches_ += launches;
    if (most == 0 || launches_ < most) return;
    check(context_.api().clFlush(queue.get()), "clFlush", "after a launch");
    launches_ = 0;
  }

 private:
  const Context& context_;
  int launches_ = 0;  // since the last flush
};

}  // namespace clgpu::cl
