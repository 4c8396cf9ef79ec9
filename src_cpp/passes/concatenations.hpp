// Shared parts of the passes over concatenations. All of them rely on dimensions.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ir/graph.hpp"
#include "ops/families/concatenation.hpp"

namespace clgpu::passes {

/// Tensors that a concatenation writes and whose parts have got an addend of the whole's shape: all
/// parts must be written in place, and the whole itself cannot be part of another tensor.
using Sums = std::set<int>;

/// The writers and readers of the tensors of a graph.
struct Links {
  explicit Links(const ir::Graph& graph);
  std::vector<std::vector<int>> readers;
  std::vector<int> writers;
  std::vector<bool> is_output;
  std::vector<bool> known;  ///< constants, and what is computed from constants alone
};

/// An input of a concatenation that its writer can write directly to its place in the result.
struct Slot {
  int node = -1, input = -1;  ///< position of the concatenation, and of the input in it
  int writer = -1;            ///< position of the node that writes it
  std::vector<int> tensors;   ///< the input; if it is a view, its source, and so on
};

/// Attributes of CONCATENATION and PACK; null for every other node.
const ops::ConcatenationAttrs* concatenation_of(const ir::Node& node);

/// Whether a node is a concatenation along the last axis.
bool joins_channels(const ir::Graph& graph, int node);

/// The slot of an input; nullopt if it must be copied.
std::optional<Slot> slot_of(const ir::Graph& graph, const Links& links, const Sums& sums, int node,
                            int input);

/// The place in `whole` of tensor `id`, of which a concatenation makes this part; nullopt if it
/// cannot be expressed as a Placement.
std::optional<ir::Placement> placement_in(const ir::Graph& graph, int whole, int id,
                                          const ops::Part& part);

/// The slots to use: all that do not increase the memory of the graph. A part written in place
/// keeps the whole alive from then on, which costs memory if it happens long before the others.
std::vector<Slot> choose_slots(const ir::Graph& graph, const Sums& sums);

/// An addition to a concatenation that has no other reader moves into the nodes that write the
/// parts.
Sums add_before_concatenations(ir::Graph& graph);

/// An addition of two concatenations of channels with parts of equal shapes, each of more than
/// `most` bytes, becomes a concatenation of additions of the parts.
void split_additions(ir::Graph& graph, std::int64_t most);

/// Convolutions of a concatenation with inputs that would be copied become sums of convolutions:
/// one for each of these inputs, and one for the others together. Inputs of a concatenation of more
/// than `most` bytes count as copied; with `only_large`, all others stay.
void split_convolutions(ir::Graph& graph, const Sums& sums, std::int64_t most, bool only_large);

/// Sets Tensor::placement.
void place_parts(ir::Graph& graph, const Sums& sums);

}  // namespace clgpu::passes
