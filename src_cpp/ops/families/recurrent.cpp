// Family of recurrent layers: LSTM and RNN, of one step or a sequence, in one direction or two.
#include "ops/families/recurrent.hpp"

#include <algorithm>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace recurrent {

constexpr int kX = 0, kRnnAux = 9, kForgetNorm = 21, kLstmAux = 39;

Sizes sizes_of(const NodeContext& node, const Direction& d) {
  const ir::Shape& x = node.input(d.x).shape;
  const auto& attrs = node.attrs<RecurrentAttrs>();
  Sizes size;
  size.inputs = x.back(0);
  const std::size_t gate = d.c < 0 ? 0 : 1;
  size.cells = node.input(d.wx[gate]).shape[0];
  size.outputs = node.input(d.wh[gate]).shape.back(0);
  if (d.aux >= 0) size.aux = node.input(d.aux).shape.back(0);
  if (x.rank() == 2) {
    size.batch = x[0];
    size.b_stride = 1;
  } else if (attrs.time_major) {
    size.steps = x[0], size.batch = x[1];
    size.t_stride = size.batch, size.b_stride = 1;
  } else {
    size.batch = x[0], size.steps = x[1];
    size.t_stride = 1, size.b_stride = size.steps;
  }
  return size;
}

namespace {

constexpr int kLstm = 16, kRnn = 24, kUnidirectionalRnn = 35, kUnidirectionalLstm = 44,
              kBidirectionalRnn = 46, kBidirectionalLstm = 52;

template <class Params>
OrRefusal<RecurrentAttrs> read(const tfl::NodeView& node, Cell cell) {
  const auto* params = node.params<Params>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  RecurrentAttrs attrs;
  attrs.cell = cell;
  attrs.activation = epilogue->activation;
  return attrs;
}

template <class Params>
OrRefusal<RecurrentAttrs> read_lstm(const tfl::NodeView& node) {
  auto attrs = read<Params>(node, Cell::kLstm);
  if (!attrs) return attrs;
  const auto* params = node.params<Params>();
  (*attrs).cell_clip = params->cell_clip;
  (*attrs).proj_clip = params->proj_clip;
  for (const float clip : {attrs->cell_clip, attrs->proj_clip})
    CLGPU_REFUSE_IF(!(clip >= 0), Why::kParameter, "a clip", "is negative");
  return attrs;
}

OrRefusal<RecurrentAttrs> read_attrs(const tfl::NodeView& node) {
  switch (node.builtin()) {
    case kLstm: {
      auto attrs = read_lstm<tfl::LstmParams>(node);
      CLGPU_REFUSE_IF(attrs && node.params<tfl::LstmParams>()->kernel_type != 0, Why::kParameter,
                      "the kernel of the LSTM", "is the basic one");
      return attrs;
    }
    case kUnidirectionalLstm: {
      auto attrs = read_lstm<tfl::SequenceLstmParams>(node);
      if (attrs) (*attrs).time_major = node.params<tfl::SequenceLstmParams>()->time_major;
      return attrs;
    }
    case kBidirectionalLstm: {
      auto attrs = read_lstm<tfl::BidirectionalLstmParams>(node);
      if (!attrs) return attrs;
      const auto* params = node.params<tfl::BidirectionalLstmParams>();
      (*attrs).bidirectional = true;
      (*attrs).merged = params->merge_outputs;
      (*attrs).time_major = params->time_major;
      return attrs;
    }
    case kUnidirectionalRnn: {
      auto attrs = read<tfl::SequenceRnnParams>(node, Cell::kRnn);
      if (attrs) (*attrs).time_major = node.params<tfl::SequenceRnnParams>()->time_major;
      return attrs;
    }
    case kBidirectionalRnn: {
      auto attrs = read<tfl::BidirectionalRnnParams>(node, Cell::kRnn);
      if (!attrs) return attrs;
      const auto* params = node.params<tfl::BidirectionalRnnParams>();
      (*attrs).bidirectional = true;
      (*attrs).merged = params->merge_outputs;
      (*attrs).time_major = params->time_major;
      // The reference kernel reads other elements otherwise.
      const bool is_second = node.has_input(kRnnAux) && !node.has_input(kRnnAux + 1);
      CLGPU_REFUSE_IF(is_second && !params->time_major, Why::kOperands, "an auxiliary input",
                      "without weights needs the steps on the first axis");
      CLGPU_REFUSE_IF(node.has_input(kRnnAux) && params->time_major &&
                          node.input(kRnnAux).dims().back() != node.input(kX).dims().back(),
                      Why::kOperands, "an auxiliary input",
                      "with the steps on the first axis needs the size of input 0");
      return attrs;
    }
    default:
      return read<tfl::RnnParams>(node, Cell::kRnn);
  }
}

std::string name_of(int slot) { return "input " + std::to_string(slot); }

// What each layer has, and what it has only as a whole.
std::optional<Refusal> check_presence(const tfl::NodeView& node, const Direction& d) {
  const auto absent = [&](int slot) {
    return Refusal{Why::kOperands, name_of(slot), "is absent, which the operation needs"};
  };
  const auto has = [&](int slot) { return slot >= 0 && node.has_input(slot); };
  const bool lstm = d.c >= 0;
  for (const int slot : {d.h, d.c}) {
    if (slot < 0) continue;
    if (!has(slot)) return absent(slot);
    if (!node.input(slot).raw().is_variable)
      return Refusal{Why::kParameter, name_of(slot), "is a state, but not a variable tensor"};
  }
  const bool input_gate = !lstm || has(d.wx[0]);
  const auto check = [&](const Slots& slots, bool needed) -> std::optional<Refusal> {
    const bool any = std::any_of(slots.begin(), slots.end(), has);
    if (!any && !needed) return std::nullopt;
    for (int gate = 0; gate < kGates; ++gate) {
      const int slot = slots[uz(gate)];
      if (slot < 0) continue;
      if (gate == 0 && !input_gate) {
        if (has(slot))
          return Refusal{Why::kOperands, name_of(slot), "belongs to an input gate without weights"};
      } else if (!has(slot)) {
        return absent(slot);
      }
    }
    return std::nullopt;
  };
  for (const auto& [slots, needed] : {std::pair{d.wx, true},
                                      {d.wh, true},
                                      {d.bias, true},
                                      {d.peephole, false},
                                      {d.norm, false},
                                      {d.aux >= 0 ? d.wa : Slots{-1, -1, -1, -1}, false}}) {
    if (auto refusal = check(slots, needed)) return refusal;
  }
  if (has(d.projection_bias) && !has(d.projection)) return absent(d.projection);
  return std::nullopt;
}

std::optional<Refusal> check_floats(const tfl::NodeView& node, const Direction& d) {
  const auto has = [&](int slot) { return slot >= 0 && node.has_input(slot); };
  const auto matrix = [&](int slot, int rank) -> std::optional<Refusal> {
    if (!has(slot)) return std::nullopt;
    const tfl::TensorView weights = node.input(slot);
    const std::string what = name_of(slot);
    if (auto refusal = check_rank(weights, what, rank, rank)) return refusal;
    if (auto refusal = check_type(weights, what, {DType::kF32, DType::kI8})) return refusal;
    if (weights.dtype() == DType::kF32) return std::nullopt;
    if (!weights.has_data()) return Refusal{Why::kRunTime, what};
    if (auto refusal = check_per_tensor(weights, what)) return refusal;
    if (weights.zero_point() != 0) return wrong_scale(weights, what, "any", 0);
    return std::nullopt;
  };
  for (const Slots& slots : {d.wx, d.wa, d.wh}) {
    for (const int slot : slots) {
      if (auto refusal = matrix(slot, 2)) return refusal;
      // The weights of all gates lie in one buffer.
      const int last = slots[d.c < 0 ? 0 : 3];
      if (has(slot) && has(last) && node.input(slot).dtype() != node.input(last).dtype())
        return Refusal{Why::kOperands, name_of(slot), "has another type than the other gates"};
    }
  }
  if (auto refusal = matrix(d.projection, 2)) return refusal;
  for (const int slot : d.peephole) {
    if (auto refusal = matrix(slot, 1)) return refusal;
  }
  for (const Slots& slots : {d.bias, d.norm, Slots{d.projection_bias, d.h, d.c, d.x}}) {
    for (const int slot : slots) {
      if (!has(slot)) continue;
      if (auto refusal = check_type(node.input(slot), name_of(slot), {DType::kF32})) return refusal;
    }
  }
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const bool one_step = node.builtin() == kLstm || node.builtin() == kRnn;
  CLGPU_REFUSE_TYPE(node.input(kX), "input", DType::kF32, DType::kI8);
  CLGPU_REFUSE_RANK(node.input(kX), "input", one_step ? 2 : 3, one_step ? 2 : 3);
  const int aux = node.builtin() == kBidirectionalLstm  ? kLstmAux
                  : node.builtin() == kBidirectionalRnn ? kRnnAux
                                                        : -1;
  if (aux >= 0 && node.has_input(aux)) {
    CLGPU_REFUSE_TYPE(node.input(aux), "the auxiliary input", DType::kF32);
    CLGPU_REFUSE_RANK(node.input(aux), "the auxiliary input", 3, 3);
  }
  auto attrs = read_attrs(node);
  if (!attrs) return attrs.refusal();
  const int results = attrs->bidirectional && !attrs->merged ? 2 : 1;
  CLGPU_REFUSE_IF(node.output_count() != results, Why::kOperands, "the number of outputs", {},
                  std::to_string(node.output_count()), {std::to_string(results)});
  const bool integers = node.input(kX).dtype() == DType::kI8;
  CLGPU_REFUSE_IF(integers && (attrs->cell == Cell::kRnn || attrs->bidirectional), Why::kIntegers,
                  "input 0", {}, "int8");
  for (const Direction& d : directions(*attrs, [&](int slot) { return node.has_input(slot); })) {
    if (auto refusal = check_presence(node, d)) return *refusal;
    if (auto refusal = integers ? check_quantized(node, d) : check_floats(node, d)) return *refusal;
  }
  if (integers) {
    const int scales = node.intermediate_count();
    CLGPU_REFUSE_IF(scales != kGates + 1, Why::kOperands, "the number of intermediate tensors", {},
                    std::to_string(scales), {"5"});
    // Intermediate tensors: the sums of the four gates, and the results before the projection.
    for (int gate = 0; gate < kGates && node.has_input(kForgetNorm); ++gate) {
      const tfl::TensorView sums = node.intermediate(gate);
      const bool used = gate > 0 || node.has_input(kForgetNorm - 1);
      CLGPU_REFUSE_IF(used && !sums.is_quantized(), Why::kQuantization, "an intermediate tensor",
                      "has no scale");
      (*attrs).norm_scales.push_back(sums.scale());
    }
    const tfl::TensorView hidden = node.intermediate(kGates);
    CLGPU_REFUSE_IF(!hidden.is_quantized(), Why::kQuantization, "intermediate tensor 4",
                    "has no scale");
    (*attrs).hidden_scale = hidden.scale();
    (*attrs).hidden_zero = hidden.zero_point();
  }
  return Imported{share(*attrs), {}};
}

void expect(const NodeContext& node, int slot, std::int64_t rows, std::int64_t cols) {
  if (slot < 0 || !node.has_input(slot)) return;
  const ir::Shape& shape = node.input(slot).shape;
  const bool fits = cols == 0 ? shape.elements() == rows
                              : shape.rank() == 2 && shape[0] == rows && shape[1] == cols;
  if (fits) return;
  throw ShapeError(name_of(slot) + " of a recurrent layer is " + shape.str() + "; it needs " +
                   (cols == 0 ? std::to_string(rows) + " elements"
                              : "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]"));
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<RecurrentAttrs>();
  const std::vector<Direction> all = directions(node);
  ir::Shapes shapes;
  for (const Direction& d : all) {
    const Sizes size = sizes_of(node, d);
    if (d.x != kX) {
      const Sizes first = sizes_of(node, all.front());
      if (first.steps != size.steps || first.batch != size.batch)
        throw ShapeError("the inputs of a recurrent layer differ in steps or batch");
    }
    if (d.aux >= 0) expect(node, d.aux, std::int64_t{size.rows()} * size.aux, 0);
    for (const int gate : gates_of(node, d)) {
      expect(node, d.wx[uz(gate)], size.cells, size.inputs);
      if (d.aux >= 0) expect(node, d.wa[uz(gate)], size.cells, size.aux);
      expect(node, d.wh[uz(gate)], size.cells, size.outputs);
      for (const Slots& slots : {d.bias, d.peephole, d.norm})
        expect(node, slots[uz(gate)], size.cells, 0);
    }
    expect(node, d.projection, size.outputs, size.cells);
    expect(node, d.projection_bias, size.outputs, 0);
    if (d.projection < 0 || !node.has_input(d.projection)) {
      if (size.outputs != size.cells)
        throw ShapeError("a recurrent layer without projection has " + std::to_string(size.cells) +
                         " cells and weights for " + std::to_string(size.outputs) + " results");
    }
    expect(node, d.h, std::int64_t{size.batch} * size.outputs, 0);
    if (d.c >= 0) expect(node, d.c, std::int64_t{size.batch} * size.cells, 0);
    ir::Shape dst = node.input(kX).shape;
    dst[dst.rank() - 1] = size.outputs;
    if (attrs.merged && d.reverse) {
      shapes[0][dst.rank() - 1] += size.outputs;
    } else {
      shapes.push_back(dst);
    }
  }
  for (const Direction& d : all) {
    shapes.push_back(node.input(d.h).shape);
    if (d.c >= 0) shapes.push_back(node.input(d.c).shape);
  }
  return shapes;
}

class Floats : public Layer {
 public:
  Floats(Builder& builder, const NodeContext& node, const Direction& d, const DeviceInfo& device)
      : Layer(builder, node, d, device, {DType::kF32, DType::kF32, DType::kF32, DType::kF32}) {}

