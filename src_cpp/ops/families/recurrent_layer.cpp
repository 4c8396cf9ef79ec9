// The launches of recurrent layers: weights are packed, then multiplied by the inputs of all steps
// at once; the steps follow.
#include <algorithm>

#include "ops/families/recurrent.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops::recurrent {
namespace {

constexpr std::int64_t kNumber = 4;    // bytes of Types::sums
constexpr std::int64_t kMoments = 12;  // numbers, see sequence.cl

// Of the packed weights of these slots: that of all of them, or float.
DType packed_type(const NodeContext& node, const std::vector<int>& slots) {
  const DType first = node.input(slots.front()).storage;
  const bool alike = std::all_of(slots.begin(), slots.end(),
                                 [&](int slot) { return node.input(slot).storage == first; });
  return alike ? first : DType::kF32;
}

// Work-items of the group that computes the steps of an image, with so many columns of gates.
std::size_t group_for(int cols, const DeviceInfo& device) {
  // Mobile GPUs have few registers for work-items of large groups.
  const std::size_t most = device.is_cpu() ? 64 : device.is_mobile() ? 256 : 1024;
  std::size_t group = 64;
  while (group < most && group < uz(cols)) group *= 2;
  return group_of(group, device);
}

}  // namespace

Layer::Layer(Builder& builder, const NodeContext& node, const Direction& d,
             const DeviceInfo& device, Types types)
    : b_(builder),
      node_(node),
      d_(d),
      gates_(gates_of(node, d)),
      device_(device),
      types_(types),
      size_(sizes_of(node, d)),
      cols_(size_.cells * static_cast<int>(gates_.size())) {}

void Layer::sequence() {
  prepare();
  product(true, false, 0);
  steps(true, 0);
}

void Layer::step_by_step() {
  prepare();
  const bool one = size_.steps == 1;
  if (!one) {
    product(true, false, 0);
    h_ = states(size_.outputs, types_.h);
    c_ = states(size_.cells, types_.c);
  }
  for (int step = 0; step < size_.steps; ++step) {
    product(one, true, step);
    steps(false, step);
  }
}

std::vector<int> Layer::of(const Slots& slots) const {
  std::vector<int> result;
  for (const int gate : gates_) result.push_back(slots[uz(gate)]);
  return result;
}

int Layer::states(int width, DType type) {
  return b_.scratch(std::int64_t{size_.batch} * width * static_cast<int>(size_of(type)));
}

kernel::Launch& Layer::add_number(kernel::Launch& launch, float number) const {
  return integers() ? launch.i32(static_cast<std::int64_t>(number)) : launch.f32(number);
}

kernel::Launch& Layer::set_weights(kernel::Launch& launch, const char* macro,
                                   const std::vector<int>& slots) const {
  const bool scaled = !integers() && node_.input(slots.front()).is_quantized();
  return scaled ? launch.macro(macro, "weight8") : launch.type(macro, packed_type(node_, slots));
}

// The matrices of some gates side by side, transposed: [depth, gates * cells]. int8 stays int8.
int Layer::packed(const std::vector<int>& slots) {
  const ir::Tensor& any = node_.input(slots.front());
  const int rows = any.shape[0], depth = static_cast<int>(any.shape.elements() / rows);
  const auto cols = rows * static_cast<int>(slots.size());
  const DType type = packed_type(node_, slots);
  const int index = b_.scratch(std::int64_t{depth} * cols * static_cast<int>(size_of(type)));
  int first = 0;
  for (const int slot : slots) {
    kernel::Launch launch("recurrent/pack.cl", "recurrent_pack");
    launch.type("SRC_T", node_.input(slot).storage).type("DST_T", type);
    launch.src(slot).scratch_out(index).i32(rows).i32(depth).i32(cols).i32(first);
    b_.candidate.launches.push_back(
        launch.range({uz(std::int64_t{rows} * depth)}, {kElementwiseGroup}));
    first += rows;
  }
  return index;
}

