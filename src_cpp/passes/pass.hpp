// The passes: each takes a graph and leaves an equivalent, better one. They run in the order of
// pipeline.cpp, before shapes are known to be final; fuse_residual alone relies on dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/device_info.hpp"
#include "ir/graph.hpp"

namespace clgpu::passes {

enum class Precision {
  kFp32,  ///< float tensors are stored as float
  kFp16,  ///< float tensors between nodes, and large weights, are stored as half; sums stay in
          ///< float
  kTf32,  ///< stored as with kFp32; factors may be rounded to TF32 (10 bits of mantissa), sums stay
          ///< in float
  kMixed,  ///< as kFp32, except for the tensors and nodes of a PrecisionPlan
};

/// Scale and zero point of int8: real = scale * (stored - zero_point).
struct Int8Scale {
  float scale = 1;
  std::int32_t zero_point = 0;
};

/// Which tensors and nodes of a model are computed in less than float; both in TFLite's numbering.
struct PrecisionPlan {
  std::string model;            ///< its digest (delegate/claim/mixed.hpp)
  std::optional<double> bound;  ///< the relative L2 error of the outputs that the plan was made for
  std::set<int> half;           ///< tensors that are stored as half where kFp16 would do so
  std::set<int> bfloat;         ///< the same as bfloat16; also where they are among `half`
  std::set<int> int8;           ///< constants that are stored as int8, a scale per output channel
  std::set<int> tf32;           ///< nodes with factors that may be rounded to TF32
  std::set<int> bf16_pairs;  ///< nodes with factors that may be sums of two bfloat16 numbers each
  std::set<int> half_sums;   ///< nodes whose products may be added in half
  std::set<int> integers;    ///< nodes that compute with int8
  std::map<int, Int8Scale> scales;  ///< of the tensors that these nodes read and write
  /// Of tensors that products read: the mean of each channel (round_weights).
  std::map<int, std::vector<float>> means;
};

/// Reads the form in which options and the cache have a plan,
/// "model=0a1b,error=0.001,half=3+7-12,bfloat=9,int8=4,tf32=5,pairs=6,sums=5,
/// integers=6,scales=8/0.05/-128+9/0.1/3,means=2/3f80bf00": only the model has to be there. A mean
/// is the four digits of a bfloat16. Nothing if the text has another form.
std::optional<PrecisionPlan> read_precision_plan(const std::string& text);

/// "fp32", "fp16", "tf32", "mixed".
const char* name_of(Precision precision);

/// DEQUANTIZE, or CAST to float32, of a constant of float16 or bfloat16 is removed: its readers
/// read that constant directly.
void keep_half_constants(ir::Graph& graph);

/// MEAN, SQUARED_DIFFERENCE, RSQRT and so on that normalise each image and channel over the pixels
/// become one node (the family instance_norm), in whatever form the converter has written them.
void fuse_instance_norm(ir::Graph& graph);

/// Those that normalise each row, which is the last axis, become one node (the family layer_norm).
/// Without `norms`, as the option engines names a kernel of theirs, all stay apart.
void fuse_layer_norm(ir::Graph& graph, bool norms);

/// MUL, MEAN, RSQRT and so on that divide each row by the root of its mean square become one node,
/// with the factors of the columns, if there are any.
void fuse_rms_norm(ir::Graph& graph);

/// Slices, products and sums that turn pairs of numbers of a row by angles become one node, as
/// rotary embeddings of positions need it. If the only reader of the result is a
/// DYNAMIC_UPDATE_SLICE that takes it as its update, so does that.
void fuse_rotation(ir::Graph& graph);

/// Two products of matrices with a SOFTMAX between them become one node that computes attention, so
/// that no scores are stored, in whatever order converters have the axes.
void fuse_attention(ir::Graph& graph);

/// A product of a tensor and its sigmoid becomes the activation ir::Activation::kSwish, that of x
/// and relu6(x + 3) / 6 becomes kHardSwish.
void fuse_swish(ir::Graph& graph);

/// A tensor that is multiplied by a gate, which one or two small products compute of the means over
/// an image's pixels, becomes one node with two launches (the family squeeze_excite). Without
/// `gates`, as with a memory budget, all stay apart. Runs after fuse_activation.
void fuse_squeeze_excite(ir::Graph& graph, bool gates, const DeviceInfo& device);

/// An activation that is the only reader of a node's result moves into that node's epilogue.
void fuse_activation(ir::Graph& graph);

/// An addition of two tensors of the same shape moves into the node that computes one of them, if
/// the addition is that tensor's only reader and the node's kernels can add a residual
/// (OpKind::residual). Of floats, the node has no activation yet, or PRELU's, after which the
/// residual is added.
void fuse_residual(ir::Graph& graph);

/// PRELU of floats with a constant slope for each channel, or one for all, that is the only reader
/// of a node's result moves into that node's epilogue, where kernels have its slopes as an operand
/// (OpKind::slopes); one slope for all is that of LEAKY_RELU. Runs before fuse_residual and after
/// it.
void fuse_prelu(ir::Graph& graph);

/// A function of one tensor of 8-bit integers that is the only reader of a product's result moves
/// into the product's tail, as a table.
void fuse_lookup(ir::Graph& graph);

/// How floats are multiplied by int8 weights.
enum class DynamicRange {
  kDequantize,  ///< the weights are read as floats, the sums are scaled
  kHybrid,      ///< the floats are quantised first, row by row: TFLite's hybrid arithmetic
};

/// Nodes of floats that a plan lists as integers compute with int8: their tensors have the plan's
/// scales, their weights a scale for each output channel, and their biases are int32. A tensor that
/// others need as floats, or with another scale, is converted. Runs before nodes are fused, so that
/// integers are fused as those of a quantised model.
void quantize_activations(ir::Graph& graph, const PrecisionPlan& plan);

/// Constant weights that a plan stores in 16 bits, of nodes whose input 0 has means in the plan,
/// are rounded, and the biases of these nodes get the mean of what that changes: each weight's loss
/// times the mean of what it multiplies. Runs before nodes are fused, which may hide the input.
void round_weights(ir::Graph& graph, const PrecisionPlan& plan);

/// Constant weights of floats that a plan lists become int8, with a scale for each output channel.
void quantize_weights(ir::Graph& graph, const PrecisionPlan& plan);

/// Float nodes with int8 weights get the weights' scales as an input (ops::kWeightScales); with
/// kHybrid, new nodes before them quantise their input. Nodes that have scales stay as they are.
void dynamic_range(ir::Graph& graph, DynamicRange mode);

/// A padding of height and width, with zeros or mirrored (MIRROR_PAD's mode REFLECT), or a crop of
/// them, moves into the convolutions that read it if all its readers are convolutions with VALID
/// padding.
void fuse_pad(ir::Graph& graph);

/// Which depthwise convolutions are merged with the 1x1 convolution that follows.
enum class Separable {
  kNever,
  kWherePays,
  kPairs,   ///< all, but not with the 1x1 convolution before them, as engines of pairs need it
  kBlocks,  ///< all, and with the 1x1 convolution before them where there is one
};

/// A depthwise convolution and the 1x1 convolution that is its only reader become one node, which
/// may compute both in one launch; where a kernel may compute it, too, with the 1x1 convolution
/// before them, if nothing else reads its result. Without `halves`, kWherePays does not count the
/// kernels of halves, which compute whole results only.
void fuse_separable(ir::Graph& graph, Separable separable, bool halves, const DeviceInfo& device);

/// Which poolings are merged with what computes their image.
enum class Pooling {
  kNever,
  kWherePays,  ///< those that one launch computes faster, according to measurements
  kAlways,     ///< all that a kernel can compute
};

/// A pooling that is the only reader of what a convolution or a local response normalisation
/// computes becomes one node with it.
void fuse_pooling(ir::Graph& graph, Pooling pooling, const DeviceInfo& device);

/// Whether experts that no sample has chosen are computed.
enum class Experts {
  kDense,   ///< they are, and multiplied by zero; the host chooses between branches
  kSparse,  ///< they are not
};

/// A branch whose condition only an inference knows becomes part of the graph around it if its two
/// graphs have few nodes: a node for each result chooses (ops::choice_of). Not where a graph has
/// nodes that run graphs or may choose experts.
void inline_branches(ir::Graph& graph, Experts experts);

/// A float product of two tensors one of which, the gate, is computed of the largest elements of a
/// tensor (ops::Family::selects): the nodes that only the other one needs, an expert, run only if
/// an element of the gate is not 0 (Node::predicate). Where the gate is 0, so is the product, even
/// if the expert would be infinite or NaN there. Nodes that only one graph of a branch needs run
/// only if the condition chooses it. Where tensor cores compute many samples, which leave hardly an
/// expert that nobody picks, all experts run. Relies on dimensions there.
void skip_experts(ir::Graph& graph, Experts experts, const DeviceInfo& device);

/// A BATCH_MATMUL with matrices that a GATHER has chosen among those of all experts reads them
/// where they are; the GATHER has no readers then.
void gather_experts(ir::Graph& graph, Experts experts);

/// Experts with predicates (skip_experts) that differ in nothing but constants, whose gates are
/// weights at the indices of the largest scores, and whose products with the gates are added: each
/// operation of theirs becomes one node, which computes it for those that each sample has picked,
/// with the matrices of all experts as one constant. Without `groups`, as with a memory budget, all
/// stay apart. Relies on dimensions.
void group_experts(ir::Graph& graph, bool groups, const DeviceInfo& device);

/// A normalisation by the mean square moves into the products of matrices that read its result, and
/// a multiplication of the results of two products of the same rows into one node with them; the
/// rotation of a row, and its update of a part of a tensor, into the product that computes the row:
/// where the device has one launch for that, NVIDIA's tensor cores, for few rows. Without
/// `products`, as the option engines names a kernel of theirs, all stay apart. Runs after
/// choose_storage.
void fuse_products(ir::Graph& graph, bool products, const DeviceInfo& device);

/// Removes nodes whose results have no readers, and constants of tensors without readers.
void remove_dead(ir::Graph& graph);

/// Sets Node::allows_tf32 of a plan's nodes, and of those whose first input it stores as half:
/// halves have no more mantissa bits than TF32 numbers.
void allow_tf32(ir::Graph& graph, const PrecisionPlan& plan);

/// Sets Tensor::storage. Graph inputs and outputs keep the model's type, as do views of them and
/// small tensors, unless `half_io`: then all tensors are half and the host converts inputs and
/// outputs. With `half_weights`, large constants are half with any precision. With kMixed, a tensor
/// is half if kFp16 would make it half and `plan` lists it, inputs and outputs with `half_io`
/// whatever it lists; views follow the tensor they are views
/// of. Null: no tensor is listed. Carried tensors are half only with `half_carried`: each graph
/// that uses them must say the same.
void choose_storage(ir::Graph& graph, Precision precision, bool half_io, bool half_weights,
                    bool half_carried, const PrecisionPlan* plan);

/// Moves nodes of kinds with ir::OpKind::bundled, which do not depend on each other, next to the
/// first of them, with the views that they read: one launch may then compute them. Nodes with large
/// results stay where they are, and those that would change a carried tensor before others have
/// read it. Runs after choose_storage.
void bring_together(ir::Graph& graph);

/// Orders nodes by how many others must run before them: those of branches come side by side, so
/// that work-groups of a chain wait for each other once for all of them. Only with `chains`, on
/// NVIDIA's GPUs, and where results are small, as those of all branches take memory at once; not
/// where carried tensors, predicates or graphs of nodes tie nodes to their places. Runs after
/// choose_storage.
void order_levels(ir::Graph& graph, bool chains, const DeviceInfo& device);

/// Sets Node::half_sums of a plan's nodes, and with `all` of every node, if it has kernels with
/// half sums, and all factors of its products are stored as half or, where Graph::allows_half is
/// set or they are constants within the range of half, may be read as half. Runs after
/// choose_storage.
void choose_sums(ir::Graph& graph, bool all, const PrecisionPlan* plan);

/// QUANTIZE of floats moves into the kernel that writes its input, DEQUANTIZE into those that read
/// its result, or else into the one that writes its input, if these can convert
/// (ir::Tensor::is_converted): the node becomes a view. Each number is the same as with a launch of
/// its own, but halves are not rounded before they become integers. Runs after choose_storage.
void fuse_borders(ir::Graph& graph, bool fuses);

/// How the passes rewrite a graph; see the passes above.
struct PipelineOptions {
  Precision precision = Precision::kFp32;
  bool half_io = false;
  bool half_weights = false;
  bool half_carried = false;
  bool half_sums = false;  ///< with kFp16 and kMixed: of all nodes that have them
  std::shared_ptr<const PrecisionPlan> plan{};  ///< with kMixed; null: none is known
  Separable separable = Separable::kWherePays;
  Pooling pooling = Pooling::kWherePays;
  bool products = true;  ///< of fuse_products
  bool norms = true;     ///< of fuse_layer_norm
  bool gates = true;     ///< of fuse_squeeze_excite
  bool blocks = true;    ///< of fuse_separable: its `halves`
  bool borders = true;   ///< of fuse_borders
  bool chains = false;   ///< of order_levels
  DynamicRange dynamic_range = DynamicRange::kDequantize;
  Experts experts = Experts::kSparse;
  bool grouped_experts = true;  ///< of group_experts
  /// False: branches of IF stay graphs of their own, so that only what runs needs device memory.
  bool inlines_branches = true;
};

/// One of the above.
struct Pass {
  const char* name;  ///< of its function
  void (*run)(ir::Graph& graph, const PipelineOptions& options, const DeviceInfo& device);
};

/// All of the above, in order; a pass may occur twice.
const std::vector<Pass>& pipeline();

/// Runs them. Throws InternalError if the result is not a valid graph.
void run_pipeline(ir::Graph& graph, const PipelineOptions& options, const DeviceInfo& device);

/// Sets the shape of every tensor that a node writes, from the shapes of the graph's inputs and
/// constants. Throws ShapeError, which names the node. Run again after the inputs' shapes change.
void infer_shapes(ir::Graph& graph);
/// The same for the outputs of one node.
void infer_shapes(ir::Graph& graph, ir::Node& node);

/// Gives the inputs of a graph that a node runs the shapes of the node's inputs.
void take_inputs(const ir::Graph& graph, const ir::Node& node, ir::Graph& inner);

/// Convolutions and other nodes of images that run only if an element of a gate is not 0 become
/// nodes of one sample each, if the gate has an element for each of at most `most` samples: each
/// runs only if the element of its sample is not 0. Not where they have fewer than `flops`
/// operations for a sample on average. Relies on dimensions: run after infer_shapes, on a copy.
void split_samples(ir::Graph& graph, int most, double flops);

/// How to treat inputs of a concatenation that cannot be written directly to their place.
enum class Concats {
  kCopyAll,  ///< launches copy them and all others
  kCopy,     ///< launches copy them
  kSplit,    ///< if convolutions read it, they become sums of convolutions of the inputs; otherwise
             ///< as kCopy
};

/// Inputs of concatenations are written in place (Tensor::placement), and additions to
/// concatenations move into the nodes that write the inputs. Concatenations of channels of more
/// than `most` bytes, which only convolutions and additions of two of them read, do not exist as a
/// whole: their readers read the parts, as with kSplit. Relies on dimensions: run after
/// infer_shapes, on a copy.
void remove_concatenations(ir::Graph& graph, Concats concats, std::int64_t most = INT64_MAX);

}  // namespace clgpu::passes
