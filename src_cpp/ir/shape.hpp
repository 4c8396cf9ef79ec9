// Shape of a tensor: dimensions from the slowest to the fastest (row-major, contiguous).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/index.hpp"

namespace clgpu::ir {

/// A file may have any sizes: for any type, the bytes of this many elements still fit into 64 bits.
constexpr std::int64_t kMostElements = INT64_MAX / 64;

class Shape {
 public:
  Shape() = default;  ///< a scalar: rank 0, one element
  Shape(std::initializer_list<int> dims) : dims_(dims) {}
  explicit Shape(std::vector<int> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int operator[](int axis) const { return dims_[uz(axis)]; }
  int& operator[](int axis) { return dims_[uz(axis)]; }
  /// Dimension counted from the last axis: back(0) is the fastest; 1 if there is no such axis.
  int back(int from_last) const {
    return from_last < rank() ? dims_[dims_.size() - 1 - static_cast<std::size_t>(from_last)] : 1;
  }
  const std::vector<int>& dims() const { return dims_; }

  std::int64_t elements() const { return elements(0, rank()); }
  /// Product of the dimensions begin <= axis < end; at most kMostElements.
  std::int64_t elements(int begin, int end) const {
    std::int64_t product = 1;
    for (int i = begin; i < end; ++i) {
      const int dim = dims_[uz(i)];
      product = dim > 0 && product > kMostElements / dim ? kMostElements : product * dim;
    }
    return product;
  }
  /// Strides in elements, one per dimension.
  std::vector<int> strides() const {
    std::vector<int> result(dims_.size());
    std::int64_t step = 1;
    for (std::size_t i = dims_.size(); i-- > 0; step *= dims_[i])
      result[i] = static_cast<int>(step);
    return result;
  }
  /// "[1, 224, 224, 3]".
  std::string str() const {
    std::string text = "[";
    for (std::size_t i = 0; i < dims_.size(); ++i)
      text += (i ? ", " : "") + std::to_string(dims_[i]);
    return text + "]";
  }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return dims_ != other.dims_; }

 private:
  std::vector<int> dims_;
};

using Shapes = std::vector<Shape>;

}  // namespace clgpu::ir
