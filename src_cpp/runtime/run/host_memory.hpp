// Pinned host memory, for direct copies by the device or for work in place.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "cl/context.hpp"

namespace clgpu::runtime {

class HostPool;

/// A block of a HostPool; the last owner returns it to the pool.
class HostBlock {
 public:
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool is_pinned() const { return static_cast<bool>(object_); }

 private:
  friend class HostPool;
  struct AlignedDelete {
    void operator()(void* memory) const;
  };
  HostBlock* next_ = nullptr;                 // of those that are free
  cl::MemHandle object_;                      // pinned memory, mapped
  std::unique_ptr<void, AlignedDelete> own_;  // if there is none
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Reuses blocks of host memory, the last one returned first. Thread-safe; create it with
/// std::make_shared, so that blocks may outlive their users.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  /// Pinned memory. Without `pinned`, or if there is none, whole pages.
  HostPool(std::shared_ptr<cl::Context> context, bool pinned);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  std::shared_ptr<HostBlock> take(std::size_t bytes);

  /// The block in use that begins at this address and has these bytes; null if there is none.
  std::shared_ptr<HostBlock> find(const void* data, std::size_t bytes) const;

  /// Bytes of all blocks that have owners.
  std::size_t in_use() const;

 private:
  std::unique_ptr<HostBlock> make(std::size_t bytes);
  void put_back(HostBlock* block) noexcept;

  const std::shared_ptr<cl::Context> context_;
  const bool pinned_;
  const cl::QueueHandle queue_;  // maps and unmaps
  mutable std::mutex mutex_;
  // Lists of free blocks, by bytes. Returning a block must not fail, so the lists run through the
  // blocks and allocate nothing.
  std::map<std::size_t, HostBlock*> free_;
  std::map<const void*, std::weak_ptr<HostBlock>> used_;
  std::size_t in_use_ = 0;
};

}  // namespace clgpu::runtime
