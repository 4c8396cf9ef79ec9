// The part of TensorFlow Lite's C ABI that a delegate touches, declared by us.
//
// No package ships these headers, so names, order and types follow the published interface and the
// static_asserts pin the layout (any LP64 platform, TensorFlow 2.14 to LiteRT 2.3). All enums are
// int32_t: their size must not depend on compiler flags. Only tfl/ and delegate/ may include this.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct TfLiteContext;
struct TfLiteDelegate;
struct TfLiteNode;
struct TfLiteRegistration;

using TfLiteStatus = std::int32_t;
constexpr TfLiteStatus kTfLiteOk = 0;
constexpr TfLiteStatus kTfLiteError = 1;
constexpr TfLiteStatus kTfLiteDelegateError = 2;
constexpr TfLiteStatus kTfLiteOutputShapeNotKnown = 9;  ///< of prepare: only invoke knows it

using TfLiteType = std::int32_t;
enum : std::int32_t {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
  kTfLiteInt2 = 20
};

using TfLiteAllocationType = std::int32_t;
enum : std::int32_t {
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6  // the application's
};

/// Delegate flags: shapes may change after Prepare; we set them in the kernel's prepare.
constexpr std::int64_t kTfLiteDelegateFlagsAllowDynamicTensors = 1;

constexpr std::int32_t kTfLiteBuiltinDelegate = 51;
constexpr std::int32_t kTfLiteBuiltinCustom = 32;

struct TfLiteIntArray {
  int size;
  int data[];
};
struct TfLiteFloatArray {
  int size;
  float data[];
};
struct TfLiteQuantizationParams {
  float scale;
  std::int32_t zero_point;
};
struct TfLiteQuantization {
  std::int32_t type;  // 0 none, 1 affine, 2 blockwise
  void* params;
};
struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  std::int32_t quantized_dimension;
};
/// TfLiteQuantization::type 2: some neighbours along the last axis share a scale.
struct TfLiteBlockwiseQuantization {
  std::int32_t scale, zero_point;  // tensors
  std::int32_t blocksize;
  std::int32_t quantized_dimension;
};
struct TfLiteDimensionMetadata {
  std::int32_t format;  // 0 dense, 1 sparse (compressed sparse row)
  int dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
};
struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int dim_metadata_size;
};
struct TfLiteTensor {
  TfLiteType type;
  void* data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  std::size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;
  const TfLiteIntArray* dims_signature;
};
struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  TfLiteDelegate* delegate;
  bool might_have_side_effect;
};
struct TfLiteRegistration {
  void* (*init)(TfLiteContext*, const char* buffer, std::size_t length);
  void (*free)(TfLiteContext*, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*);
  TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*);
  const char* (*profiling_string)(const TfLiteContext*, const TfLiteNode*);
  std::int32_t builtin_code;
  const char* custom_name;
  int version;
  void* registration_external;
  void* async_kernel;
  std::uint64_t inplace_operator;
#if UINTPTR_MAX > 0xffffffffU
  // Zeros behind the fields that today's runtimes read: the struct is passed in memory, so a longer
  // one is harmless, and a shorter one would be fatal if a later runtime appends a field. Not on
  // 32-bit ABIs, where arguments follow.
  std::uint64_t reserved[5];
#endif
};
struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext*, TfLiteDelegate*);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext*, TfLiteDelegate*, int, TfLiteTensor*);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext*, TfLiteDelegate*, int, TfLiteTensor*);
  void (*FreeBufferHandle)(TfLiteContext*, TfLiteDelegate*, int*);
  std::int64_t flags;
  void* opaque_delegate_builder;
  std::uint64_t reserved[4];
};
struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};
struct TfLiteContext {
  std::size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext*, TfLiteIntArray**);
  TfLiteTensor* tensors;
  void* impl_;
  TfLiteStatus (*ResizeTensor)(TfLiteContext*, TfLiteTensor*, TfLiteIntArray*);
  void (*ReportError)(TfLiteContext*, const char* format, ...);
  TfLiteStatus (*AddTensors)(TfLiteContext*, int, int*);
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext*, int, TfLiteNode**, TfLiteRegistration**);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext*, TfLiteRegistration,
                                                        const TfLiteIntArray*, TfLiteDelegate*);
  int recommended_num_threads;
  void* (*GetExternalContext)(TfLiteContext*, std::int32_t);
  void (*SetExternalContext)(TfLiteContext*, std::int32_t, void*);
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* (*AllocatePersistentBuffer)(TfLiteContext*, std::size_t);
  TfLiteStatus (*AllocateBufferForEval)(TfLiteContext*, std::size_t, void**);
  TfLiteStatus (*RequestScratchBufferInArena)(TfLiteContext*, std::size_t, int*);
  void* (*GetScratchBuffer)(TfLiteContext*, int);
  TfLiteStatus (*ResizeTensorExplicit)(TfLiteContext*, TfLiteTensor*, int, const int*);
  TfLiteStatus (*PreviewDelegatePartitioning)(TfLiteContext*, const TfLiteIntArray*,
                                              TfLiteDelegateParams**, int*);
  TfLiteTensor* (*GetTensor)(const TfLiteContext*, int);
  void* (*GetEvalTensor)(const TfLiteContext*, int);
  TfLiteStatus (*GetModelMetadata)(const TfLiteContext*, const char*, const char**, std::size_t*);
  TfLiteStatus (*AcquireSubgraphContext)(TfLiteContext*, int, TfLiteContext**);
  TfLiteStatus (*ReleaseSubgraphContext)(TfLiteContext*, int);
};

