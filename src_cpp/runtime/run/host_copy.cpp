#include "runtime/run/host_copy.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

namespace clgpu::runtime {
namespace {

// More threads do not make memory faster. Starting a thread takes tens of microseconds, in which
// another copies half a megabyte.
constexpr std::size_t kMostThreads = 8, kGrainBytes = std::size_t{1} << 21;

std::size_t threads_for(std::size_t parts) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::min({parts, kMostThreads, (cores + 1) / 2});
}

}  // namespace

void in_parts(std::size_t items, std::size_t grain,
              const std::function<void(std::size_t, std::size_t)>& work) {
  const std::size_t count = std::max<std::size_t>(threads_for(items / grain), 1);
  const std::size_t part = (items / count + 63) / 64 * 64;  // whole cache lines
  std::vector<std::thread> threads;
  threads.reserve(count);
  std::size_t first = 0;
  for (std::size_t i = 1; i < count; ++i, first += part) {
    try {
      threads.emplace_back(std::cref(work), first, first + part);
    } catch (const std::exception&) {
      break;  // no thread, or no memory for one: this thread does the rest
    }
  }
  work(first, items);
  for (std::thread& thread : threads) thread.join();
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  in_parts(bytes, kGrainBytes, [&](std::size_t first, std::size_t last) {
    std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                last - first);
  });
}

}  // namespace clgpu::runtime
