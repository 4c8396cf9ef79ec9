// What the sources of the family recurrent share: LSTM and RNN layers of one or two directions.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops::recurrent {

enum class Cell : int { kRnn, kLstm };

struct RecurrentAttrs : ir::Attrs {
  Cell cell = Cell::kLstm;
  bool bidirectional = false;
  bool merged = false;  ///< both directions write output 0, one behind the other on the last axis
  bool time_major = false;
  ir::Activation activation = ir::Activation::kTanh;
  float cell_clip = 0, proj_clip = 0;  ///< 0: none
  /// For integers, the quantisation of tensors between the kernels of the runtime: what the four
  /// gates normalise, and the cells' results before the projection.
  std::vector<float> norm_scales;
  float hidden_scale = 0;
  int hidden_zero = 0;
  CLGPU_FIELDS(cell, bidirectional, merged, time_major, activation, cell_clip, proj_clip,
               norm_scales, hidden_scale, hidden_zero)
};

/// Gates in the order i, f, g, o; an RNN has only the first.
constexpr int kGates = 4;
using Slots = std::array<int, kGates>;

/// The operands of one direction: input slots, -1 if an operation has none, and outputs of the
/// node.
struct Direction {
  int x = 0, aux = -1;
  Slots wx{-1, -1, -1, -1}, wa = wx, wh = wx, peephole = wx, bias = wx, norm = wx;
  int projection = -1, projection_bias = -1;
  int h = -1, c = -1;          ///< states
  int h_out = -1, c_out = -1;  ///< the outputs of their new values
  int dst = 0;
  bool reverse = false;
};

/// `has`: whether the node has an input.
template <class Has>
std::vector<Direction> directions(const RecurrentAttrs& attrs, const Has& has) {
  std::vector<Direction> all;
  const int results = attrs.bidirectional && !attrs.merged ? 2 : 1;
  for (int i = 0; i < (attrs.bidirectional ? 2 : 1); ++i) {
    Direction d;
    d.reverse = i == 1;
    d.dst = attrs.merged ? 0 : i;
    if (attrs.cell == Cell::kRnn) {
      const int first = 4 * i;
      d.wx[0] = first + 1, d.wh[0] = first + 2, d.bias[0] = first + 3, d.h = first + 4;
      d.h_out = results + i;
      if (attrs.bidirectional) d.aux = 9, d.wa[0] = 10 + i;
    } else {
      const int first = 17 * i;
      for (int gate = 0; gate < kGates; ++gate) {
        d.wx[uz(gate)] = first + 1 + gate;
        d.wh[uz(gate)] = first + 5 + gate;
        d.bias[uz(gate)] = first + 12 + gate;
        if (attrs.bidirectional) d.aux = 39, d.wa[uz(gate)] = 40 + 4 * i + gate;
        if (!attrs.bidirectional) d.norm[uz(gate)] = 20 + gate;
      }
      d.peephole = {first + 9, first + 10, -1, first + 11};
      d.projection = first + 16, d.projection_bias = first + 17;
      d.h = attrs.bidirectional ? 35 + 2 * i : 18;
      d.c = d.h + 1;
      d.h_out = results + 2 * i, d.c_out = d.h_out + 1;
    }
    const int gate = attrs.cell == Cell::kRnn ? 0 : 1;  // that each layer has
    // Without weights of its own, the auxiliary input is the input of the second direction.
    if (d.aux >= 0 && has(d.aux) && !has(d.wa[uz(gate)]) && i == 1) d.x = d.aux;
    if (d.aux >= 0 && !(has(d.aux) && has(d.wa[uz(gate)]))) d.aux = -1;
    all.push_back(d);
  }
  return all;
}

inline std::vector<Direction> directions(const NodeContext& node) {
  return directions(node.attrs<RecurrentAttrs>(), [&](int slot) { return node.has_input(slot); });
}

