// Copies within host memory, by several threads where that pays.
#pragma once

#include <cstddef>
#include <functional>

namespace clgpu::runtime {

/// Calls `work(first, last)` for parts of [0, items) at once, in threads of about `grain` items or
/// more; all in the caller's where one is enough. `work` must not throw.
void in_parts(std::size_t items, std::size_t grain,
              const std::function<void(std::size_t first, std::size_t last)>& work);

/// As std::memcpy. One thread moves 10 GB/s on a server, a quarter of what its bus takes.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace clgpu::runtime
