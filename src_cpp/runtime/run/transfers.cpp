#include "runtime/run/transfers.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/half.hpp"
#include "base/page.hpp"
#include "plan/roads.hpp"
#include "runtime/run/host_copy.hpp"

namespace clgpu::runtime {
namespace {

using plan::Buffer;
using plan::Road;
using plan::Transfer;

constexpr std::size_t kGrain = 1 << 17;  // numbers converted in the time of starting a thread

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

std::size_t halves(const Transfer& t) { return size(t.bytes) / sizeof(std::uint16_t); }

}  // namespace

void to_device_form(const Transfer& t, const void* from, void* to) {
  const auto* values = static_cast<const float*>(from);
  auto* out = static_cast<std::uint16_t*>(to);
  in_parts(halves(t), kGrain, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) out[i] = float_to_half(values[i]);
  });
}

void to_host_form(const Transfer& t, const void* from, void* to) {
  const auto* values = static_cast<const std::uint16_t*>(from);
  auto* out = static_cast<float*>(to);
  in_parts(halves(t), kGrain, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) out[i] = half_to_float(values[i]);
  });
}

void Transfers::AlignedDelete::operator()(void* memory) const {
  ::operator delete(memory, std::align_val_t{page_bytes()});
}

Transfers::Transfers(cl::Context& context, const cl::QueueHandle& queue, const plan::Plan& plan,
                     Memory memory, Parting parting, bool& stale)
    : context_(context),
      queue_(queue),
      plan_(plan),
      memory_(std::move(memory)),
      parting_(std::move(parting)),
      stale_(stale) {
  const std::vector<bool> bindable = plan::bindable(plan);
  for (const Transfer& t : plan.uploads)
    ways_.push_back({&t, true, bindable[ways_.size()], t.road, t.reason});
  for (const Transfer& t : plan.downloads)
    ways_.push_back({&t, false, bindable[ways_.size()], t.road, t.reason});
  make_block();
}

// Without it, the driver copies to the runtime's memory.
void Transfers::make_block() {
  std::size_t bytes = 0;
  std::vector<std::size_t> places;
  for (const Transfer& t : plan_.downloads) {
    places.push_back(bytes);
    if (t.by_block) bytes += size(plan::whole_lines(t.bytes));
  }
  if (bytes == 0) return;
  block_ = Pinned(context_, queue_, bytes);
  if (block_.data() == nullptr) return;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Way& way = ways_[plan_.uploads.size() + i];
    if (way.planned->by_block) way.landing = static_cast<char*>(block_.data()) + places[i];
  }
}

Transfers::~Transfers() {
  forget();
  for (Way& way : ways_) drop(way.fallback);
}

template <class Object>
void Transfers::drop(Object& object) noexcept {
  if (object) {
    stale_ = true;
    parting_(object.get());
  }
  object = {};
}

const Transfers::Way* Transfers::find(int buffer) const {
  for (const Way& way : ways_) {
    if (way.planned->buffer == buffer && way.planned->road == Road::kHostPointer) return &way;
  }
  return nullptr;
}

bool Transfers::may_replace(int buffer) const {
  return std::any_of(ways_.begin(), ways_.end(), [&](const Way& way) {
    return way.planned->buffer == buffer &&
           (way.may_bind || way.planned->road == Road::kHostPointer);
  });
}

bool Transfers::has_changed() const {
  return std::any_of(ways_.begin(), ways_.end(), [](const Way& way) { return way.has_changed; });
}

bool Transfers::has_changed(int buffer) const {
  return std::any_of(ways_.begin(), ways_.end(), [&](const Way& way) {
    return way.has_changed && way.planned->buffer == buffer;
  });
}

void Transfers::given() {
  for (Way& way : ways_) way.has_changed = false;
}

bool Transfers::takes(std::size_t index, cl::cl_mem buffer) const {
  const Way& way = ways_[index];
  if (converts(*way.planned) || context_.bytes_of(buffer) < size(way.planned->bytes)) return false;
  // A copy needs memory of the plan's own.
  return plan_.buffers[size(way.planned->buffer)].place != Buffer::Place::kHost ||
         binds(way, buffer);
}

// Whether kernels can have it as an argument.
bool Transfers::binds(const Way& way, cl::cl_mem buffer) const {
  return way.may_bind &&
         context_.bytes_of(buffer) >= size(plan_.buffers[size(way.planned->buffer)].bytes) &&
         context_.takes_images(buffer);
}

void Transfers::unlend(Way& way) noexcept {
  if (way.is_bound) {
    way.has_changed = true;
    parting_(way.lent.get());
  }
  way.is_bound = false;
  set_lent(way, {});
}

