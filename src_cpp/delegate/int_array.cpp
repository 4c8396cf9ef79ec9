#include "delegate/int_array.hpp"

#include <cstdlib>
#include <cstring>

#include "base/error.hpp"

namespace clgpu::delegate {

TfLiteIntArray* new_array(const std::vector<int>& values) {
  auto* array = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + values.size() * sizeof(int)));
  if (array == nullptr) throw Error("out of host memory");
  array->size = static_cast<int>(values.size());
  if (!values.empty()) std::memcpy(array->data, values.data(), values.size() * sizeof(int));
  return array;
}

TfLiteIntArray* copy_of(const TfLiteIntArray* array) {
  return array == nullptr ? nullptr : new_array(to_vector(array));
}

std::vector<int> to_vector(const TfLiteIntArray* array) {
  return array == nullptr ? std::vector<int>{}
                          : std::vector<int>(array->data, array->data + array->size);
}

bool leaves_size_open(const TfLiteIntArray* signature) {
  return signature != nullptr && std::any_of(signature->data, signature->data + signature->size,
                                             [](int size) { return size < 0; });
}

}  // namespace clgpu::delegate