/// The gates of a direction: without an input gate they begin with the second one.
inline std::vector<int> gates_of(const NodeContext& node, const Direction& d) {
  if (d.c < 0) return {0};
  if (!node.has_input(d.wx[0])) return {1, 2, 3};
  return {0, 1, 2, 3};
}

struct Sizes {
  int steps = 1, batch = 1;
  int inputs = 0, aux = 0, cells = 0, outputs = 0;
  int t_stride = 0, b_stride = 0;  ///< of the rows of the input
  int rows() const { return steps * batch; }
};
Sizes sizes_of(const NodeContext& node, const Direction& d);

/// Launches of a candidate, with scratch memory.
struct Builder {
  kernel::Candidate candidate;
  int scratch(std::int64_t bytes) {
    candidate.scratch.push_back({bytes});
    return static_cast<int>(candidate.scratch.size()) - 1;
  }
  int scratch(kernel::Scratch known) {
    candidate.scratch.push_back(std::move(known));
    return static_cast<int>(candidate.scratch.size()) - 1;
  }
};

/// The launches of one direction of a layer; a derived class has the arithmetic.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// One launch for all steps.
  void sequence();
  /// Two launches for each step, the first of which keeps a whole device busy.
  void step_by_step();

 protected:
  /// Element types: sums, vectors and the memory of a work-group, float or int32, of 4 bytes; the
  /// products of `pre`; the states between launches.
  struct Types {
    DType sums, pre, h, c;
  };
  /// Limits of cells and results, as they are stored; 0: none.
  struct Clips {
    float cell, proj;
  };
  Layer(Builder& builder, const NodeContext& node, const Direction& d, const DeviceInfo& device,
        Types types);

  /// Adds what the kernels look up, first `scales_`.
  virtual void add_tables() = 0;
  virtual Clips clips() const = 0;
  /// The ARITHMETIC_PARAMS of sequence.cl and macros for these.
  virtual void add_arithmetic(kernel::Launch& launch) const = 0;

  bool has(int slot) const { return slot >= 0 && node_.has_input(slot); }
  bool has_norm() const { return has(d_.norm[1]); }
  const RecurrentAttrs& attrs() const { return node_.attrs<RecurrentAttrs>(); }

  Builder& b_;
  const NodeContext& node_;
  const Direction& d_;
  const std::vector<int> gates_;
  int scales_ = -1;  // scratch buffer

 private:
  bool integers() const { return types_.sums == DType::kI32; }
  bool has_peephole() const { return has(d_.peephole[1]); }
  std::vector<int> of(const Slots& slots) const;
  int time(int step) const { return d_.reverse ? size_.steps - 1 - step : step; }
  int states(int width, DType type);
  kernel::Launch& add_number(kernel::Launch& launch, float number) const;
  kernel::Launch& set_weights(kernel::Launch& launch, const char* macro,
                              const std::vector<int>& slots) const;
  int packed(const std::vector<int>& slots);
  void vector(int slot, std::int64_t first);
  void vectors();
  void prepare();
  void product(bool input, bool state, int step);
  void steps(bool all, int step);

  const DeviceInfo& device_;
  const Types types_;
  const Sizes size_;
  const int cols_;
  // Scratch buffers.
  int wx_ = -1, wa_ = -1, wh_ = -1, wp_ = -1, vectors_ = -1, pre_ = -1;
  int h_ = -1, c_ = -1, memory_ = -1;
};

/// int8 inputs and states, int16 cells.
std::unique_ptr<Layer> quantized_layer(Builder& builder, const NodeContext& node,
                                       const Direction& d, const DeviceInfo& device);

/// Weights of int8 are multiplied as they are, and the sums are scaled.
inline float scale_of(const ir::Tensor& weights) {
  return weights.is_quantized() ? weights.scale() : 1.0F;
}

/// What is wrong with the types and scales of an LSTM of integers.
std::optional<Refusal> check_quantized(const tfl::NodeView& node, const Direction& d);

}  // namespace clgpu::ops::recurrent
