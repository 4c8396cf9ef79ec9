#include "delegate/verify/sandbox.hpp"

#include <stdlib.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "delegate/guard.hpp"
#include "delegate/int_array.hpp"
#include "ir/shape.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

constexpr std::size_t kAlignment = 64;  // of the runtimes' arenas
constexpr std::size_t kHeadroom = 64;   // tensors that one call may add
constexpr std::size_t kSlack = 64;      // bytes: XNNPACK's kernels read beyond the end of a tensor

// Memory that free() accepts and a kernel may realloc().
void* new_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + kSlack + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = nullptr;  // Android has aligned_alloc() only from API level 28 on
  if (posix_memalign(&memory, kAlignment, whole) != 0) throw Error("out of host memory");
  std::memset(memory, 0, whole);
  return memory;
}

// 0: not a tensor that the sandbox can allocate.
std::size_t size_of_type(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
    case kTfLiteUInt32:
      return 4;
    case kTfLiteInt64:
    case kTfLiteUInt64:
    case kTfLiteFloat64:
    case kTfLiteComplex64:
      return 8;
    case kTfLiteFloat16:
    case kTfLiteBFloat16:
    case kTfLiteInt16:
    case kTfLiteUInt16:
      return 2;
    case kTfLiteInt8:
    case kTfLiteUInt8:
    case kTfLiteBool:
      return 1;
    default:
      return 0;
  }
}

// None if a size is negative or the product exceeds the address space.
std::optional<std::size_t> bytes_of(const TfLiteIntArray& dims, std::size_t element) {
  std::size_t bytes = element;
  for (int i = 0; i < dims.size; ++i) {
    if (dims.data[i] < 0) return std::nullopt;
    const auto extent = static_cast<std::size_t>(dims.data[i]);
    if (extent != 0 && bytes > PTRDIFF_MAX / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

bool is_heap(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteDynamic || tensor.allocation_type == kTfLitePersistentRo;
}

}  // namespace

Sandbox::Sandbox(const TfLiteContext& context, const InnerTensors* inner) : TfLiteContext(context) {
  ResizeTensor = resize_tensor;
  ResizeTensorExplicit = resize_explicit;
  ReportError = report_error;
  AddTensors = add_tensors;
  copies_.assign(context.tensors,
                 context.tensors + (inner == nullptr ? context.tensors_size : inner->first()));
  if (inner != nullptr) copies_.insert(copies_.end(), inner->list().begin(), inner->list().end());
  owned_.resize(copies_.size());
  for (TfLiteTensor& tensor : copies_) adopt(tensor);
  publish();
}

void Sandbox::adopt(TfLiteTensor& copy) {
  copy.dims = copy_of(copy.dims);
  copy.delegate = nullptr;
  copy.buffer_handle = -1;
  copy.data_is_stale = false;
  if (copy.allocation_type == kTfLiteMmapRo) return;
  copy.allocation_type = kTfLiteArenaRw;
  copy.data = nullptr;
}

void Sandbox::append(const TfLiteTensor& tensor) {
  copies_.push_back(tensor);
  adopt(copies_.back());
  owned_.push_back(false);
  publish();
}

Sandbox::~Sandbox() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    release(static_cast<int>(i));
    std::free(copies_[i].dims);
  }
}

void Sandbox::publish() {
  tensors = copies_.data();
  tensors_size = copies_.size();
}

void Sandbox::make_room() {
  if (copies_.capacity() - copies_.size() < kHeadroom)
    copies_.reserve(copies_.size() * 2 + kHeadroom);
  publish();
}

void Sandbox::provide(int id) {
  TfLiteTensor& tensor = at(id);
  const bool arena = tensor.allocation_type == kTfLiteArenaRw ||
                     tensor.allocation_type == kTfLiteArenaRwPersistent;
  if (!arena || tensor.data != nullptr) return;
  tensor.data = new_memory(tensor.bytes);
  owned_[uz(id)] = true;
}

void Sandbox::release(int id) {
  TfLiteTensor& tensor = at(id);
  if (is_heap(tensor) || owns(id)) {
    std::free(tensor.data);
    tensor.data = nullptr;
  }
  owned_[uz(id)] = false;
}

void Sandbox::truncate(std::size_t size) {
  while (copies_.size() > size) {
    release(static_cast<int>(copies_.size()) - 1);
    std::free(copies_.back().dims);
    copies_.pop_back();
    owned_.pop_back();
  }
  publish();
}

TfLiteStatus Sandbox::resize(TfLiteTensor* tensor, TfLiteIntArray* dims) {
  const std::size_t size = size_of_type(tensor->type);
  if (tensor->allocation_type == kTfLiteMmapRo || size == 0) {
    error =
        std::string("a tensor of type ") + tfl::type_name(tensor->type) + " cannot be resized here";
    if (dims != tensor->dims) std::free(dims);
    return kTfLiteError;
  }
  const std::optional<std::size_t> needed = bytes_of(*dims, size);
  if (!needed || *needed > largest) {
    error = "a tensor cannot have the shape " + ir::Shape(to_vector(dims)).str() +
            "; allowed: up to " + std::to_string(largest) + " bytes";
    if (dims != tensor->dims) std::free(dims);
    return kTfLiteError;
  }
  const std::size_t bytes = *needed;
  if (tensor->data == nullptr || bytes > tensor->bytes) {
    const auto id = static_cast<int>(tensor - copies_.data());
    if (is_heap(*tensor) || owns(id)) release(id);
    if (is_heap(*tensor)) tensor->data = new_memory(bytes);
  }
  tensor->bytes = bytes;
  if (dims != tensor->dims) std::free(tensor->dims);
  tensor->dims = dims;
  return kTfLiteOk;
}

// Kernels may have been compiled without exceptions.
TfLiteStatus Sandbox::resize_tensor(TfLiteContext* context, TfLiteTensor* tensor,
                                    TfLiteIntArray* dims) {
  return guarded(
      kTfLiteError, [](const char*) {}, [&] { return of(context).resize(tensor, dims); });
}

TfLiteStatus Sandbox::resize_explicit(TfLiteContext* context, TfLiteTensor* tensor, int rank,
                                      const int* shape) {
  return guarded(
      kTfLiteError, [](const char*) {},
      [&] { return of(context).resize(tensor, new_array({shape, shape + rank})); });
}

TfLiteStatus Sandbox::add_tensors(TfLiteContext* context, int count, int* first) {
  return guarded(kTfLiteError, [](const char*) {}, [&] { return of(context).add(count, first); });
}

TfLiteStatus Sandbox::add(int count, int* first) {
  if (copies_.capacity() - copies_.size() < static_cast<std::size_t>(count)) {
    error = "it adds more tensors than were reserved";
    return kTfLiteError;
  }
  if (first != nullptr) *first = static_cast<int>(copies_.size());
  for (int i = 0; i < count; ++i) {
    TfLiteTensor tensor{};
    tensor.buffer_handle = -1;
    copies_.push_back(tensor);
    owned_.push_back(false);
  }
  publish();
  return kTfLiteOk;
}

void Sandbox::report_error(TfLiteContext* context, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  guarded(
      0, [](const char*) {},
      [&] {
        of(context).error += text;
        return 0;
      });
}

}  // namespace clgpu::delegate
