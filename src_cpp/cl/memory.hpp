// Device memory, counted while it is allocated.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "cl/handle.hpp"

namespace clgpu::cl {

/// Bytes of the buffers of a device and process. Thread-safe.
class Usage {
 public:
  void add(std::uint64_t bytes);
  void drop(std::uint64_t bytes);
  std::uint64_t now() const;
  std::uint64_t peak() const;  ///< the most since the last reset
  void reset_peak();

 private:
  mutable std::mutex mutex_;
  std::uint64_t now_ = 0, peak_ = 0;
};

/// Owns a buffer, and counts its bytes. `usage` must outlive it.
class Memory {
 public:
  Memory() = default;
  Memory(MemHandle object, Usage& usage, std::uint64_t bytes)
      : object_(std::move(object)), usage_(&usage), bytes_(bytes) {
    usage.add(bytes);
  }
  Memory(Memory&& other) noexcept
      : object_(std::move(other.object_)),
        usage_(std::exchange(other.usage_, nullptr)),
        bytes_(other.bytes_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(usage_, other.usage_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (usage_ != nullptr) usage_->drop(bytes_);
  }

  cl_mem get() const { return object_.get(); }
  explicit operator bool() const { return static_cast<bool>(object_); }

 private:
  MemHandle object_;
  Usage* usage_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace clgpu::cl