void Layer::vector(int slot, std::int64_t first) {
  if (!has(slot)) return;
  const ir::Tensor& tensor = node_.input(slot);
  kernel::Launch launch("recurrent/pack.cl", "recurrent_vector");
  launch.type("SRC_T", tensor.storage).type("DST_T", types_.sums);
  const std::int64_t count = tensor.shape.elements();
  launch.src(slot).scratch_out(vectors_).i32(count).i32(first);
  add_number(launch, integers() ? 1.0F : scale_of(tensor));
  b_.candidate.launches.push_back(launch.range({uz(count)}, {kElementwiseGroup}));
}

void Layer::vectors() {
  const int cells = size_.cells;
  vectors_ = b_.scratch((2 * cols_ + 3 * cells + size_.outputs) * kNumber);
  const std::int64_t peephole = cols_, norm = peephole + 3 * cells;
  for (std::size_t i = 0; i < gates_.size(); ++i) {
    const auto first = static_cast<std::int64_t>(i) * cells;
    vector(d_.bias[uz(gates_[i])], first);
    vector(d_.norm[uz(gates_[i])], norm + first);
  }
  vector(d_.peephole[0], peephole);
  vector(d_.peephole[1], peephole + cells);
  vector(d_.peephole[3], peephole + 2 * cells);
  vector(d_.projection_bias, norm + cols_);
}

void Layer::prepare() {
  wx_ = packed(of(d_.wx));
  if (d_.aux >= 0) wa_ = packed(of(d_.wa));
  wh_ = packed(of(d_.wh));
  if (has(d_.projection)) wp_ = packed({d_.projection});
  vectors();
  add_tables();
  pre_ = b_.scratch(std::int64_t{size_.rows()} * cols_ * static_cast<int>(size_of(types_.pre)));
}

// The products of the inputs of all steps, or of one step, with those of its state, or these only.
void Layer::product(bool input, bool state, int step) {
  kernel::Launch launch("recurrent/product.cl", "recurrent_product");
  const bool whole = input && !state, aux = input && d_.aux >= 0;
  const int rows = whole ? size_.rows() : size_.batch;
  launch.macro("INTEGER", integers() ? 1 : 0);
  launch.type("ACC_T", types_.sums).type("PRE_T", types_.pre);
  launch.macro("INPUT", input ? 1 : 0).macro("AUX", aux ? 1 : 0).macro("STATE", state ? 1 : 0);
  launch.macro("START", !input ? 2 : has_norm() ? 0 : 1);
  if (input) {
    set_weights(launch.type("X_T", node_.input(d_.x).storage), "WX_T", of(d_.wx));
    launch.src(d_.x).scratch_in(wx_).i32(size_.inputs);
  }
  if (aux) {
    set_weights(launch.type("AUX_T", node_.input(d_.aux).storage), "WA_T", of(d_.wa));
    launch.src(d_.aux).scratch_in(wa_).i32(size_.aux);
  }
  if (state) {
    const bool first = step == 0;
    set_weights(launch.type("H_T", first ? node_.input(d_.h).storage : types_.h), "WH_T",
                of(d_.wh));
    (first ? launch.src(d_.h) : launch.scratch_in(h_)).scratch_in(wh_).i32(size_.outputs);
  }
  launch.scratch_in(vectors_).scratch_in(scales_);
  input ? launch.scratch_out(pre_) : launch.scratch_inout(pre_);
  launch.i32(rows).i32(cols_).i32(size_.cells);
  if (whole) {
    launch.i32(0).i32(1);
  } else {
    launch.i32(std::int64_t{time(step)} * size_.t_stride).i32(size_.b_stride);
  }
  if (integers()) launch.i32(node_.input(d_.x).zero_point()).i32(node_.input(d_.h).zero_point());
  const int per_item = rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
  const std::size_t group = group_of(device_.is_cpu() ? 32 : 256, device_);
  const std::size_t wx = std::min<std::size_t>(32, group), wy = group / wx;
  launch.macro("ROWS", per_item);
  launch.macro("WX", static_cast<std::int64_t>(wx)).macro("WY", static_cast<std::int64_t>(wy));
  const std::size_t columns = uz(ceil_div(cols_, static_cast<std::int64_t>(wx)));
  launch.range({columns * group, uz(ceil_div(rows, per_item))}, {group, 1});
  b_.candidate.launches.push_back(launch);
}

