// Family of STRIDED_SLICE and SLICE: both read positions base + step * i along each axis.
#include "ops/families/strided_slice.hpp"

#include <algorithm>
#include <limits>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kStridedSlice = 45, kSlice = 65;

int to_int(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, std::numeric_limits<int>::min() / 2,
                                                   std::numeric_limits<int>::max() / 2));
}

OrRefusal<Imported> import_slice(const tfl::NodeView& node) {
  const tfl::TensorView from = node.input(1);
  const auto begin = from.ints(), size = node.input(2).ints();
  CLGPU_REFUSE_IF(!size, Why::kRunTime, "size");
  const std::int64_t rank = node.input(0).rank();
  CLGPU_REFUSE_IF(from.elements() != rank || static_cast<std::int64_t>(size->size()) != rank,
                  Why::kParameter, "begin and size", "do not have one value per axis of the input");
  SliceAttrs attrs;
  attrs.strided = false;
  for (std::size_t i = 0; i < size->size(); ++i) {
    CLGPU_REFUSE_IF((begin && (*begin)[i] < 0) || (*size)[i] < -1, Why::kParameter, "begin or size",
                    "is negative");
    AxisRule rule;
    rule.kind = AxisRule::Kind::kRange;
    rule.size = to_int((*size)[i]);
    if (begin) {
      rule.begin = to_int((*begin)[i]);
    } else {
      // The rest of an axis has another size with each begin.
      CLGPU_REFUSE_IF(rule.size == -1, Why::kRunTime, "begin");
      rule.place = static_cast<int>(i);
    }
    attrs.rules.push_back(rule);
  }
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import_strided(const tfl::NodeView& node) {
  const auto begin = node.input(1).ints(), end = node.input(2).ints(),
             stride = node.input(3).ints();
  CLGPU_REFUSE_IF(!stride, Why::kRunTime, "the tensor of strides");
  const int count = static_cast<int>(node.input(1).elements());
  CLGPU_REFUSE_IF(node.input(2).elements() != count || static_cast<int>(stride->size()) != count,
                  Why::kParameter, "begin, end and strides", "differ in length");
  const auto* params = node.params<tfl::StridedSliceParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto bit = [](std::int32_t mask, int i) { return i < 32 && ((mask >> i) & 1) != 0; };

  int ellipses = 0, from_input = 0;
  for (int i = 0; i < count; ++i) {
    if (bit(params->ellipsis_mask, i)) {
      ++ellipses;
    } else if (!bit(params->new_axis_mask, i)) {
      ++from_input;
    }
  }
  const int rest = node.input(0).rank() - from_input;
  CLGPU_REFUSE_IF(rest < 0, Why::kParameter, "begin", "names more axes than the input has");
  CLGPU_REFUSE_IF(ellipses > 1, Why::kParameter, "", "there is more than one ellipsis");
  // The stock kernel then takes it for one axis and ignores the last entry.
  CLGPU_REFUSE_IF(ellipses == 1 && rest == 0, Why::kParameter, "the ellipsis",
                  "does not stand for any axis");

  SliceAttrs attrs;
  attrs.end_is_offset = params->offset;
  for (int i = 0; i < count; ++i) {
    AxisRule rule;
    if (bit(params->ellipsis_mask, i)) {
      attrs.rules.insert(attrs.rules.end(), uz(rest), rule);
      continue;
    }
    if (bit(params->new_axis_mask, i)) {
      rule.kind = AxisRule::Kind::kNewAxis;
    } else {
      CLGPU_REFUSE_IF((*stride)[uz(i)] == 0, Why::kParameter, "a stride", "is 0");
      const bool is_index = bit(params->shrink_axis_mask, i);
      rule.kind = is_index ? AxisRule::Kind::kIndex : AxisRule::Kind::kRange;
      rule.stride = to_int((*stride)[uz(i)]);
      rule.from_start = bit(params->begin_mask, i);
      rule.to_end = bit(params->end_mask, i);
      // The size of a range follows from its ends.
      CLGPU_REFUSE_IF(!is_index && !end && !rule.to_end, Why::kRunTime, "end");
      CLGPU_REFUSE_IF(!is_index && !begin && !rule.from_start, Why::kRunTime, "begin");
      if (begin) {
        rule.begin = to_int((*begin)[uz(i)]);
      } else if (!rule.from_start) {
        rule.place = i;
      }
      if (end) rule.end = to_int((*end)[uz(i)]);
    }
    attrs.rules.push_back(rule);
  }
  if (ellipses == 0) attrs.rules.insert(attrs.rules.end(), uz(rest), AxisRule{});
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  if (!node.input(1).has_data())
    CLGPU_REFUSE_TYPE(node.input(1), "begin", DType::kI32, DType::kI64);
  return node.builtin() == kSlice ? import_slice(node) : import_strided(node);
}

bool reads_begins(const SliceAttrs& attrs) {
  return std::any_of(attrs.rules.begin(), attrs.rules.end(),
                     [](const AxisRule& rule) { return rule.place >= 0; });
}

/// Positions first, first + step, ... (`count` of them) along one axis.
struct Places {
  int first, step, count;
};

/// With a begin that only an inference has: those from position 0 on.
Places sliced(const AxisRule& rule, int extent) {
  const int count = rule.size == -1 ? extent - rule.begin : rule.size;
  if (count < 0 || rule.begin > extent - count) {
    throw ShapeError("begin " + std::to_string(rule.begin) + " and size " +
                     std::to_string(rule.size) + " exceed an axis of size " +
                     std::to_string(extent));
  }
  return {rule.begin, 1, count};
}

Places strided(const AxisRule& rule, int extent, bool end_is_offset) {
  const bool forward = rule.stride > 0;
  // A slice with a negative step may end before element 0.
  const int low = forward ? 0 : -1, high = forward ? extent : extent - 1;
  int begin = std::clamp(rule.begin < 0 ? rule.begin + extent : rule.begin, low, high);
  if (rule.from_start) begin = forward ? 0 : extent - 1;
  if (rule.kind == AxisRule::Kind::kIndex) {
    if (begin < 0 || begin >= extent) {
      throw ShapeError("index " + std::to_string(rule.begin) + " is outside of an axis of size " +
                       std::to_string(extent));
    }
    return {begin, 1, 1};
  }
  int end = end_is_offset ? rule.end + begin : rule.end;
  end = std::clamp(end < 0 ? end + extent : end, low, high);
  if (rule.to_end) end = forward ? extent : -1;
  const int reach = forward ? end - begin : begin - end;
  const std::int64_t count = ceil_div(std::max(0, reach), std::abs(rule.stride));
  return {begin, rule.stride, static_cast<int>(count)};
}

/// The shape of the output, and the copy that fills it.
struct Selection {
  std::vector<int> dims;
  StridedCopy copy;
};

Selection select(const SliceAttrs& attrs, const ir::Shape& src) {
  const std::vector<int> strides = src.strides();
  Selection result;
  int axis = 0;
  for (const AxisRule& rule : attrs.rules) {
    if (rule.kind == AxisRule::Kind::kNewAxis) {
      result.dims.push_back(1);
      continue;
    }
    Places places{0, 1, src[axis]};
    if (rule.kind != AxisRule::Kind::kWhole) {
      places =
          attrs.strided ? strided(rule, src[axis], attrs.end_is_offset) : sliced(rule, src[axis]);
    }
    if (rule.kind != AxisRule::Kind::kIndex) result.dims.push_back(places.count);
    result.copy.dims.push_back(places.count);
    // With a single position the step is never used, and may be huge.
    result.copy.strides.push_back(places.count > 1 ? places.step * strides[uz(axis)] : 0);
    result.copy.base += static_cast<std::int64_t>(places.first) * strides[uz(axis)];
    ++axis;
  }
  return result;
}

ir::Shapes infer(const NodeContext& node) {
  return {ir::Shape(select(node.attrs<SliceAttrs>(), node.input(0).shape).dims)};
}

/// With begins that only an inference has.
kernel::Launch slice_from(const NodeContext& node) {
  const auto& attrs = node.attrs<SliceAttrs>();
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  StridedCopy copy = select(attrs, src.shape).copy;
  std::vector<int> places, steps = src.shape.strides(), extents = src.shape.dims();
  for (const AxisRule& rule : attrs.rules) {
    if (rule.kind != AxisRule::Kind::kNewAxis) places.push_back(rule.place);
  }
  // Where the last axis is read as a whole, in wide units.
  const int last = extents.empty() ? 1 : extents.back();
  const bool whole = !extents.empty() && copy.dims.back() == last && places.back() < 0 &&
                     (last == 1 || copy.strides.back() == 1);
  const MoveUnit unit = move_unit(src.storage, dst.storage, whole ? last : 1);
  if (whole) {
    copy.dims.back() /= unit.elements;
    copy.base /= unit.elements;
    for (std::size_t k = 0; k + 1 < steps.size(); ++k) {
      copy.strides[k] /= unit.elements;
      steps[k] /= unit.elements;
    }
  }
  std::vector<int> lasts;
  for (std::size_t k = 0; k < extents.size(); ++k) lasts.push_back(extents[k] - copy.dims[k]);
  const std::int64_t n = dst.shape.elements() / unit.elements;
  kernel::Launch launch("strided_slice/from.cl", "strided_slice_from");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.type("INDEX_T", node.input(1).storage).macro("FROM_END", attrs.strided ? 1 : 0);
  launch.src(0).src(1).dst(0).i32(n).i32(copy.base);
  const auto push = [&](const std::vector<int>& values, int fill, std::size_t from) {
    const std::array<int, 6> all = six(values, fill);
    for (std::size_t k = from; k < all.size(); ++k) launch.i32(all[k]);
  };
  push(copy.dims, 1, 1);
  push(copy.strides, 0, 0);
  push(steps, 0, 0);
  push(places, -1, 0);
  push(lasts, 0, 0);
  launch.range({uz(n)}, {kElementwiseGroup});
  return launch;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  if (reads_begins(node.attrs<SliceAttrs>())) return {{"from", {slice_from(node)}, {}}};
  const StridedCopy copy = select(node.attrs<SliceAttrs>(), src.shape).copy;
  return {{"gather", {strided_copy(copy, src.storage, node.output(0).storage)}, {}}};
}

}  // namespace

