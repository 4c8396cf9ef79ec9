// Family of SHAPE, RANK, ZEROS_LIKE, FILL, RANGE and BROADCAST_ARGS. They have no kernels: planning
// computes their results on the host, because they depend only on shapes and constants.
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kShape = 77, kZerosLike = 93, kFill = 94, kRange = 96, kRank = 110,
              kBroadcastArgs = 145;

bool is_index(std::int32_t type) { return type == kTfLiteInt32 || type == kTfLiteInt64; }

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const std::int32_t result = node.output(0).tflite_type();
  switch (node.builtin()) {
    case kShape:
    case kRank:
      if (!is_index(result))
        return Refusal{Why::kType, "output 0", {}, tfl::type_name(result), {"int32", "int64"}};
      break;
    case kFill:
      CLGPU_REFUSE_IF(!node.input(0).ints(), Why::kRunTime, "the shape");
      CLGPU_REFUSE_IF(!node.input(1).has_data(), Why::kRunTime, "the value");
      break;
    case kRange:
      for (int i = 0; i < 3; ++i)
        CLGPU_REFUSE_IF(!node.input(i).has_data(), Why::kRunTime, "start, limit or delta");
      break;
    case kBroadcastArgs:
      for (int i = 0; i < 2; ++i)
        CLGPU_REFUSE_IF(!node.input(i).has_data(), Why::kRunTime, "a shape");
      break;
    default:
      break;
  }
  return Imported{};
}

ir::Shapes infer(const NodeContext&) { throw ShapeError("its result is not known while planning"); }

}  // namespace

extern const Family kShapeValuesFamily;
const Family kShapeValuesFamily = [] {
  Family family;
  family.name = "shape_values";
  family.builtins = {{kShape, "SHAPE", 1, 0, 1, -1, true},
                     {kRank, "RANK", 1, 0, 1, -1, true},
                     {kZerosLike, "ZEROS_LIKE", 1, 0, 1, 0, true},
                     {kFill, "FILL", 2, 0, 1, 1},
                     {kRange, "RANGE", 3},
                     {kBroadcastArgs, "BROADCAST_ARGS", 2}};
  for (Operation& operation : family.builtins) {
    if (operation.code == kFill || operation.code == kBroadcastArgs) operation.settings = {0, 1};
    if (operation.code == kRange) operation.settings = {0, 1, 2};
  }
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer;
  family.allows_quantized = true;
  return family;
}();

}  // namespace clgpu::ops
