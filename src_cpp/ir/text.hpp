// A graph as text, which can be read back: docs/architecture.md has an example.
//
//   tf32                                        Graph::allows_tf32
//   half                                        Graph::allows_half
//   %0: float32[1, 8, 8, 4] "image"             a tensor that no node writes
//   %1: float32[4, 1, 1, 4] = const splat(0.5)  a constant
//   inputs %0
//   %2: float32[1, 8, 8, 4] = conv2d(%0, %1) {padding=VALID} op=CONV_2D node=0 activation=relu
//   outputs %2
//   step fuse_activation applied node=1 into=0  Graph::steps
//
// A tensor is described where it is first written, or before all nodes if no node writes it. After
// its type and shape follow, if they differ from the default: "name" tflite=ID state=N carried=N
// largest_of=N fed kept rank=N storage=TYPE quantized(SCALES, ZERO POINTS, axis=N, block=N,
// narrow=true) part(%WHOLE, pitch=N, first=N). A constant is a list such as [1, 2], splat(VALUE,
// COUNT) or hex(BYTES), of the tensor's type, or of the type written before it. Tensors without any
// reference are not written. A comment begins with
// #. A node that runs graphs (Node::graphs) ends in one "graph {", lines, "}" for each of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace clgpu::ir {

struct TextOptions {
  /// Otherwise the text omits long values, for people: of constants it keeps omitted(BYTES,
  /// DIGEST), of scales omitted(NUMBER). read_text() refuses these.
  bool complete = true;
  bool digests = true;  ///< of omitted constants
  bool steps = true;
};

/// Any graph, also one that verify() refuses.
std::string write_text(const Graph& graph, const TextOptions& options = {});

/// The reverse: a graph for which write_text() returns the same text. `kinds`: the allowed kinds of
/// nodes. Throws TextError, which gives the position of the error and the allowed values.
Graph read_text(std::string_view text, const std::vector<const OpKind*>& kinds);

/// "conv2d"; with its variant, "rows.kept".
std::string name_of(const OpKind& kind);

/// "none", "relu", ...: indexed by their numbers.
const std::vector<std::string>& activation_words();

}  // namespace clgpu::ir
