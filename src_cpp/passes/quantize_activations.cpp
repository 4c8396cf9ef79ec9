#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "ops/families/dequantize.hpp"
#include "ops/families/quantize.hpp"
#include "ops/family.hpp"
#include "passes/float_constants.hpp"
#include "passes/pass.hpp"

// Scales and stored numbers are computed as clgpu_delegate/quantization/parameters.py computes
// them, so that a plan and quantize() make the same integers.
namespace clgpu::passes {
namespace {

constexpr const char* kPass = "quantize_activations";
constexpr double kLargestWeight = 127;         // symmetric: -128 is not used
constexpr double kTiny = 1e-20;                // a smaller scale would vanish in products of two
constexpr double kLargestBias = 2147483647.0;  // of int32
constexpr float kSteepest = 1 << 30;           // ratio of two scales that kernels can rescale by

double rounded(double value, double low, double high) {
  return std::clamp(std::nearbyint(value), low, high);
}

ir::Tensor with_bytes(const ir::Tensor& like, DType dtype,
                      std::shared_ptr<const std::vector<std::uint8_t>> bytes) {
  ir::Tensor tensor = like;
  tensor.tflite_id = -1;
  tensor.dtype = tensor.storage = dtype;
  tensor.quantization = nullptr;
  tensor.constant = std::make_shared<const ir::Constant>(
      ir::Constant{bytes->data(), bytes->size(), dtype, bytes});
  return tensor;
}

std::shared_ptr<const ir::Quantization> quantization_of(const Int8Scale& scale) {
  return std::make_shared<const ir::Quantization>(
      ir::Quantization{{scale.scale}, {scale.zero_point}, 0});
}

// A constant of floats as int8.
ir::Tensor quantized(const ir::Tensor& floats, const Int8Scale& scale) {
  const auto count = static_cast<std::size_t>(floats.shape.elements());
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double steps =
        static_cast<double>(element_of(*floats.constant, i)) / static_cast<double>(scale.scale);
    const double stored = std::clamp(std::nearbyint(steps) + scale.zero_point, -128.0, 127.0);
    (*bytes)[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(stored));
  }
  ir::Tensor tensor = with_bytes(floats, DType::kI8, bytes);
  tensor.quantization = quantization_of(scale);
  return tensor;
}

// Weights with a scale for each output channel.
struct Weights {
  Weights(const ir::Tensor& floats, int out_axis)
      : source(floats),
        axis(out_axis),
        channels(uz(floats.shape[out_axis])),
        inner(static_cast<std::size_t>(floats.shape.elements(out_axis + 1, floats.shape.rank()))) {
    std::vector<double> wide(channels, 0.0);
    const auto count = static_cast<std::size_t>(floats.shape.elements());
    for (std::size_t i = 0; i < count; ++i) {
      const double size = std::fabs(static_cast<double>(element_of(*floats.constant, i)));
      wide[channel(i)] = std::max(wide[channel(i)], size / kLargestWeight);
    }
    const double most = *std::max_element(wide.begin(), wide.end());
    for (const double scale : wide)
      scales.push_back(static_cast<float>(scale >= kTiny ? scale : most > 0 ? most : 1.0));
  }

  std::size_t channel(std::size_t i) const { return i / inner % channels; }

  // Raises the scales so that the bias fits into int32.
  void make_room(const ir::Tensor& bias, float source_scale) {
    for (std::size_t o = 0; o < channels; ++o) {
      const double size = std::fabs(static_cast<double>(element_of(*bias.constant, o)));
      const double least = size / (kLargestBias / 2 * static_cast<double>(source_scale));
      const double most = std::numeric_limits<float>::max();
      scales[o] = static_cast<float>(std::min(std::max<double>(scales[o], least), most));
    }
  }