void Transfers::set_lent(Way& way, cl::MemHandle buffer) noexcept {
  const std::lock_guard<std::mutex> lock(roads_mutex_);
  way.lent = std::move(buffer);
}

void Transfers::lend(const std::vector<cl::cl_mem>& buffers) {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Way& way = ways_[i];
    const cl::cl_mem buffer = i < buffers.size() ? buffers[i] : nullptr;
    if (buffer == way.lent.get()) continue;
    unlend(way);
    if (buffer == nullptr) continue;
    release(way);
    drop(way.stand_in);
    way.block.reset();
    set_lent(way, context_.retain(buffer));
    if (!binds(way, buffer)) continue;
    way.has_changed = way.is_bound = true;
  }
}

void Transfers::copy(const Way& way, cl::cl_mem from, cl::cl_mem to) {
  cl::check(context_.api().clEnqueueCopyBuffer(queue_.get(), from, to, 0, 0,
                                               size(way.planned->bytes), 0, nullptr, nullptr),
            "clEnqueueCopyBuffer", plan_.buffers[size(way.planned->buffer)].name);
}

cl::cl_mem Transfers::object(int buffer) const {
  for (const Way& way : ways_) {
    if (way.is_bound && way.planned->buffer == buffer) return way.lent.get();
  }
  const Way* way = find(buffer);
  if (way == nullptr) return nullptr;
  if (way->stand_in) return way->stand_in.get();
  return way->wrapped ? way->wrapped.get() : way->fallback.get();
}

void Transfers::attach(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const void* pointer = i < inputs.size() ? inputs[i] : outputs[i - inputs.size()];
    if (ways_[i].lent) continue;
    if (ways_[i].planned->road == Road::kHostPointer) {
      attach(ways_[i], pointer);
    } else if (ways_[i].road == Road::kCopy && !converts(*ways_[i].planned)) {
      attach_copied(ways_[i], pointer);
    }
  }
}

void Transfers::attach(Way& way, const void* pointer) {
  drop(way.stand_in);
  way.block.reset();
  if (way.pointer == pointer) return;
  release(way);
  stale_ = true;
  if (!wrap(way, pointer)) {
    const Buffer& buffer = plan_.buffers[size(way.planned->buffer)];
    if (buffer.place == Buffer::Place::kHost && !way.fallback) {
      way.fallback = context_.create_buffer(size(buffer.bytes), "'" + buffer.name + "'",
                                            way.road == Road::kMapped);
    }
  }
  way.pointer = pointer;
}

void Transfers::attach_copied(Way& way, const void* pointer) {
  if (way.pointer != pointer) {
    release(way);
    way.pointer = pointer;
    set_allocation(way, Allocation::find(context_, pointer, size(way.planned->bytes)));
  } else if (way.planned->pinned && way.allocation == nullptr) {
    pin(way, pointer);
  }
}

// NVIDIA's driver locks the pages of memory with an object, whose own use they are not for: copies
// between other objects and these pages are then made by the device itself. That takes up to a
// millisecond, so only memory that an inference has used before is locked.
void Transfers::pin(Way& way, const void* pointer) {
  if (way.pinned || !way.failure.empty()) return;
  try {
    set_pinned(way, context_.wrap_memory(const_cast<void*>(pointer), size(way.planned->bytes),
                                         plan_.buffers[size(way.planned->buffer)].name));
  } catch (const cl::OpenCLError& error) {
    way.failure = error.what();
    take(way, Road::kCopy, way.failure);
  }
}

void Transfers::set_pinned(Way& way, cl::MemHandle object) noexcept {
  const std::lock_guard<std::mutex> lock(roads_mutex_);
  way.pinned = std::move(object);
}

void Transfers::set_allocation(Way& way, std::shared_ptr<const Allocation> allocation) noexcept {
  const std::lock_guard<std::mutex> lock(roads_mutex_);
  way.allocation.swap(allocation);
}

// Takes the road kHostPointer and returns true; if that is impossible, takes the next best road and
// returns false.
bool Transfers::wrap(Way& way, const void* pointer) {
  const DeviceInfo& device = context_.device().info;
  std::string problem = way.failure;
  // What is ours has further bytes behind the tensor, which nobody else uses.
  std::int64_t bytes = plan::whole_lines(way.planned->bytes);
  set_allocation(way, Allocation::find(context_, pointer, size(bytes)));
  if (way.allocation == nullptr) bytes = way.planned->bytes;
  if (problem.empty()) problem = plan::host_pointer_problem(device, pointer, bytes);
  if (problem.empty()) {
    try {
      // The device writes only to outputs, whose memory is not constant.
      way.wrapped = context_.wrap_memory(const_cast<void*>(pointer), size(bytes),
                                         plan_.buffers[size(way.planned->buffer)].name);
      drop(way.fallback);
      take(way, Road::kHostPointer, "");
      return true;
    } catch (const cl::OpenCLError& error) {
      problem = way.failure = error.what();
    }
  }
  take(way, way.failure.empty() ? plan::second_best(device) : Road::kCopy, problem);
  return false;
}

