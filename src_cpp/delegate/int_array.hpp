// Conversion between TfLiteIntArray and std::vector.
#pragma once

#include <algorithm>
#include <vector>

#include "abi/tflite_abi.hpp"

namespace clgpu::delegate {

/// Allocated with malloc, because kernels and contexts free them. Throw Error if there is no
/// memory.
TfLiteIntArray* new_array(const std::vector<int>& values);
TfLiteIntArray* copy_of(const TfLiteIntArray* array);
std::vector<int> to_vector(const TfLiteIntArray* array);

/// Whether the dims_signature of a tensor leaves a size open; false if it is null.
bool leaves_size_open(const TfLiteIntArray* signature);

/// TfLiteIntArray over a std::vector, for arguments that the runtime only reads.
class IntArray {
 public:
  explicit IntArray(const std::vector<int>& values) : words_(values.size() + 1) {
    words_[0] = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), words_.begin() + 1);
  }
  const TfLiteIntArray* get() const {
    return reinterpret_cast<const TfLiteIntArray*>(words_.data());
  }

 private:
  std::vector<int> words_;
};

}  // namespace clgpu::delegate