  ir::Tensor tensor() const {
    const auto count = static_cast<std::size_t>(source.shape.elements());
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double steps = static_cast<double>(element_of(*source.constant, i)) /
                           static_cast<double>(scales[channel(i)]);
      const double stored = rounded(steps, -kLargestWeight - 1, kLargestWeight);
      (*bytes)[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(stored));
    }
    ir::Tensor result = with_bytes(source, DType::kI8, bytes);
    result.tflite_id = source.tflite_id;
    result.quantization = std::make_shared<const ir::Quantization>(
        ir::Quantization{scales, std::vector<std::int32_t>(channels, 0), axis});
    return result;
  }

  // Int32, in the scale of the products.
  ir::Tensor bias(const ir::Tensor& floats, float source_scale) const {
    std::vector<std::int32_t> stored(channels);
    for (std::size_t o = 0; o < channels; ++o) {
      const float scale = scales[o] * source_scale;
      const auto value = static_cast<double>(element_of(*floats.constant, o));
      // The product of two tiny scales may vanish.
      const double steps = scale > 0 ? value / static_cast<double>(scale) : 0.0;
      stored[o] = static_cast<std::int32_t>(rounded(steps, -kLargestBias - 1, kLargestBias));
    }
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>(channels * sizeof(std::int32_t));
    std::memcpy(bytes->data(), stored.data(), bytes->size());
    return with_bytes(floats, DType::kI32, bytes);
  }

  const ir::Tensor source;
  const int axis;
  const std::size_t channels, inner;
  std::vector<float> scales;
};

// Input slots of a node that become int8.
std::vector<int> data_of(const ops::IntegerForm& form, const ir::Node& node) {
  std::vector<int> slots;
  for (int slot = 0; slot < static_cast<int>(node.inputs.size()); ++slot) {
    const bool listed =
        form.data.empty() || std::find(form.data.begin(), form.data.end(), slot) != form.data.end();
    if (listed && node.inputs[uz(slot)] >= 0) slots.push_back(slot);
  }
  return slots;
}

// What changes of a node that computes with int8.
struct Adapted {
  ir::AttrsPtr attrs;
  ir::Epilogue epilogue;
};

class Regions {
 public:
  Regions(ir::Graph& graph, const PrecisionPlan& plan) : graph_(graph), plan_(plan) {}