void Transfers::release(Way& way) noexcept {
  if (way.is_mapped) {
    const cl::Api& api = context_.api();
    api.clEnqueueUnmapMemObject(queue_.get(), way.wrapped.get(), const_cast<void*>(way.pointer), 0,
                                nullptr, nullptr);
    api.clFinish(queue_.get());
    way.is_mapped = false;
  }
  drop(way.wrapped);
  set_pinned(way, {});
  set_allocation(way, nullptr);  // the last use of the memory
  way.pointer = nullptr;
}

void Transfers::forget() noexcept {
  for (Way& way : ways_) {
    if (way.mapped != nullptr) {
      context_.api().clEnqueueUnmapMemObject(queue_.get(), memory_(way.planned->buffer), way.mapped,
                                             0, nullptr, nullptr);
      context_.api().clFinish(queue_.get());
      way.mapped = nullptr;
    }
    release(way);
    drop(way.stand_in);
    way.block.reset();
    unlend(way);
  }
}

void Transfers::stand_in() {
  for (Way& way : ways_) {
    unlend(way);
    const Buffer& buffer = plan_.buffers[size(way.planned->buffer)];
    if (way.planned->road != Road::kHostPointer || way.stand_in) continue;
    if (buffer.place != Buffer::Place::kHost) {
      release(way);
    } else if (!way.fallback) {
      stale_ = true;
      make_stand_in(way, buffer);
    }
  }
}

void Transfers::make_stand_in(Way& way, const Buffer& buffer) {
  const std::size_t bytes = size(buffer.bytes);
  try {
    way.block.reset(::operator new(bytes, std::align_val_t{page_bytes()}));
    std::memset(way.block.get(), 0, bytes);  // so that its pages exist before anything is timed
    way.stand_in = context_.wrap_memory(way.block.get(), bytes, buffer.name);
  } catch (const cl::OpenCLError& error) {
    way.block.reset();
    release(way);
    way.failure = error.what();
    take(way, Road::kCopy, way.failure);
    way.fallback = context_.create_buffer(bytes, "'" + buffer.name + "'");
  }
}

void Transfers::take(Way& way, Road road, const std::string& reason) {
  const std::lock_guard<std::mutex> lock(roads_mutex_);
  way.reason = reason;
  way.road = road;
}

std::vector<RoadTaken> Transfers::roads() const {
  const std::lock_guard<std::mutex> lock(roads_mutex_);
  std::vector<RoadTaken> roads;
  for (const Way& way : ways_) {
    roads.push_back(
        {plan_.buffers[size(way.planned->buffer)].name, way.is_input, way.planned->bytes, way.road,
         way.lent ? "" : way.reason, static_cast<bool>(way.lent),
         way.road == Road::kCopy &&
             (way.pinned || (way.allocation != nullptr && way.allocation->is_pinned()))});
  }
  return roads;
}

// Null if the driver refuses; then the copying road is taken, now and later.
void* Transfers::map(Way& way, cl::cl_bitfield flags, bool blocking) {
  cl::cl_int code = cl::CL_SUCCESS;
  void* mapped = context_.api().clEnqueueMapBuffer(
      queue_.get(), memory_(way.planned->buffer), blocking ? cl::CL_TRUE : cl::CL_FALSE, flags, 0,
      size(way.planned->bytes), 0, nullptr, nullptr, &code);
  if (code == cl::CL_SUCCESS) return mapped;
  way.failure = "clEnqueueMapBuffer: " + cl::error_name(code);
  take(way, Road::kCopy, way.failure);
  return nullptr;
}

// Clears the pointer first, so that it cannot be unmapped twice.
void Transfers::unmap_own(Way& way) { unmap(way, std::exchange(way.mapped, nullptr)); }

void Transfers::unmap(const Way& way, const void* pointer) {
  cl::check(context_.api().clEnqueueUnmapMemObject(queue_.get(), memory_(way.planned->buffer),
                                                   const_cast<void*>(pointer), 0, nullptr, nullptr),
            "clEnqueueUnmapMemObject", plan_.buffers[size(way.planned->buffer)].name);
}

void Transfers::write(std::size_t index, const void* data, Recording* recording) {
  const Transfer& t = *ways_[index].planned;
  cl::check(context_.api().clEnqueueWriteBuffer(
                queue_.get(), memory_(t.buffer), cl::CL_FALSE, 0, size(t.bytes), data, 0, nullptr,
                recording == nullptr ? nullptr : recording->begin_upload(index)),
            "clEnqueueWriteBuffer", plan_.buffers[size(t.buffer)].name);
  if (recording != nullptr) recording->end(context_.api());
}

