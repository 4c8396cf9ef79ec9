// Processes that are forked after OpenCL was used.
#pragma once

namespace clgpu::cl {

/// From now on children that are forked know it, and exit() in them does not run what the parent
/// has registered for it. Called before a library is first asked.
void watch_forks();

/// Whether this process was forked from one that had used OpenCL. Drivers compute and wait by
/// threads, which a fork does not copy, and a mutex that another thread held stays locked: whoever
/// calls a driver there, or waits for one of our mutexes, may wait for ever. Costs a load.
bool is_forked_child() noexcept;

/// Throws DeviceError, with what to do instead, in such a child.
void refuse_forked_child();

}  // namespace clgpu::cl
