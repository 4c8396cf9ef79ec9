// The largest elements of a carried tensor, such as a language model's logits, which stay on the
// device.
#pragma once

#include <cstdint>
#include <vector>

#include "delegate/building/carried_sets.hpp"
#include "delegate/building/state.hpp"

namespace clgpu::delegate {

/// Of each row, along the last axis.
struct Largest {
  std::vector<float> values;          ///< in descending order; or the sums of the rows
  std::vector<std::int32_t> indices;  ///< of the elements
};

/// Finds the `count` largest elements of each row of the carried tensor with this number. With a
/// count of 0 the first of the largest, with the sum of the row, which is not a number if an
/// element is not. What computes it is built at the first call. Throws Error if no graph on the
/// device has used the tensor, if its elements are not floats, and where the device cannot compute
/// it.
Largest find_largest(State& state, Carriers& carriers, int number, int count);

}  // namespace clgpu::delegate