// All steps, or one whose products are complete.
void Layer::steps(bool all, int step) {
  const bool lstm = d_.c >= 0, projection = has(d_.projection);
  const bool first = all || step == 0, last = all || step == size_.steps - 1;
  const Clips clips = this->clips();
  kernel::Launch launch("recurrent/sequence.cl", "recurrent_sequence");
  launch.macro("INTEGER", integers() ? 1 : 0);
  launch.type("ACC_T", types_.sums).type("PRE_T", types_.pre);
  launch.macro("GATES", static_cast<std::int64_t>(gates_.size())).macro("FUSED", all ? 1 : 0);
  launch.macro("PEEPHOLE", has_peephole() ? 1 : 0).macro("NORM", has_norm() ? 1 : 0);
  launch.macro("PROJECTION", !projection ? 0 : has(d_.projection_bias) ? 2 : 1);
  launch.macro("CELL_CLIP", clips.cell > 0 ? 1 : 0).macro("PROJ_CLIP", clips.proj > 0 ? 1 : 0);
  launch.scratch_in(pre_);
  if (all) {
    set_weights(launch.type("H_SRC_T", node_.input(d_.h).storage), "WH_T", of(d_.wh));
    launch.src(d_.h).scratch_in(wh_);
  }
  if (lstm) {
    first ? launch.src(d_.c) : launch.scratch_in(c_);
    last ? launch.dst(d_.c_out) : launch.scratch_out(c_);
  }
  launch.type("C_SRC_T", lstm && first ? node_.input(d_.c).storage : types_.c);
  launch.type("C_DST_T", lstm && last ? node_.output(d_.c_out).storage : types_.c);
  if (projection) {
    set_weights(launch, "WP_T", {d_.projection}).scratch_in(wp_);
  } else {
    launch.type("WP_T", types_.h);
  }
  launch.type("H_DST_T", last ? node_.output(d_.h_out).storage : types_.h);
  last ? launch.dst(d_.h_out) : launch.scratch_out(h_);
  const ir::Tensor& dst = node_.output(d_.dst);
  launch.scratch_in(vectors_).scratch_in(scales_).type("DST_T", dst.storage).dst(d_.dst);
  const std::int64_t numbers = cols_ + size_.outputs + (lstm ? size_.cells : 0) + kMoments;
  const bool local = uz(numbers * kNumber) <= device_.local_bytes;
  launch.macro("SHARED", local ? "local" : "global");
  if (local) {
    launch.local_memory(uz(numbers * kNumber));
  } else {
    if (memory_ < 0) memory_ = b_.scratch(size_.batch * numbers * kNumber);
    launch.scratch_inout(memory_);
  }
  launch.i32(numbers).i32(all ? size_.steps : 1).i32(size_.cells).i32(size_.outputs);
  launch.i32(size_.t_stride).i32(size_.b_stride).i32(time(step)).i32(d_.reverse ? -1 : 1);
  launch.i32(dst.shape.back(0));
  launch.i32(attrs().merged && d_.reverse ? dst.shape.back(0) - size_.outputs : 0);
  add_number(launch, clips.cell);
  add_number(launch, clips.proj);
  add_arithmetic(launch);
  const std::size_t group = group_for(cols_, device_);
  launch.macro("WG", static_cast<std::int64_t>(group));
  b_.candidate.launches.push_back(launch.range({uz(size_.batch) * group}, {group}));
}

}  // namespace clgpu::ops::recurrent
