// An operation of the graph. The ir knows no operations: attributes are private to their family.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace clgpu::ir {

struct AttrsType;
struct Graph;

/// Base of every family's attribute struct. Immutable once imported.
struct Attrs {
  virtual ~Attrs() = default;
};
using AttrsPtr = std::shared_ptr<const Attrs>;

/// Function applied to a float result before it is stored. The number is the value of the macro ACT
/// in kernels/common/activation.cl.
enum class Activation : int {
  kNone = 0,
  kRelu = 1,
  kReluN1To1 = 2,
  kRelu6 = 3,
  kTanh = 4,
  kSignBit = 5,
  kSigmoid = 6,
  kRelu0To1 = 7,
  kHardSwish = 8,
  kLeakyRelu = 9,  ///< slope Epilogue::alpha
  kElu = 10,
  kGelu = 11,
  kGeluTanh = 12,  ///< the tanh approximation
  kSwish = 13,     ///< x * sigmoid(x)
  kPrelu = 14,     ///< slopes of the input OpKind::slopes, one for each output channel
};

/// What a node does to each result element after its own arithmetic.
struct Epilogue {
  Activation activation = Activation::kNone;
  float alpha = 0.0F;
  bool residual_after = false;  ///< the residual is added to the activation's value, not before
  bool empty() const { return activation == Activation::kNone && !residual_after; }
};

struct Quantization;

/// What a node of quantised tensors does after its own arithmetic, in place of separate nodes: its
/// integers are looked up in a table, and another tensor (the input OpKind::residual) is added to
/// them. With Epilogue::residual_after in this order, otherwise in reverse.
struct Tail {
  std::shared_ptr<const Quantization> own;  ///< of the result of its own arithmetic
  std::vector<std::uint8_t> table;          ///< [256]: the entry of v is at v modulo 256; or empty
  std::shared_ptr<const Quantization> looked_up;  ///< of the table's result; null without one
  std::shared_ptr<const Quantization> sum;        ///< of the sum; null if nothing is added
  Activation sum_activation = Activation::kNone;
};

/// The weights among the inputs of a kind of operation.
struct Weights {
  int slot = -1;      ///< input slot; -1: there are none
  int bias = -1;      ///< input slot of the bias, one number per output channel; -1: none
  int out_axis = -1;  ///< axis of the output channels in the weights
  /// The axis of the weights for the channels of the image (input 0). In a grouped convolution it
  /// is shorter than these. -1: not a convolution, or a depthwise one.
  int in_axis = -1;
  /// Several nodes, each with some of the output channels, may replace one: out_axis is 0, and its
  /// kernels write slices.
  bool divisible = false;
  bool stock_needs_bias = false;  ///< without one, kernels of the runtimes may crash
};

/// How a node runs graphs of its own (Node::graphs).
enum class Runs {
  kNone,
  /// The first one tells whether there is a round, the second one is a round and tells whether
  /// another one follows. Input i of the node and its output i are state i.
  kLoop,
  /// The first one if input 0 is true, else the second one. Both take the other inputs.
  kBranch,
};

/// The kind of an operation: the part of ops::Family that the ir may know.
struct OpKind {
  const char* name = "";  ///< family name, also its folder in kernels/
  /// Distinguishes kinds with the same name but different properties below.
  const char* variant = "";
  /// Names and values of its nodes' attributes (ir/fields.hpp); null if they have none.
  const AttrsType* attrs = nullptr;
  bool has_epilogue = false;  ///< its kernels apply an Epilogue (macro ACT)
  bool is_view = false;       ///< output 0 is input 0 with another shape: no launch, memory shared
  /// Input slot of a tensor that its kernels add before or after the activation; -1: they cannot.
  /// It has the memory layout of the output: its shape, or the shape of the whole if the output is
  /// a slice.
  int residual = -1;
  /// Input slot of the slopes of Activation::kPrelu, a constant of one number for each output
  /// channel; -1: its kernels have no such activation.
  int slopes = -1;
  bool writes_slices = false;  ///< its outputs may have a Placement
  /// Small nodes of the kind that do not depend on each other are brought together, and one launch
  /// computes them (plan/bundles.hpp).
  bool bundled = false;
  bool half_sums = false;  ///< it has kernels with half sums (Node::half_sums)
  Weights weights;
  Runs runs = Runs::kNone;  ///< the host runs graphs, and its launches are none of the device's
};

struct Node {
  const OpKind* kind = nullptr;
  std::string op;            ///< TFLite's name of the operation, for messages ("CONV_2D")
  int tflite_index = -1;     ///< index of the node in the model's execution plan
  std::vector<int> inputs;   ///< tensor indices of the graph, -1 = optional input not given
  std::vector<int> outputs;  ///< tensor indices of the graph
  AttrsPtr attrs;
  Epilogue epilogue;
  std::shared_ptr<const Tail> tail;  ///< null if its own arithmetic is all
  bool allows_tf32 = false;          ///< as Graph::allows_tf32, of this node alone
  bool bf16_pairs = false;           ///< ... may be written as sums of two bfloat16 numbers each
  bool half_sums = false;            ///< its products may be added in half, block by block
  bool is_band = false;  ///< made by passes::stream_rows: some rows of a node of the model
  /// The node runs only if an element of this tensor is not 0 (NaN is not 0); -1: it always runs.
  /// Its outputs are undefined otherwise, and no element of them decides on a result: their readers
  /// have the same predicate, or do not use them where the tensor is 0.
  int predicate = -1;
  int predicate_element = -1;  ///< the element of it that decides; -1: any
  /// What a node runs whose condition only an inference knows (OpKind::runs); otherwise empty.
  /// Their inputs and outputs are carried tensors. In graphs of a loop, number i is state i, and
  /// the last output, which is not carried, tells whether there is a round. In graphs of a branch
  /// the numbers are those of the node's inputs behind the condition, then those of its outputs. A
  /// number is an output of each graph that has it as an input.
  std::vector<std::shared_ptr<const Graph>> graphs;
};

/// The tensor of an input slot; -1 if the node has none there.
inline int input_of(const Node& node, int slot) {
  const auto i = static_cast<std::size_t>(slot);
  return slot >= 0 && i < node.inputs.size() ? node.inputs[i] : -1;
}
/// Gives the node an input; slots before it that the node lacks stay without a tensor.
inline void set_input(Node& node, int slot, int tensor) {
  const auto i = static_cast<std::size_t>(slot);
  if (node.inputs.size() <= i) node.inputs.resize(i + 1, -1);
  node.inputs[i] = tensor;
}

}  // namespace clgpu::ir