 private:
  void add_tables() override {
    std::vector<float> scales;
    for (const Slots& slots : {d_.wx, d_.wa, d_.wh}) {
      for (const int gate : gates_)
        scales.push_back(has(slots[uz(gate)]) ? scale_of(node_.input(slots[uz(gate)])) : 1.0F);
    }
    scales_ = b_.scratch(kernel::table(scales));
  }

  Clips clips() const override { return {attrs().cell_clip, attrs().proj_clip}; }

  void add_arithmetic(kernel::Launch& launch) const override {
    set_epilogue(launch, {attrs().activation});
    launch.f32(has(d_.projection) ? scale_of(node_.input(d_.projection)) : 1.0F);
  }
};

/// One candidate computes all steps by one launch of one work-group for each image, another one by
/// launches for each step, of the whole device.
struct Ways {
  bool step_by_step = false;  ///< is a candidate, too
  bool step_by_step_first = false;
};
/// `weights_bytes`: what each step reads.
Ways ways_of(int steps, std::int64_t weights_bytes, const DeviceInfo& device) {
  // A work-group reads weights from the cache of one compute unit, while all others wait.
  const bool heavy = !device.is_cpu() && weights_bytes > 256 << 10;
  const int most = heavy ? 1024 : 64;  // more steps are not worth so many launches
  return {steps <= most, steps == 1 || (heavy && steps <= most)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const bool integers = node.input(kX).dtype == DType::kI8;
  const auto layer = [&](Builder& builder, const Direction& d) -> std::unique_ptr<Layer> {
    if (integers) return quantized_layer(builder, node, d, device);
    return std::make_unique<Floats>(builder, node, d, device);
  };
  const std::vector<Direction> all = directions(node);
  std::int64_t weights_bytes = 0;
  for (const Direction& d : all) {
    for (const int gate : gates_of(node, d))
      weights_bytes += node.input(d.wh[uz(gate)]).storage_bytes();
  }
  const Ways ways = ways_of(sizes_of(node, all.front()).steps, weights_bytes, device);
  Builder sequence{{integers ? "sequence_int8" : "sequence", {}, {}}};
  Builder each{{integers ? "step_by_step_int8" : "step_by_step", {}, {}}};
  for (const Direction& d : all) {
    layer(sequence, d)->sequence();
    if (ways.step_by_step) layer(each, d)->step_by_step();
  }
  if (!ways.step_by_step) return {sequence.candidate};
  if (ways.step_by_step_first) return {each.candidate, sequence.candidate};
  return {sequence.candidate, each.candidate};
}

double flops(const NodeContext& node) {
  double sum = 0;
  for (const Direction& d : directions(node)) {
    const Sizes size = sizes_of(node, d);
    const double gates = static_cast<double>(gates_of(node, d).size());
    double each = gates * size.cells * (size.inputs + size.aux + size.outputs);
    if (d.projection >= 0 && node.has_input(d.projection))
      each += static_cast<double>(size.cells) * size.outputs;
    sum += 2.0 * each * size.rows();
  }
  return sum;
}

}  // namespace
}  // namespace recurrent