  void run() {
    std::vector<std::optional<Adapted>> adapted(graph_.nodes.size());
    bool any = false;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ir::Node& node = graph_.nodes[i];
      if (plan_.integers.count(node.tflite_index) == 0) continue;
      Adapted change;
      if (std::string problem = problem_of(node, change); !problem.empty()) {
        ir::declined(graph_, kPass, node.tflite_index, "it computes with floats: " + problem);
      } else {
        adapted[i] = std::move(change);
        any = true;
      }
    }
    if (any) rewrite(adapted);
  }

 private:
  using Form = std::tuple<int, float, std::int32_t>;  // a tensor of floats, scale and zero point

  const Int8Scale* scale_of(int tensor) const {
    const auto found = plan_.scales.find(graph_.tensor(tensor).tflite_id);
    return found == plan_.scales.end() ? nullptr : &found->second;
  }

  std::string without_scale(int tensor) const {
    return "the plan has no scale of tensor " + std::to_string(graph_.tensor(tensor).tflite_id);
  }

  // Why an input cannot be int8; empty if it can.
  std::string problem_of_input(int id, bool moves, const Int8Scale& result) const {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.dtype != DType::kF32) return "an input is no float";
    if (tensor.is_constant() && *problem_of_floats(tensor) != '\0')
      return "an input is a constant that is empty, or not finite";
    const Int8Scale* scale = scale_of(id);
    if (!moves && scale == nullptr) return without_scale(id);
    if (scale != nullptr && scale->scale / result.scale >= kSteepest)
      return "the scale of the result is too small for that of an input";
    return {};
  }

  std::string problem_of_weights(const ir::Node& node, const Int8Scale& source,
                                 const Int8Scale& result) const {
    const ir::Weights& kind = node.kind->weights;
    const int id = input_of(node, kind.slot), bias = input_of(node, kind.bias);
    if (id < 0 || kind.out_axis < 0) return "its weights have no axis of output channels";
    const ir::Tensor& weights = graph_.tensor(id);
    if (const std::string problem = problem_of_floats(weights); !problem.empty())
      return "of its weights, " + problem;
    Weights integers(weights, kind.out_axis);
    if (bias >= 0) {
      const ir::Tensor& added = graph_.tensor(bias);
      if (const std::string problem = problem_of_floats(added); !problem.empty())
        return "of its bias, " + problem;
      if (added.shape.elements() != weights.shape[kind.out_axis])
        return "its bias has not one number for each channel";
      integers.make_room(added, source.scale);
    }
    const float largest = *std::max_element(integers.scales.begin(), integers.scales.end());
    if (!(static_cast<double>(source.scale) * static_cast<double>(largest) <
          static_cast<double>(kSteepest) * static_cast<double>(result.scale)))
      return "the scale of the result is too small for the products";
    return {};
  }

  // Why a node cannot compute with int8; empty if it can.
  std::string problem_of(const ir::Node& node, Adapted& adapted) const {
    const ops::IntegerForm* form = ops::family_of(node).integers;
    if (form == nullptr || node.outputs.size() != 1 || node.tail != nullptr || node.predicate >= 0)
      return "there is no form of int8 in plans for " + node.op;
    const int result = node.outputs[0];
    if (graph_.tensor(result).dtype != DType::kF32) return "its result is no float";
    const Int8Scale* scale = scale_of(result);
    if (scale == nullptr) return without_scale(result);
    const std::vector<int> data = data_of(*form, node);
    for (const int slot : data) {
      if (std::string problem = problem_of_input(node.inputs[uz(slot)], form->moves, *scale);
          !problem.empty())
        return problem;
    }
    if (node.kind->weights.slot >= 0) {
      const Int8Scale& source = *scale_of(node.inputs[uz(data.front())]);
      if (std::string problem = problem_of_weights(node, source, *scale); !problem.empty())
        return problem;
    }
    adapted = {node.attrs, node.epilogue};
    if (form->adapt == nullptr) return {};
    // A graph of this node alone, whose tensors are int8 already.
    ir::Graph own;
    ir::Node copy = node;
    const auto take = [&](int id, bool is_data) {
      own.tensors.push_back(graph_.tensor(id));
      if (is_data) {
        own.tensors.back().dtype = own.tensors.back().storage = DType::kI8;
        own.tensors.back().quantization = quantization_of(form->moves ? *scale : *scale_of(id));
      }
      return static_cast<int>(own.tensors.size()) - 1;
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_data = std::find(data.begin(), data.end(), static_cast<int>(i)) != data.end();
      if (node.inputs[i] >= 0) copy.inputs[i] = take(node.inputs[i], is_data);
    }
    copy.outputs[0] = take(result, true);
    if (std::string problem = form->adapt(own, copy); !problem.empty()) return problem;
    adapted = {copy.attrs, copy.epilogue};
    return {};
  }

  int add(ir::Tensor tensor) {
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  // A tensor of int8 beside one of floats.
  int add_integers(int like, const Int8Scale& scale) {
    ir::Tensor tensor;
    tensor.name = graph_.tensor(like).name + " int8";
    tensor.dtype = tensor.storage = DType::kI8;
    tensor.model_rank = graph_.tensor(like).model_rank;
    tensor.shape = graph_.tensor(like).shape;
    tensor.quantization = quantization_of(scale);
    return add(std::move(tensor));
  }

  // The int8 form of a tensor; a node that makes it is appended to `nodes` where there is none yet.
  int stored(int tensor, const Int8Scale& scale, int by, std::vector<ir::Node>& nodes) {
    const Form form{tensor, scale.scale, scale.zero_point};
    if (const auto found = forms_.find(form); found != forms_.end()) return found->second;
    int result = -1;
    if (graph_.tensor(tensor).is_constant()) {
      result = add(quantized(graph_.tensor(tensor), scale));
    } else {
      const auto computed = computed_.find(tensor);
      result = add_integers(tensor, scale);
      nodes.push_back(
          ops::quantize_of(computed == computed_.end() ? tensor : computed->second, result));
      nodes.back().tflite_index = by;
      ++conversions_;
    }
    forms_[form] = result;
    return result;
  }

  void quantize_weights_of(ir::Node& node) {
    const ir::Weights& kind = node.kind->weights;
    if (kind.slot < 0) return;
    const int bias = input_of(node, kind.bias);
    const int data = data_of(*ops::family_of(node).integers, node).front();
    const float source = graph_.tensor(node.inputs[uz(data)]).scale();
    Weights weights(graph_.tensor(node.inputs[uz(kind.slot)]), kind.out_axis);
    if (bias >= 0) {
      weights.make_room(graph_.tensor(bias), source);
      node.inputs[uz(kind.bias)] = add(weights.bias(graph_.tensor(bias), source));
    }
    node.inputs[uz(kind.slot)] = add(weights.tensor());
  }

  void rewrite(const std::vector<std::optional<Adapted>>& adapted) {
    std::vector<bool> floats = ir::output_mask(graph_);  // tensors that others read as floats
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (adapted[i]) continue;
      for (const int id : graph_.nodes[i].inputs) {
        if (id >= 0) floats[uz(id)] = true;
      }
      if (graph_.nodes[i].predicate >= 0) floats[uz(graph_.nodes[i].predicate)] = true;
    }
    std::vector<ir::Node> nodes;
    for (std::size_t i = 0; i < adapted.size(); ++i) {
      ir::Node node = std::move(graph_.nodes[i]);
      if (!adapted[i]) {
        nodes.push_back(std::move(node));
        continue;
      }
      conversions_ = 0;
      const ops::IntegerForm& form = *ops::family_of(node).integers;
      const int by = node.tflite_index, result = node.outputs[0];
      const Int8Scale scale = *scale_of(result);
      for (const int slot : data_of(form, node)) {
        int& id = node.inputs[uz(slot)];
        id = stored(id, form.moves ? scale : *scale_of(id), by, nodes);
      }
      quantize_weights_of(node);
      node.attrs = adapted[i]->attrs;
      node.epilogue = adapted[i]->epilogue;
      node.allows_tf32 = node.bf16_pairs = false;
      int integers = result;
      if (floats[uz(result)]) {
        integers = add_integers(result, scale);
      } else {
        ir::Tensor& tensor = graph_.tensor(result);
        tensor.dtype = tensor.storage = DType::kI8;
        tensor.quantization = quantization_of(scale);
      }
      node.outputs[0] = integers;
      computed_[result] = integers;
      forms_[{result, scale.scale, scale.zero_point}] = integers;
      nodes.push_back(std::move(node));
      std::string detail = "it computes with int8";
      if (conversions_ > 0)
        detail += ", " + std::to_string(conversions_) + " of its inputs converted before it";
      if (integers != result) {
        nodes.push_back(ops::dequantize_of(integers, result));
        nodes.back().tflite_index = by;
        detail += ", its result converted to float behind it";
      }
      ir::applied(graph_, kPass, by, -1, detail);
    }
    graph_.nodes = std::move(nodes);
  }

  ir::Graph& graph_;
  const PrecisionPlan& plan_;
  std::map<Form, int> forms_;
  std::map<int, int> computed_;  // floats of the model that are integers first: these integers
  int conversions_ = 0;          // before the node that is being rewritten
};

}  // namespace

void quantize_activations(ir::Graph& graph, const PrecisionPlan& plan) {
  Regions(graph, plan).run();
}

}  // namespace clgpu::passes
