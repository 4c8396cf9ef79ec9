// Results that are written over an input.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// A node may write its output over an input: each element of that is read only by the work-item
/// that writes the same element of the output, and before it does.
struct InPlace {
  int input, output;  ///< buffers
  int begin, end;     ///< the node's steps in Plan::run, the last one excluded
  /// Instead of the node's only step, if the output is written over the input; see
  /// kernel::Candidate::over_input.
  std::optional<Step> update{};
};

/// Merges such an input and output into one buffer if nothing else needs the input after the output
/// is begun. The remaining buffer has the input's index. Static buffers do not change. The memory
/// of a tensor that is carried is only updated: an inference that fails may then be repeated.
/// Returns the bytes of the buffers that are no longer needed.
std::int64_t write_in_place(Plan& plan, const std::vector<bool>& is_static,
                            const std::vector<InPlace>& chances);

}  // namespace clgpu::plan