void Transfers::read(std::size_t index, void* data, bool blocking, Recording* recording) {
  const Transfer& t = *ways_[index].planned;
  const std::size_t output = index - plan_.uploads.size();
  cl::check(
      context_.api().clEnqueueReadBuffer(
          queue_.get(), memory_(t.buffer), blocking ? cl::CL_TRUE : cl::CL_FALSE, 0, size(t.bytes),
          data, 0, nullptr, recording == nullptr ? nullptr : recording->begin_download(output)),
      "clEnqueueReadBuffer", plan_.buffers[size(t.buffer)].name);
  if (recording != nullptr) recording->end(context_.api());
}

// The memory of ours that has an output before the runtime's has it; null if there is none.
void* Transfers::source_of(Way& way) {
  if (way.mapped != nullptr) return way.mapped;
  if (way.landing != nullptr) return way.landing;
  if (!converts(*way.planned)) return nullptr;
  way.staged.resize(halves(*way.planned));
  return way.staged.data();
}

void Transfers::up(const std::vector<const void*>& inputs, Recording* recording) {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Way& way = ways_[i];
    if (way.lent) {
      if (way.is_input && !way.is_bound) copy(way, way.lent.get(), memory_(way.planned->buffer));
      continue;
    }
    if (way.road == Road::kHostPointer) {
      if (std::exchange(way.is_mapped, false)) unmap(way, way.pointer);
      continue;
    }
    if (!way.is_input) continue;
    const Transfer& t = *way.planned;
    cl::counters().bytes_up += static_cast<std::uint64_t>(t.bytes);
    if (way.road == Road::kMapped) {
      way.mapped = map(way, cl::CL_MAP_WRITE_INVALIDATE_REGION, true);
      if (way.mapped != nullptr) {
        if (recording != nullptr) recording->begin_upload(i);
        if (converts(*way.planned)) {
          to_device_form(t, inputs[i], way.mapped);
        } else {
          std::memcpy(way.mapped, inputs[i], size(t.bytes));
        }
        if (recording != nullptr) recording->end_on_host();
        unmap_own(way);
        continue;
      }
    }
    if (converts(*way.planned)) {
      way.staged.resize(halves(t));
      to_device_form(t, inputs[i], way.staged.data());
      write(i, way.staged.data(), recording);
    } else {
      write(i, inputs[i], recording);
    }
  }
}

void Transfers::down(const std::vector<void*>& outputs, Recording* recording, bool waits) {
  const std::size_t first = ways_.size() - outputs.size();
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Way& way = ways_[i];
    // The queue is in order: one blocking command at the end waits for all.
    const bool last = i + 1 == ways_.size();
    if (way.lent) {
      if (!way.is_input && !way.is_bound) copy(way, memory_(way.planned->buffer), way.lent.get());
      continue;
    }
    if (way.road == Road::kHostPointer) {
      way.is_mapped = map(way, cl::CL_MAP_READ | cl::CL_MAP_WRITE, last) != nullptr;
      if (way.is_mapped) continue;
      // The next run creates an object of another kind. The content of this one may be read into
      // its own memory.
      if (!way.is_input) read(i, outputs[i - first], last, recording);
      way.pointer = nullptr;
    } else if (!way.is_input) {
      const Transfer& t = *way.planned;
      cl::counters().bytes_down += static_cast<std::uint64_t>(t.bytes);
      way.mapped = way.road == Road::kMapped ? map(way, cl::CL_MAP_READ, last) : nullptr;
      if (way.mapped != nullptr) continue;
      void* const own = source_of(way);
      read(i, own == nullptr ? outputs[i - first] : own, last, recording);
    }
  }
  if (waits && (outputs.empty() || ways_.back().lent))
    cl::check(context_.api().clFinish(queue_.get()), "clFinish", "run");
  for (std::size_t i = first; i < ways_.size(); ++i) {
    Way& way = ways_[i];
    if (way.road == Road::kHostPointer || way.lent) continue;
    const void* const source = source_of(way);
    Recording* const copying = way.mapped != nullptr ? recording : nullptr;
    if (copying != nullptr) copying->begin_download(i - first);
    if (converts(*way.planned)) {
      to_host_form(*way.planned, source, outputs[i - first]);
    } else if (source != nullptr) {
      std::memcpy(outputs[i - first], source, size(way.planned->bytes));
    }
    if (copying != nullptr) copying->end_on_host();
    if (way.mapped != nullptr) unmap_own(way);
  }
}

}  // namespace clgpu::runtime