extern const Family kRecurrentFamily;
const Family kRecurrentFamily = [] {
  using namespace recurrent;
  Family family;
  family.name = "recurrent";
  family.attrs = ir::attrs_type<RecurrentAttrs>();
  const std::vector<int> lstm{18, 19}, rnn{4};  // states
  family.builtins = {
      {kLstm, "LSTM", 1, 23, 1, 0, false, -1, lstm},
      {kRnn, "RNN", 1, 4, 1, 0, false, -1, rnn},
      {kUnidirectionalRnn, "UNIDIRECTIONAL_SEQUENCE_RNN", 1, 4, 1, 0, false, -1, rnn},
      {kUnidirectionalLstm, "UNIDIRECTIONAL_SEQUENCE_LSTM", 1, 23, 1, 0, false, -1, lstm},
      {kBidirectionalRnn, "BIDIRECTIONAL_SEQUENCE_RNN", 1, 11, kAnyNumber, 0, false, -1, {4, 8}},
      {kBidirectionalLstm,
       "BIDIRECTIONAL_SEQUENCE_LSTM",
       1,
       47,
       kAnyNumber,
       0,
       false,
       -1,
       {35, 36, 37, 38}}};
  family.import = recurrent::import;
  family.infer = recurrent::infer;
  family.candidates = recurrent::candidates;
  family.allows_quantized = true;
  family.widens_weights = true;
  family.flops = recurrent::flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
