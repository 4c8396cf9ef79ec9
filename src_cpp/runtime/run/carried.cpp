#include "runtime/run/carried.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/half.hpp"

namespace clgpu::runtime {
namespace {

using plan::CarriedForm;

std::string text_of(const CarriedForm& form) {
  return std::string(name_of(form.dtype)) + form.shape.str() +
         (form.storage != form.dtype ? std::string(" as ") + name_of(form.storage) : "");
}

bool operator==(const CarriedForm& a, const CarriedForm& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.storage == b.storage;
}

}  // namespace

CarriedSet::CarriedSet(std::shared_ptr<cl::Context> context, std::vector<std::string> names)
    : context_(std::move(context)), queue_(context_->create_queue()) {
  for (std::string& name : names) {
    tensors_.emplace_back();
    tensors_.back().name = std::move(name);
  }
}

CarriedSet::~CarriedSet() { context_->api().clFinish(queue_.get()); }

const CarriedForm* CarriedSet::form(int number) const {
  const std::lock_guard<std::mutex> lock(forms_);
  return at(number).form.get();
}

void CarriedSet::provide(int number, const CarriedForm& form) {
  Tensor& tensor = at(number);
  if (const CarriedForm* known = this->form(number)) {
    if (*known == form) return;
    throw Error("the carried tensor '" + tensor.name + "' is " + text_of(*known) +
                " already, and cannot be " + text_of(form) +
                ": all graphs of an interpreter need the same; make a new interpreter for another "
                "shape");
  }
  if (form.bytes() > 0) {
    cl::Memory memory = context_->create_buffer(form.bytes(), "'" + tensor.name + "'");
    std::swap(tensor.memory, memory);
    try {
      fill(tensor, form.bytes(), queue_);
      cl::check(context_->api().clFinish(queue_.get()), "clFinish", tensor.name);
    } catch (...) {
      tensor.memory = {};
      throw;
    }
  }
  const std::lock_guard<std::mutex> lock(forms_);
  tensor.form = std::make_unique<const CarriedForm>(form);
}

void CarriedSet::fill(const Tensor& tensor, std::size_t bytes, const cl::QueueHandle& queue) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  static const std::vector<std::uint8_t> zeros(kPiece);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    cl::check(context_->api().clEnqueueWriteBuffer(queue.get(), tensor.memory.get(), cl::CL_TRUE,
                                                   at, std::min(kPiece, bytes - at), zeros.data(),
                                                   0, nullptr, nullptr),
              "clEnqueueWriteBuffer", tensor.name);
  }
}

void CarriedSet::read(int number, void* to) {
  const auto turn = take_turn();
  const Tensor& tensor = at(number);
  const std::size_t bytes = tensor.form->bytes();
  if (bytes == 0) return;
  const bool converts = tensor.form->storage != tensor.form->dtype;
  std::vector<std::uint16_t> halves(converts ? bytes / 2 : 0);
  void* const host = converts ? static_cast<void*>(halves.data()) : to;
  cl::check(context_->api().clEnqueueReadBuffer(queue_.get(), tensor.memory.get(), cl::CL_TRUE, 0,
                                                bytes, host, 0, nullptr, nullptr),
            "clEnqueueReadBuffer", tensor.name);
  cl::counters().bytes_down += bytes;
  auto* const floats = static_cast<float*>(to);
  for (std::size_t i = 0; i < halves.size(); ++i) floats[i] = half_to_float(halves[i]);
}

void CarriedSet::write(int number, const void* from) {
  const auto turn = take_turn();
  Tensor& tensor = at(number);
  const std::size_t bytes = tensor.form->bytes();
  if (bytes == 0) return;
  std::vector<std::uint16_t> halves(tensor.form->storage != tensor.form->dtype ? bytes / 2 : 0);
  const auto* const floats = static_cast<const float*>(from);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = float_to_half(floats[i]);
  tensor.is_zero = false;
  cl::check(
      context_->api().clEnqueueWriteBuffer(
          queue_.get(), tensor.memory.get(), cl::CL_TRUE, 0, bytes,
          halves.empty() ? from : static_cast<const void*>(halves.data()), 0, nullptr, nullptr),
      "clEnqueueWriteBuffer", tensor.name);
  // With Intel's CPU runtime, kernels in other queues may read the old value after that.
  cl::check(context_->api().clFinish(queue_.get()), "clFinish", tensor.name);
  cl::counters().bytes_up += bytes;
}

void CarriedSet::clear(int number) {
  const auto turn = take_turn();
  Tensor& tensor = at(number);
  if (tensor.form == nullptr || tensor.is_zero) return;
  fill(tensor, tensor.form->bytes(), queue_);
  cl::check(context_->api().clFinish(queue_.get()), "clFinish", tensor.name);
  tensor.is_zero = true;
}

void CarriedSet::touch(const std::vector<int>& numbers) {
  for (const int number : numbers) at(number).is_zero = false;
}

CarriedSet::Aside::Aside(CarriedSet& set, const std::vector<int>& numbers,
                         const cl::QueueHandle& queue)
    : set_(set), numbers_(numbers), queue_(queue) {
  cl::Context& context = *set_.context_;
  for (const int number : numbers_) {
    const Tensor& tensor = set_.at(number);
    const std::size_t bytes = tensor.form->bytes();
    copies_.emplace_back();
    if (tensor.is_zero || bytes == 0) continue;
    copies_.back() = context.create_buffer(bytes, "a copy of '" + tensor.name + "'");
    cl::check(
        context.api().clEnqueueCopyBuffer(queue_.get(), tensor.memory.get(), copies_.back().get(),
                                          0, 0, bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer", tensor.name);
  }
}

void CarriedSet::Aside::put_back() {
  const cl::Api& api = set_.context_->api();
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const Tensor& tensor = set_.at(numbers_[i]);
    const std::size_t bytes = tensor.form->bytes();
    if (bytes == 0) continue;
    if (!copies_[i]) {
      set_.fill(tensor, bytes, queue_);
      continue;
    }
    cl::check(api.clEnqueueCopyBuffer(queue_.get(), copies_[i].get(), tensor.memory.get(), 0, 0,
                                      bytes, 0, nullptr, nullptr),
              "clEnqueueCopyBuffer", tensor.name);
  }
  cl::check(api.clFinish(queue_.get()), "clFinish", "carried tensors");
}

}  // namespace clgpu::runtime
