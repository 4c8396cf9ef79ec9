#include "cl/memory.hpp"

#include <algorithm>

namespace clgpu::cl {

void Usage::add(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ += bytes;
  peak_ = std::max(peak_, now_);
}

void Usage::drop(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ -= bytes;
}

std::uint64_t Usage::now() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

std::uint64_t Usage::peak() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_;
}

void Usage::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  peak_ = now_;
}

}  // namespace clgpu::cl
