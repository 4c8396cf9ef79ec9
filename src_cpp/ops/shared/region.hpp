// What operations of StableHLO share: lists of axes among their parameters, and regions, graphs of
// one node that tell how two numbers are combined.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ops/shared/common.hpp"
#include "tfl/decomposition.hpp"

namespace clgpu::ops {

/// A list in the parameters of the runtimes.
struct AxisList {
  std::int64_t axes[8];
  std::int32_t count;
};

struct AxisCheck {
  const AxisList* list;
  int most;  ///< above each axis
  const char* what;
  std::vector<int>* to;
};

/// Refuses axes out of range and axes that are named twice.
inline std::optional<Refusal> read_axes(const AxisList& list, int most, const char* what,
                                        std::vector<int>& axes) {
  if (list.count < 0 || list.count > most)
    return wrong_value("the number of " + std::string(what), list.count,
                       "0 to " + std::to_string(most));
  std::array<bool, 8> is_named{};
  for (int i = 0; i < list.count; ++i) {
    const std::int64_t axis = list.axes[i];
    if (axis < 0 || axis >= most || is_named[uz(axis)]) {
      return Refusal{Why::kParameter, what,
                     "are not different ones of 0 to " + std::to_string(most - 1)};
    }
    is_named[uz(axis)] = true;
    axes.push_back(static_cast<int>(axis));
  }
  return std::nullopt;
}

/// How a region combines two numbers: the values of the macro OP of kernels/common/combine.cl.
enum class Combine : int { kReplace, kAdd, kMultiply, kMinimum, kMaximum, kAll, kAny };

/// Of a region without a node, which gives its second number, or with one; none for other regions.
inline std::optional<Combine> combine_of(const tfl::NodeView& node, int subgraph) {
  const auto graph = tfl::read_decomposition(node, subgraph);
  if (!graph || graph->steps.size() > 1) return std::nullopt;
  if (graph->steps.empty()) return Combine::kReplace;
  switch (graph->steps.front().builtin) {
    case 0:    // ADD
    case 163:  // STABLEHLO_ADD
      return Combine::kAdd;
    case 18:   // MUL
    case 165:  // STABLEHLO_MULTIPLY
      return Combine::kMultiply;
    case 57:   // MINIMUM
    case 181:  // STABLEHLO_MINIMUM
      return Combine::kMinimum;
    case 55:   // MAXIMUM
    case 166:  // STABLEHLO_MAXIMUM
      return Combine::kMaximum;
    case 86:   // LOGICAL_AND
    case 176:  // STABLEHLO_AND
      return Combine::kAll;
    case 84:   // LOGICAL_OR
    case 183:  // STABLEHLO_OR
      return Combine::kAny;
    default:
      return std::nullopt;
  }
}

}  // namespace clgpu::ops
