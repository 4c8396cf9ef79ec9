#include "runtime/host_memory.hpp"

#include <new>

#include "base/page.hpp"

namespace clgpu::runtime {

void HostBlock::AlignedDelete::operator()(void* memory) const {
  ::operator delete(memory, std::align_val_t{page_bytes()});
}

HostPool::HostPool(std::shared_ptr<cl::Context> context, bool pinned)
    : context_(std::move(context)), pinned_(pinned), queue_(context_->create_queue()) {}

HostPool::~HostPool() {
  const cl::Api& api = context_->api();
  for (const auto& [bytes, blocks] : free_) {
    for (const auto& block : blocks) {
      if (block->object_)
        api.clEnqueueUnmapMemObject(queue_.get(), block->object_.get(), block->data_, 0, nullptr,
                                    nullptr);
    }
  }
  api.clFinish(queue_.get());
}

std::shared_ptr<HostBlock> HostPool::take(std::size_t bytes) {
  std::unique_ptr<HostBlock> block;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& free = free_[bytes];
    if (!free.empty()) {
      block = std::move(free.back());
      free.pop_back();
    }
  }
  if (block == nullptr) block = make(bytes);
  // The pool lives until its last block is back.
  const std::shared_ptr<HostBlock> shared(block.release(),
                                          [pool = shared_from_this()](HostBlock* returned) {
                                            std::unique_ptr<HostBlock> owned(returned);
                                            const std::lock_guard<std::mutex> lock(pool->mutex_);
                                            pool->used_.erase(owned->data_);
                                            pool->in_use_ -= owned->bytes_;
                                            pool->free_[owned->bytes_].push_back(std::move(owned));
                                          });
  const std::lock_guard<std::mutex> lock(mutex_);
  used_[shared->data()] = shared;
  in_use_ += bytes;
  return shared;
}

std::size_t HostPool::in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_;
}

std::shared_ptr<HostBlock> HostPool::find(const void* data, std::size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto used = used_.find(data);
  if (used == used_.end()) return nullptr;
  std::shared_ptr<HostBlock> block = used->second.lock();
  return block != nullptr && block->bytes() == bytes ? block : nullptr;
}

std::unique_ptr<HostBlock> HostPool::make(std::size_t bytes) {
  auto block = std::make_unique<HostBlock>();
  block->bytes_ = bytes;
  const std::size_t size = bytes == 0 ? 1 : bytes;
  if (pinned_) block->object_ = context_->create_pinned(size);
  if (block->object_) {
    cl::cl_int code = cl::CL_SUCCESS;
    block->data_ = context_->api().clEnqueueMapBuffer(
        queue_.get(), block->object_.get(), cl::CL_TRUE, cl::CL_MAP_READ | cl::CL_MAP_WRITE, 0,
        size, 0, nullptr, nullptr, &code);
    if (code == cl::CL_SUCCESS) return block;
    block->object_ = {};
  }
  block->own_.reset(::operator new(size, std::align_val_t{page_bytes()}));
  block->data_ = block->own_.get();
  return block;
}

}  // namespace clgpu::runtime
