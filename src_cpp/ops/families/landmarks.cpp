// Family of MediaPipe's Landmarks2TransformMatrix and TransformLandmarks: the matrix of a crop
// around landmarks, and landmarks of the crop as those of the image.
#include <algorithm>
#include <cstring>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"
#include "tfl/flexbuffer.hpp"

namespace clgpu::ops {
namespace {

/// A larger index or size is a damaged option.
constexpr std::int64_t kMost = 1 << 20;

struct LandmarksAttrs : ir::Attrs {
  bool makes_matrix = false;  ///< else landmarks are transformed
  int size = 3;               ///< numbers of a landmark
  float scale = 1;            ///< TransformLandmarks: of the last column of the matrix
  // Of kernels/landmarks/matrix.cl.
  bool relative = false;  ///< version 1 of the operation
  std::vector<int> chosen;
  int left = 0, right = 0;
  float direction = 0, scale_x = 1, scale_y = 1, half_x = 0, half_y = 0;
  float unit = 1, stretch_x = 1, stretch_y = 1;
  CLGPU_FIELDS(makes_matrix, size, scale, relative, chosen, left, right, direction, scale_x,
               scale_y, half_x, half_y, unit, stretch_x, stretch_y)
};

/// Reads options, and keeps the first refusal.
class Options {
 public:
  explicit Options(const tfl::FlexMap& map) : map_(map) {}

  const std::optional<Refusal>& refusal() const { return refusal_; }

  int whole(const char* name, std::int64_t least) {
    return checked(name, map_.integer(name).value_or(least - 1), least);
  }
  float positive(const char* name) {
    const auto value = static_cast<float>(map_.number(name).value_or(0));
    if (!(value > 0)) refuse({Why::kParameter, named(name), "is not above 0"});
    return value;
  }
  /// Two numbers above 0, the height first.
  std::vector<int> size(const char* name) {
    std::vector<int> list = whole_list(name, 1);
    if (list.size() == 2) return list;
    refuse({Why::kParameter, named(name), "is not a height and a width"});
    return {1, 1};
  }
  std::vector<int> whole_list(const char* name, std::int64_t least) {
    const tfl::FlexValue* value = map_.find(name);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
    if (list == nullptr || list->empty()) {
      refuse({Why::kParameter, named(name), "is not a list of integers"});
      return {};
    }
    std::vector<int> result;
    for (const std::int64_t number : *list) result.push_back(checked(name, number, least));
    return result;
  }

 private:
  static std::string named(const char* name) { return "the option " + std::string(name); }

  int checked(const char* name, std::int64_t value, std::int64_t least) {
    if (value >= least && value <= kMost) return static_cast<int>(value);
    refuse(wrong_value(named(name), value, std::to_string(least) + " to " + std::to_string(kMost)));
    return static_cast<int>(least);
  }
  void refuse(Refusal refusal) {
    if (!refusal_) refusal_ = std::move(refusal);
  }