std::vector<Margin> margins(const SliceAttrs& attrs) {
  std::vector<Margin> result;
  for (const AxisRule& rule : attrs.rules) {
    Margin margin;
    if (rule.kind == AxisRule::Kind::kRange) {
      margin.before = rule.from_start ? 0 : rule.begin;
      const bool to_end = attrs.strided ? rule.to_end : rule.size == -1;
      margin.after = to_end ? 0 : -rule.end;
      const bool from_back = attrs.strided && rule.end < 0 && !attrs.end_is_offset;
      if (rule.stride != 1 || margin.before < 0 || !(to_end || from_back)) return {};
    } else if (rule.kind != AxisRule::Kind::kWhole) {
      return {};
    }
    result.push_back(margin);
  }
  return result;
}

extern const Family kStridedSliceFamily;
const Family kStridedSliceFamily = [] {
  Family family;
  family.name = "strided_slice";
  family.attrs = ir::attrs_type<SliceAttrs>();
  family.builtins = {{kStridedSlice, "STRIDED_SLICE", 4}, {kSlice, "SLICE", 3}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kMovedIntegers;
  family.flops = no_flops;
  family.builtins[0].settings = {2};
  family.builtins[0].positions = {1, 3};
  family.builtins[1].settings = {2};
  // A size may turn out to be -1, the rest from a begin on: that inference is the CPU's.
  family.builtins[1].positions = {1};
  family.builtins[1].reads_positions = true;
  return family;
}();

}  // namespace clgpu::ops
