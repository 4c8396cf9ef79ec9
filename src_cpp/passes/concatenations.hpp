// What the passes over concatenations share. All of them rely on dimensions.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ir/graph.hpp"
#include "ops/families/concatenation.hpp"

namespace clgpu::passes {

/// Tensors that a concatenation writes and whose parts have been given an addend of the whole's
/// shape: all of them must be written in place, and the whole itself cannot be part of another.
using Sums = std::set<int>;

/// Who writes and reads the tensors of a graph.
struct Links {
  explicit Links(const ir::Graph& graph);
  std::vector<std::vector<int>> readers;
  std::vector<int> writers;
  std::vector<bool> is_output;
  std::vector<bool> known;  ///< constants, and what is computed of them alone
};

/// An input of a concatenation that its writer can write to the place where it ends up.
struct Slot {
  int node = -1, input = -1;  ///< position of the concatenation, and of the input in it
  int writer = -1;            ///< position of the node that writes it
  std::vector<int> tensors;   ///< the input; if it is a view, its source, and so on
};

/// Attributes of CONCATENATION and PACK; null for every other node.
const ops::ConcatenationAttrs* concatenation_of(const ir::Node& node);

/// The slot of an input; nullopt where it must be copied.
std::optional<Slot> slot_of(const ir::Graph& graph, const Links& links, const Sums& sums, int node,
                            int input);

/// Where tensor `id`, of which a concatenation makes this part, lies in `whole`; nullopt where that
/// is no Placement.
std::optional<ir::Placement> placement_in(const ir::Graph& graph, int whole, int id,
                                          const ops::Part& part);

/// The slots to use: all that do not make the graph need more memory. What is written in place
/// keeps the whole alive from then on, which is dear when it happens long before the others.
std::vector<Slot> choose_slots(const ir::Graph& graph, const Sums& sums);

/// An addition to a concatenation that alone reads it moves into the nodes that write the parts.
Sums add_before_concatenations(ir::Graph& graph);

/// Convolutions of a concatenation with inputs that would be copied become sums of convolutions:
/// one for each of these, and one for what the others make.
void split_convolutions(ir::Graph& graph, const Sums& sums);

/// Sets Tensor::placement.
void place_parts(ir::Graph& graph, const Sums& sums);

}  // namespace clgpu::passes