#if UINTPTR_MAX > 0xffffffffU
static_assert(sizeof(TfLiteTensor) == 112 && offsetof(TfLiteTensor, allocation_type) == 32);
static_assert(offsetof(TfLiteTensor, quantization) == 80 &&
              offsetof(TfLiteTensor, dims_signature) == 104);
static_assert(sizeof(TfLiteNode) == 80 && offsetof(TfLiteNode, builtin_data) == 40);
static_assert(offsetof(TfLiteRegistration, inplace_operator) == 80 &&
              sizeof(TfLiteRegistration) == 128);
static_assert(offsetof(TfLiteDelegate, opaque_delegate_builder) == 48);
static_assert(sizeof(TfLiteDelegateParams) == 32 && sizeof(TfLiteContext) == 200);
static_assert(offsetof(TfLiteContext, PreviewDelegatePartitioning) == 152);
#endif

}  // extern "C"

// Parameters of builtin operations (TfLiteNode::builtin_data). Padding: 1 SAME, 2 VALID. Fields
// that later runtimes append are left out: reading them requires knowing the runtime.
namespace clgpu::tfl {

struct ConvParams {
  std::int32_t padding, stride_width, stride_height, activation, dilation_width, dilation_height;
};
struct DepthwiseConvParams {
  std::int32_t padding, stride_width, stride_height, depth_multiplier, activation, dilation_width,
      dilation_height;
};
struct TransposeConvParams {
  std::int32_t padding, stride_width, stride_height, activation;
};
struct FullyConnectedParams {
  std::int32_t activation, weights_format;
  bool keep_num_dims, asymmetric_quantize_inputs;
};
struct BatchMatMulParams {
  bool adj_x, adj_y, asymmetric_quantize_inputs;
};
struct ActivationParams {
  std::int32_t activation;
};  // ADD SUB MUL DIV L2_NORMALIZATION
struct AddParams {
  std::int32_t activation;
  bool pot_scale_int16;  ///< int16 is only shifted if the scales are powers of two
};  // ADD SUB
struct PoolParams {
  std::int32_t padding, stride_width, stride_height, filter_width, filter_height, activation;
};
struct LrnParams {
  std::int32_t radius;
  float bias, alpha, beta;
};
struct SoftmaxParams {
  float beta;
};
struct LeakyReluParams {
  float alpha;
};
struct GeluParams {
  bool approximate;
};
struct ConcatenationParams {
  std::int32_t axis, activation;
};
struct ReshapeParams {
  std::int32_t shape[8], num_dimensions;
};
/// Indices of graphs: of IF those for true and for false, of WHILE the condition and the body.
struct ControlFlowParams {
  std::int32_t first_graph, second_graph;
};
struct VarHandleParams {
  const char *container, *shared_name;
};
struct SqueezeParams {
  std::int32_t squeeze_dims[8], num_squeeze_dims;
};
struct MirrorPadParams {
  std::int32_t mode;
};  // 1 REFLECT, 2 SYMMETRIC
struct ResizeParams {
  bool align_corners, half_pixel_centers;
};
struct ReducerParams {
  bool keep_dims;
};
struct CumsumParams {
  bool exclusive, reverse;
};
struct StridedSliceParams {
  std::int32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
  bool offset;
};
struct SplitParams {
  std::int32_t num_splits;
};
struct BlockParams {
  std::int32_t block_size;
};
struct GatherParams {
  std::int32_t axis, batch_dims;
};
struct PackParams {
  std::int32_t values_count, axis;
};
struct UnpackParams {
  std::int32_t num, axis;
};
struct CastParams {
  std::int32_t in_type, out_type;
};
struct OutputTypeParams {
  std::int32_t output_type;
};  // ARG_MAX ARG_MIN
struct OneHotParams {
  std::int32_t axis;
};
struct LstmParams {
  std::int32_t activation;
  float cell_clip, proj_clip;
  std::int32_t kernel_type;  ///< 0 full, 1 basic
  bool asymmetric_quantize_inputs;
};
struct SequenceLstmParams {
  std::int32_t activation;
  float cell_clip, proj_clip;
  bool time_major, asymmetric_quantize_inputs;
};
struct BidirectionalLstmParams {
  std::int32_t activation;
  float cell_clip, proj_clip;
  bool merge_outputs, time_major, asymmetric_quantize_inputs;
};
struct RnnParams {
  std::int32_t activation;
  bool asymmetric_quantize_inputs;
};
struct SequenceRnnParams {
  bool time_major;
  std::int32_t activation;
  bool asymmetric_quantize_inputs;
};
struct BidirectionalRnnParams {
  bool time_major;
  std::int32_t activation;
  bool merge_outputs, asymmetric_quantize_inputs;
};
struct SvdfParams {
  std::int32_t rank, activation;
  bool asymmetric_quantize_inputs;
};
/// Early runtimes have the version behind the other fields; neither place moves one that is read.
struct CompositeParams {
  const char* name;
  std::int32_t subgraph_index, version;
  const std::uint8_t* attributes;  ///< a map in the format FlexBuffers
  std::size_t attributes_size;
};
static_assert(offsetof(CompositeParams, attributes) == 2 * sizeof(void*));
struct ReverseSequenceParams {
  std::int32_t seq_dim, batch_dim;
};
struct Conv3dParams {
  std::int32_t padding, stride_width, stride_height, stride_depth, dilation_width, dilation_height,
      dilation_depth, activation;
};  // CONV_3D CONV_3D_TRANSPOSE

/// First field of MediaPipe's and TFLite's custom pooling operations: same layout as PoolParams.
using CustomPoolParams = PoolParams;

}  // namespace clgpu::tfl
