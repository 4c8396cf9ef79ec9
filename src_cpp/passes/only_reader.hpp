// Whether a tensor can vanish into the node that reads it.
#pragma once

#include <string>
#include <vector>

#include "base/index.hpp"

namespace clgpu::passes {

/// Why a tensor must stay, for the node that reads it and would be fused; empty if that is its only
/// use. `readers` and `is_output`: of the graph (ir::readers_of, ir::output_mask).
inline std::string problem_of_use(int tensor, const std::vector<std::vector<int>>& readers,
                                  const std::vector<bool>& is_output) {
  if (is_output[uz(tensor)]) return "its input is a result of the partition";
  if (readers[uz(tensor)].size() != 1) return "other nodes read its input";
  return {};
}

}  // namespace clgpu::passes
