// Processes that are forked after OpenCL was used.
#pragma once

namespace clgpu::cl {

/// Marks children that are forked from now on; exit() in them does not run handlers that the parent
/// has registered. To be called before the first use of a library.
void watch_forks();

/// Whether this process was forked from one that had used OpenCL. Drivers use
/// threads, which a fork does not copy, and a mutex that another thread held stays locked: a call
/// of a driver, or of one of our mutexes, may never return there. Costs one load.
bool is_forked_child() noexcept;

/// In such a child, throws a DeviceError that says what to do instead.
void refuse_forked_child();

}  // namespace clgpu::cl