  const tfl::FlexMap& map_;
  std::optional<Refusal> refusal_;
};

/// The indices as MediaPipe reads them: version 1 names them otherwise, and counts positions from
/// -1 to 1 on both sides.
OrRefusal<LandmarksAttrs> read_matrix(const tfl::FlexMap& map) {
  Options options(map);
  LandmarksAttrs attrs;
  attrs.makes_matrix = true;
  attrs.relative = !map.has("subset_idxs") && map.has("subset");
  attrs.left = options.whole("left_rotation_idx", 0);
  attrs.right = options.whole("right_rotation_idx", 0);
  if (attrs.relative) {
    attrs.chosen = options.whole_list("subset", 0);
    const int dimensions = options.whole("dimensions", 0);
    CLGPU_REFUSE_IF(dimensions != 3, Why::kParameter, "the option dimensions", "is not 3");
    const auto range = static_cast<float>(options.whole("landmarks_range", 1));
    const float multiplier = options.positive("bbox_size_multiplier");
    const std::vector<int> from = options.size("input_hw"), to = options.size("output_hw");
    attrs.stretch_x = static_cast<float>(from[1] - 1) / 2;
    attrs.stretch_y = static_cast<float>(from[0] - 1) / 2;
    attrs.half_x = -static_cast<float>(to[1] - 1) / 2;
    attrs.half_y = -static_cast<float>(to[0] - 1) / 2;
    CLGPU_REFUSE_IF(to[0] < 2 || to[1] < 2, Why::kParameter, "a side of the output", "is below 2");
    attrs.scale_x = multiplier / range / -attrs.half_x;
    attrs.scale_y = multiplier / range / -attrs.half_y;
    attrs.unit = 2 / range;
  } else {
    attrs.chosen = options.whole_list("subset_idxs", 0);
    attrs.direction = static_cast<float>(map.number("target_rotation_radians").value_or(0));
    const auto height = static_cast<float>(options.whole("output_height", 1));
    const auto width = static_cast<float>(options.whole("output_width", 1));
    attrs.half_x = -width / 2;
    attrs.half_y = -height / 2;
    attrs.scale_x = options.positive("scale_x") / width;
    attrs.scale_y = options.positive("scale_y") / height;
  }
  if (options.refusal()) return *options.refusal();
  return attrs;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0);
  CLGPU_REFUSE_TYPE(src, "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  CLGPU_REFUSE_RANK(src, "input", 3, 4);
  const bool makes_matrix = node.op() == "Landmarks2TransformMatrix";
  // Runtimes without the operation do not tell its version; options and ranks do. Version 2 of
  // TransformLandmarks has no options.
  const bool has_options = makes_matrix || src.rank() == 4;
  LandmarksAttrs attrs;
  if (has_options) {
    const auto map =
        tfl::FlexMap::read(node.custom_data(), node.custom_bytes(), "its custom options");
    if (!map) return map.refusal();
    if (makes_matrix) {
      const auto read = read_matrix(*map);
      if (!read) return read.refusal();
      return Imported{share(*read), {}};
    }
    const std::int64_t size = map->integer("dimensions").value_or(3);
    if (size != 2 && size != 3) return wrong_value("the option dimensions", size, "2, 3");
    attrs.size = static_cast<int>(size);
    attrs.scale = static_cast<float>(map->number("scale").value_or(1));
    CLGPU_REFUSE_IF(attrs.scale == 0, Why::kParameter, "the option scale", "is 0");
  } else {
    attrs.size = src.dim(2);
    if (attrs.size != 2 && attrs.size != 3)
      return wrong_value("the numbers of a landmark", attrs.size, "2, 3");
  }
  CLGPU_REFUSE_TYPE(node.input(1), "the matrix", DType::kF32);
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<LandmarksAttrs>();
  const ir::Shape& src = node.input(0).shape;
  if (src[0] != 1) throw ShapeError("the batch of the landmarks is not 1");
  if (src.back(0) % attrs.size != 0) {
    throw ShapeError("landmarks " + src.str() + " are not of " + std::to_string(attrs.size) +
                     " numbers each");
  }
  if (!attrs.makes_matrix) {
    const ir::Shape& matrix = node.input(1).shape;
    if (matrix.elements() != 16) throw ShapeError("the matrix " + matrix.str() + " is not 4 x 4");
    return {src};
  }
  const int largest = std::max(
      {attrs.left, attrs.right, *std::max_element(attrs.chosen.begin(), attrs.chosen.end())});
  if (largest >= src.elements() / attrs.size) {
    throw ShapeError("landmark " + std::to_string(largest) + " is not among landmarks " +
                     src.str());
  }
  return {ir::Shape{1, 4, 4}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<LandmarksAttrs>();
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  if (!attrs.makes_matrix) {
    const std::int64_t count = src.shape.elements() / attrs.size;
    kernel::Launch launch("landmarks/transform.cl", "landmarks_transform");
    launch.type("SRC_T", src.storage).type("MATRIX_T", node.input(1).storage);
    launch.type("DST_T", dst.storage);
    launch.src(0).src(1).dst(0).i32(count).i32(attrs.size).f32(attrs.scale);
    launch.range({uz(count)}, {kElementwiseGroup});
    return {{"transform", {launch}, {}}};
  }
  const std::size_t group = group_of(64, device);
  kernel::Launch launch("landmarks/matrix.cl", "landmarks_matrix");
  launch.macro("WG", static_cast<std::int64_t>(group)).macro("RELATIVE", attrs.relative ? 1 : 0);
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.src(0).scratch_in(0).dst(0).i32(static_cast<std::int64_t>(attrs.chosen.size()));
  launch.i32(attrs.left).i32(attrs.right).f32(attrs.direction);
  for (const float value : {attrs.scale_x, attrs.scale_y, attrs.half_x, attrs.half_y, attrs.unit,
                            attrs.stretch_x, attrs.stretch_y}) {
    launch.f32(value);
  }
  launch.range({group}, {group});
  return {{"matrix", {launch}, {kernel::table(attrs.chosen)}}};
}

}  // namespace

extern const Family kLandmarksFamily;
const Family kLandmarksFamily = [] {
  Family family;
  family.name = "landmarks";
  family.attrs = ir::attrs_type<LandmarksAttrs>();
  family.customs = {{kTfLiteBuiltinCustom, "Landmarks2TransformMatrix", 1},
                    {kTfLiteBuiltinCustom, "TransformLandmarks", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
