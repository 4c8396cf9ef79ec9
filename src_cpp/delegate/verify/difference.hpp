// The difference between a tensor of the device and the result of the CPU's kernels.
#pragma once

#include <cstddef>
#include <string>

#include "abi/tflite_abi.hpp"
#include "delegate/judgement.hpp"
#include "passes/pass.hpp"

namespace clgpu::delegate {

struct Difference {
  double relative_l2 = 0;  ///< of the error, relative to the norm of the right values
  double max_abs = 0;      ///< largest error of an element; of quantised ones, in real units
  double peak = 0;         ///< max_abs relative to the largest right element
  double steps = 0;        ///< largest error of an integer
  double differing = 0;    ///< share of elements that differ
  double odd = 0;          ///< share of elements that are finite in only one of them
  bool nan = false;        ///< an element is NaN in only one of them
};

/// Bounds for right results; docs/trust.md gives the reasons.
struct Tolerance {
  double relative_l2;
  double peak;
  double floor;      ///< max_abs that is never an error, however small the right values
  double differing;  ///< of integers that are not quantised
  double odd;        ///< a number near the largest half may round to infinity
  double steps;      ///< of quantised ones
};

/// Relative L2 error of partitions and nodes with a plan of precisions that names none: weights
/// that it stores as int8 are rounded by up to 2^-8.
constexpr double kMixedL2 = 3e-2;

/// For whole partitions, or for a node with right inputs. `named`: of a plan of precisions, the
/// relative L2 error that it was made for.
Tolerance tolerance_of(passes::Precision precision, bool half_weights, Level level, bool of_node,
                       std::optional<double> named);

/// `got` holds as many bytes as `want`.
Difference difference_of(const TfLiteTensor& want, const void* got);

/// The largest relative L2 error that is right; that of integers is larger.
double l2_bound(const TfLiteTensor& want, const Tolerance& tolerance);

/// Why the difference is too large, or empty. A quantised result may be off by as much as the stock
/// kernels differ from each other.
std::string problem_of(const TfLiteTensor& want, const Difference& difference,
                       const Tolerance& tolerance);

/// Whether integers `got`, indices of largest (smallest) elements of `values` along `axis`, name
/// elements as large (small), within `slack` times the largest element, as `want` does.
bool are_ties(const TfLiteTensor& values, int axis, const TfLiteTensor& want, const void* got,
              double slack);

}  // namespace clgpu::delegate
