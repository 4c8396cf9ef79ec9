#include "runtime/run/pool.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"

namespace clgpu::runtime {
namespace {}  // namespace

std::shared_ptr<Pool> Pool::of_process(const std::shared_ptr<cl::Context>& context) {
  static auto* mutex = new std::mutex;
  static auto* pools = new std::map<cl::cl_context, std::weak_ptr<Pool>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::weak_ptr<Pool>& known = (*pools)[context->handle()];
  std::shared_ptr<Pool> pool = known.lock();
  if (pool == nullptr) known = pool = std::make_shared<Pool>(context);
  return pool;
}

std::int64_t Pool::needed(std::size_t slot) const {
  std::int64_t bytes = 0;
  for (const auto& [arena, needs] : needs_) {
    if (slot < needs.size()) bytes = std::max(bytes, needs[slot]);
  }
  return bytes;
}

void Pool::join(const Lease* arena, Needs needs) {
  const Needs& needed = needs_.emplace(arena, std::move(needs)).first->second;
  try {
    provide(needed);
  } catch (...) {
    leave(arena);
    throw;
  }
}

// Objects that no executor needs any longer are freed now; those of which others need less when
// they next take their turn.
void Pool::leave(const Lease* arena) noexcept {
  needs_.erase(arena);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].bytes <= needed(i)) continue;
    drop_parts();
    slots_[i] = {};
    ++generation_;
  }
}

// Objects that are too small are freed first, so that old and new ones do not exist at the same
// time.
void Pool::provide(const Needs& needs) {
  slots_.resize(std::max(slots_.size(), needs.size()));
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (slots_[i].bytes == 0 || slots_[i].bytes >= needs[i]) continue;
    drop_parts();
    slots_[i] = {};
    ++generation_;
  }
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (slots_[i].bytes >= needs[i]) continue;
    const std::int64_t bytes = needed(i);
    // Inputs and outputs are mapped there.
    const DeviceInfo& device = context_->device().info;
    slots_[i].object =
        context_->create_buffer(static_cast<std::size_t>(bytes), "a buffer of the arena",
                                device.unified_memory && !device.is_cpu());
    slots_[i].bytes = bytes;
  }
}

cl::cl_mem Pool::part(std::size_t slot, std::int64_t offset, std::int64_t bytes,
                      const std::string& what) {
  cl::cl_mem& known = part_at_[{slot, offset, bytes}];
  if (known == nullptr) {
    parts_.push_back(context_->create_sub_buffer(slots_[slot].object,
                                                 static_cast<std::size_t>(offset),
                                                 static_cast<std::size_t>(bytes), what));
    known = parts_.back().get();
  }
  return known;
}

// NVIDIA's driver 580 crashes when sub-buffers that kernels have used are released in the order of
// their creation. So the sub-buffers of all arenas are created and released together.
void Pool::drop_parts() noexcept {
  settle();
  for (const auto& [arena, needs] : needs_) {
    if (arena->parting_) arena->parting_();
  }
  images_.clear();
  part_at_.clear();
  while (!parts_.empty()) parts_.pop_back();
}

void Pool::settle() noexcept {
  if (in_flight_ != nullptr) wait_();
  in_flight_ = nullptr;
  wait_ = nullptr;
}

Lease::Lease(std::shared_ptr<Pool> pool, const plan::Plan& plan)
    : pool_(std::move(pool)), plan_(plan), slot_of_(plan.objects.size()) {
  std::vector<std::size_t> by_size(plan.objects.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return plan.objects[a] > plan.objects[b]; });
  for (std::size_t slot = 0; slot < by_size.size(); ++slot) {
    slot_of_[by_size[slot]] = slot;
    needs_.push_back(plan.objects[by_size[slot]]);
  }
  const auto turn = take_turn();
  pool_->join(this, needs_);
}

Lease::~Lease() {
  settle();
  const auto turn = take_turn();
  pool_->leave(this);
}

std::unique_lock<std::mutex> Lease::take_turn() const {
  std::unique_lock<std::mutex> turn(pool_->turn_);
  if (pool_->in_flight_ != this) pool_->settle();
  return turn;
}

void Lease::settle() {
  const std::lock_guard<std::mutex> turn(pool_->turn_);
  if (pool_->in_flight_ == this) pool_->settle();
}

void Lease::leave_in_flight(std::function<void()> wait) {
  pool_->in_flight_ = this;
  pool_->wait_ = std::move(wait);
}

void Lease::on_parting(std::function<void()> parting) {
  const std::lock_guard<std::mutex> turn(pool_->turn_);
  parting_ = std::move(parting);
}

void Lease::refresh(bool& stale) {
  using plan::Buffer;
  pool_->provide(needs_);
  if (generation_ == pool_->generation_) return;
  stale = true;
  generation_ = 0;
  of_buffer_.assign(plan_.buffers.size(), nullptr);
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Buffer& buffer = plan_.buffers[i];
    if (buffer.place != Buffer::Place::kArena) continue;
    const std::size_t slot = slot_of_[uz(buffer.object)];
    of_buffer_[i] = buffer.is_part
                        ? pool_->part(slot, buffer.offset, buffer.span, "'" + buffer.name + "'")
                        : pool_->slots_[slot].object.get();
  }
  generation_ = pool_->generation_;
}

}  // namespace clgpu::runtime
