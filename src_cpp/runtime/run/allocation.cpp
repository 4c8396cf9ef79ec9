#include "runtime/run/allocation.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/page.hpp"

namespace clgpu::runtime {
namespace {

struct Known {
  std::mutex mutex;
  std::map<const char*, std::shared_ptr<const Allocation>> all;  // by address
};

// Leaked on purpose: allocations may outlive static objects.
Known& known() {
  static auto* instance = new Known;
  return *instance;
}

}  // namespace

// Copies of a device that shares the host's memory need no pinned memory, and drivers do not make
// buffers over memory that is one of their own.
Allocation::Allocation(std::shared_ptr<cl::Context> context, std::size_t bytes)
    : context_(std::move(context)) {
  const DeviceInfo& device = context_->device().info;
  const std::size_t page = page_bytes();
  const std::size_t alignment = std::max(page, device.base_align_bytes);
  if (bytes == 0 || bytes > PTRDIFF_MAX - 2 * alignment) {
    throw Error(std::to_string(bytes) + " bytes cannot be allocated; allowed: 1 to " +
                std::to_string(PTRDIFF_MAX - 2 * alignment));
  }
  bytes_ = (bytes + page - 1) / page * page;
  const auto offset = [&] {
    return (alignment - reinterpret_cast<std::uintptr_t>(block_->data()) % alignment) % alignment;
  };
  const auto take = [&](std::size_t size) {
    block_ = std::make_shared<HostPool>(context_, !device.unified_memory)->take(size);
  };
  take(bytes_);
  if (offset() != 0) take(bytes_ + alignment);
  data_ = static_cast<char*>(block_->data()) + offset();
  std::memset(data_, 0, bytes_);
}

void* Allocation::allocate(const std::shared_ptr<cl::Context>& context, std::size_t bytes) {
  const std::shared_ptr<const Allocation> made(new Allocation(context, bytes));
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().all.emplace(made->data_, made);
  return made->data_;
}

bool Allocation::deallocate(const void* data) {
  std::shared_ptr<const Allocation> last;  // ends outside of the lock
  const std::lock_guard<std::mutex> lock(known().mutex);
  const auto found = known().all.find(static_cast<const char*>(data));
  if (found == known().all.end()) return false;
  last = std::move(found->second);
  known().all.erase(found);
  return true;
}

std::shared_ptr<const Allocation> Allocation::find(const cl::Context& context, const void* data,
                                                   std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(data);
  const std::lock_guard<std::mutex> lock(known().mutex);
  auto found = known().all.upper_bound(begin);
  if (found == known().all.begin()) return nullptr;
  const Allocation& one = *std::prev(found)->second;
  const auto before = static_cast<std::size_t>(begin - one.data_);
  const bool holds = before <= one.bytes_ && bytes <= one.bytes_ - before;
  return holds && one.context_.get() == &context ? std::prev(found)->second : nullptr;
}

}  // namespace clgpu::runtime
