#include "runtime/run/host_memory.hpp"

#include <new>
#include <utility>

#include "base/page.hpp"

namespace clgpu::runtime {

void HostBlock::AlignedDelete::operator()(void* memory) const {
  ::operator delete(memory, std::align_val_t{page_bytes()});
}

HostPool::HostPool(std::shared_ptr<cl::Context> context, bool pinned)
    : context_(std::move(context)), pinned_(pinned), queue_(context_->create_queue()) {}

HostPool::~HostPool() {
  const cl::Api& api = context_->api();
  for (const auto& [bytes, first] : free_) {
    for (const HostBlock* block = first; block != nullptr; block = block->next_) {
      if (block->object_)
        api.clEnqueueUnmapMemObject(queue_.get(), block->object_.get(), block->data_, 0, nullptr,
                                    nullptr);
    }
  }
  api.clFinish(queue_.get());
  for (const auto& [bytes, first] : free_) {
    for (HostBlock* next = first; next != nullptr;) delete std::exchange(next, next->next_);
  }
}

std::shared_ptr<HostBlock> HostPool::take(std::size_t bytes) {
  std::unique_ptr<HostBlock> block;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    HostBlock*& free = free_[bytes];
    if (free != nullptr) block.reset(std::exchange(free, free->next_));
  }
  if (block == nullptr) block = make(bytes);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_use_ += bytes;  // put_back() subtracts them
  }
  // The pool lives until its last block is back. If there is no memory for the shared pointer, its
  // constructor returns the block.
  const std::shared_ptr<HostBlock> shared(
      block.release(),
      [pool = shared_from_this()](HostBlock* returned) { pool->put_back(returned); });
  const std::lock_guard<std::mutex> lock(mutex_);
  used_[shared->data()] = shared;
  return shared;
}

void HostPool::put_back(HostBlock* block) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  used_.erase(block->data_);
  in_use_ -= block->bytes_;
  const auto list = free_.find(block->bytes_);  // take() has created it
  block->next_ = list->second;
  list->second = block;
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
