// Family of TFLite_Detection_PostProcess: what an SSD detector ends with.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"
#include "tfl/flexbuffer.hpp"

namespace clgpu::ops {
namespace {

/// Detections, and classes of each: larger numbers than any detector has are damaged options.
constexpr std::int64_t kMost = 1 << 20;

struct DetectionAttrs : ir::Attrs {
  bool regular = false;  ///< suppression within each class; else of each box's best class
  int detections = 1;    ///< at most
  int width = 1;         ///< classes of a detection, if not regular
  int per_class = 100;   ///< detections of a class at most, if regular
  int classes = 1;       ///< without the background
  float least_score = 0, share = 0.5F;
  float y = 1, x = 1, h = 1, w = 1;  ///< by which offsets are divided
  CLGPU_FIELDS(regular, detections, width, per_class, classes, least_score, share, y, x, h, w)
};

/// An absent number is 0, as the stock kernel has it.
OrRefusal<int> count_of(const tfl::FlexMap& options, const char* name) {
  const std::int64_t count = options.integer(name).value_or(0);
  if (count < 1 || count > kMost)
    return wrong_value("the option " + std::string(name), count, "1 to " + std::to_string(kMost));
  return static_cast<int>(count);
}

OrRefusal<DetectionAttrs> read_options(const tfl::NodeView& node) {
  const auto options =
      tfl::FlexMap::read(node.custom_data(), node.custom_bytes(), "its custom options");
  if (!options) return options.refusal();
  DetectionAttrs attrs;
  attrs.regular = options->integer("use_regular_nms").value_or(0) != 0;
  const auto detections = count_of(*options, "max_detections");
  if (!detections) return detections.refusal();
  attrs.detections = *detections;
  // Sizes of the outputs in both modes.
  const auto width = count_of(*options, "max_classes_per_detection");
  if (!width) return width.refusal();
  attrs.width = *width;
  CLGPU_REFUSE_IF(attrs.width > kMost / attrs.detections, Why::kParameter,
                  "the number of detections times that of their classes", "is over 1048576");
  const auto classes = count_of(*options, "num_classes");
  if (!classes) return classes.refusal();
  attrs.classes = *classes;
  if (attrs.regular && options->has("detections_per_class")) {
    const auto per_class = count_of(*options, "detections_per_class");
    if (!per_class) return per_class.refusal();
    attrs.per_class = *per_class;
  }
  attrs.per_class = std::min(attrs.per_class, attrs.detections);
  const auto real = [&](const char* name) {
    return static_cast<float>(options->number(name).value_or(0));
  };
  attrs.least_score = real("nms_score_threshold");
  attrs.share = real("nms_iou_threshold");
  CLGPU_REFUSE_IF(!(attrs.share > 0 && attrs.share <= 1), Why::kParameter,
                  "the option nms_iou_threshold", "is not above 0 and at most 1");
  attrs.y = real("y_scale");
  attrs.x = real("x_scale");
  attrs.h = real("h_scale");
  attrs.w = real("w_scale");
  CLGPU_REFUSE_IF(attrs.y == 0 || attrs.x == 0 || attrs.h == 0 || attrs.w == 0, Why::kParameter,
                  "a scale of the boxes", "is 0 or absent");
  return attrs;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView boxes = node.input(0), scores = node.input(1), anchors = node.input(2);
  CLGPU_REFUSE_TYPE(boxes, "the input of boxes", DType::kF32, DType::kU8);
  CLGPU_REFUSE_TYPE(scores, "the input of scores", DType::kF32, DType::kU8);
  // The stock kernel reads anchors as it reads the boxes.
  CLGPU_REFUSE_TYPE(anchors, "the input of anchors", boxes.dtype());
  for (const tfl::TensorView& input : {boxes, scores, anchors}) {
    if (input.dtype() != DType::kU8) continue;
    if (auto refusal = check_per_tensor(input, "a quantised input")) return *refusal;
  }
  for (int i = 0; i < node.output_count(); ++i) {
    CLGPU_REFUSE_TYPE(node.output(i), "an output", DType::kF32);
  }
  CLGPU_REFUSE_RANK(boxes, "the input of boxes", 3, 3);
  CLGPU_REFUSE_RANK(scores, "the input of scores", 3, 3);
  CLGPU_REFUSE_RANK(anchors, "the input of anchors", 2, 2);
  const auto attrs = read_options(node);
  if (!attrs) return attrs.refusal();
  return Imported{share(*attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<DetectionAttrs>();
  const ir::Shape &boxes = node.input(0).shape, &scores = node.input(1).shape;
  const ir::Shape& anchors = node.input(2).shape;
  if (boxes[0] != 1 || scores[0] != 1) throw ShapeError("the batch of detections is not 1");
  if (scores[1] != boxes[1] || anchors[0] != boxes[1] || anchors[1] != 4 || boxes[2] < 4) {
    throw ShapeError("boxes " + boxes.str() + ", scores " + scores.str() + " and anchors " +
                     anchors.str() + " do not fit together");
  }
  const int background = scores[2] - attrs.classes;
  if (background != 0 && background != 1) {
    throw ShapeError("scores " + scores.str() + " are not of " + std::to_string(attrs.classes) +
                     " classes, with or without a background");
  }
  const int places = attrs.detections * attrs.width;
  return {ir::Shape{1, places, 4}, ir::Shape{1, places}, ir::Shape{1, places}, ir::Shape{1}};
}

struct Scale {
  float scale = 1, zero = 0;
};
Scale scale_of(const ir::Tensor& tensor) {
  if (!tensor.is_quantized()) return {};
  return {tensor.quantization->scales.front(), static_cast<float>(tensor.zero_point())};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<DetectionAttrs>();
  const ir::Tensor &boxes = node.input(0), &scores = node.input(1), &anchors = node.input(2);
  const std::int64_t count = boxes.shape[1], columns = scores.shape[2];
  const std::int64_t first = columns - attrs.classes;  // behind the background
  const std::int64_t groups = attrs.regular ? attrs.classes : 1;
  const std::int64_t most = attrs.regular ? attrs.per_class : attrs.detections;
  const std::size_t group = group_of(device.is_cpu() ? 64 : 256, device);
  const Scale box_scale = scale_of(boxes), anchor_scale = scale_of(anchors);
  const Scale score_scale = scale_of(scores);
  enum { kCorners, kBest, kKeys, kChosen, kCounts, kOrder };

  const auto launch_of = [&](const char* entry, DType score_type) {
    kernel::Launch launch("detection_postprocess/detection_postprocess.cl", entry);
    launch.macro("WG", static_cast<std::int64_t>(group));
    launch.type("BOX_T", boxes.storage).type("ANCHOR_T", anchors.storage);
    launch.type("SCORE_T", score_type);
    const char* const outputs[] = {"BOXES_T", "LABEL_T", "VALUE_T", "COUNT_T"};
    for (int i = 0; i < 4; ++i) launch.type(outputs[i], node.output(i).storage);
    return launch;
  };

  auto decode = launch_of("detection_postprocess_decode", scores.storage);
  decode.src(0).src(2).src(1).scratch_out(kCorners).scratch_out(kBest);
  decode.i32(count).i32(boxes.shape[2]).i32(columns).i32(first);
  decode.f32(attrs.y).f32(attrs.x).f32(attrs.h).f32(attrs.w);
  for (const Scale& s : {box_scale, anchor_scale, score_scale}) decode.f32(s.scale).f32(s.zero);
  decode.range({uz(count)}, {kElementwiseGroup});

  // Fast: the best score of each box is one class.
  auto choose =
      launch_of("detection_postprocess_choose", attrs.regular ? scores.storage : DType::kF32);
  choose.scratch_in(kCorners);
  if (attrs.regular) {
    choose.src(1);
  } else {
    choose.scratch_in(kBest);
  }
  choose.scratch_out(kKeys).scratch_out(kChosen).scratch_out(kCounts);
  choose.i32(count).i32(attrs.regular ? columns : 1).i32(attrs.regular ? first : 0).i32(most);
  const Scale chosen_scale = attrs.regular ? score_scale : Scale{};
  choose.f32(chosen_scale.scale).f32(chosen_scale.zero).f32(attrs.least_score).f32(attrs.share);
  choose.range({uz(groups) * group}, {group});

  const std::int64_t kept = std::min(attrs.width, attrs.classes);
  auto last = launch_of(
      attrs.regular ? "detection_postprocess_merge" : "detection_postprocess_fast", scores.storage);
  last.scratch_in(kCorners).src(1).scratch_in(kChosen).scratch_in(kCounts).scratch_out(kOrder);
  for (int i = 0; i < 4; ++i) last.dst(i);
  if (attrs.regular) {
    // The stock kernel leaves the places behind `detections` as they are.
    last.i32(static_cast<std::int64_t>(attrs.detections) * attrs.width).i32(attrs.detections);
    last.i32(columns).i32(first).i32(most);
  } else {
    last.i32(most).i32(columns).i32(first).i32(kept).i32(attrs.width);
  }
  last.f32(score_scale.scale).f32(score_scale.zero);
  last.range({attrs.regular ? group : uz(most)}, {attrs.regular ? group : kElementwiseGroup});

  const std::int64_t order = attrs.regular ? attrs.classes : most * kept;
  return {{"best_first",
           {decode, choose, last},
           {{count * 16},
            {count * 4},
            {groups * count * 4},
            {groups * most * 4},
            {groups * 4},
            {order * 4}}}};
}

/// Each round compares all boxes with the last one that was chosen.
double flops(const NodeContext& node) {
  const auto& attrs = node.attrs<DetectionAttrs>();
  const double rounds =
      attrs.regular ? static_cast<double>(attrs.per_class) * attrs.classes : attrs.detections;
  return 20.0 * rounds * static_cast<double>(node.input(0).shape[1]);
}

}  // namespace

extern const Family kDetectionPostprocessFamily;
const Family kDetectionPostprocessFamily = [] {
  Family family;
  family.name = "detection_postprocess";
  family.attrs = ir::attrs_type<DetectionAttrs>();
  family.customs = {{kTfLiteBuiltinCustom, "TFLite_Detection_PostProcess", 3, 0, 4, -1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
