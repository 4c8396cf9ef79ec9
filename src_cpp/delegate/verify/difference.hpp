// How far a tensor of the device is from what the CPU's kernels compute.
#pragma once

#include <cstddef>
#include <string>

#include "abi/tflite_abi.hpp"
#include "delegate/judgement.hpp"
#include "passes/pass.hpp"

namespace clgpu::delegate {

struct Difference {
  double relative_l2 = 0;  ///< of the error, relative to the norm of what is right
  double max_abs = 0;      ///< largest error of an element; of quantised ones, in real units
  double peak = 0;         ///< max_abs relative to the largest element of what is right
  double steps = 0;        ///< largest error of an integer
  double differing = 0;    ///< share of elements that differ
  double odd = 0;          ///< share of elements where only one of both is finite
  bool nan = false;        ///< an element is NaN in one of both only
};

/// Bounds of what counts as right; docs/trust.md gives the reasons.
struct Tolerance {
  double relative_l2;
  double peak;
  double floor;      ///< max_abs that is no error, however small what is right
  double differing;  ///< of integers that are no quantised numbers
  double odd;        ///< a number near the largest half may round to infinity
  double steps;      ///< of quantised ones
};

/// Of whole partitions, or of a node that is given right inputs.
Tolerance tolerance_of(passes::Precision precision, bool half_weights, Level level, bool of_node);

/// `got` holds as many bytes as `want`.
Difference difference_of(const TfLiteTensor& want, const void* got);

/// Why the difference is too large, or empty. A quantised result may be off by what stock kernels
/// differ by among each other.
std::string problem_of(const TfLiteTensor& want, const Difference& difference,
                       const Tolerance& tolerance);

/// Whether integers `got`, indices of largest (smallest) elements of `values` along `axis`, name
/// elements as large (small), within `slack` times the largest element, as `want` does.
bool are_ties(const TfLiteTensor& values, int axis, const TfLiteTensor& want, const void* got,
              double slack);

}  // namespace clgpu::delegate
