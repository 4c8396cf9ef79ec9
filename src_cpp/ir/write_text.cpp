#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/index.hpp"
#include "base/join.hpp"
#include "base/sha256.hpp"
#include "ir/fields.hpp"
#include "ir/text.hpp"

namespace clgpu::ir {
namespace {

// Maximum number of elements of a constant that are written as a list; the same for scales that are
// not omitted.
constexpr std::size_t kLongList = 32, kLongForPeople = 8;

std::string id_text(int id) { return id < 0 ? "-" : "%" + std::to_string(id); }

std::string id_texts(const std::vector<int>& ids) { return join(ids, ", ", id_text); }

// Any bytes, as ASCII.
std::string quoted(const std::string& bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (code < 0x20 || code >= 0x7F) {
      text += "\\x" + hex({&c, 1});
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string word_text(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return plain && !word.empty() ? word : quoted(word);
}

template <class T>
T element(const Constant& constant, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(constant.data) + i * sizeof value, sizeof value);
  return value;
}

// An element as text; empty if no text represents its bits: a NaN other than the usual one.
std::string element_text(const Constant& constant, std::size_t i) {
  switch (constant.dtype) {
    case DType::kF32: {
      const float value = element<float>(constant, i);
      if (std::isnan(value) && element<std::uint32_t>(constant, i) != 0x7FC00000U) return {};
      return text_of(value);
    }
    case DType::kF16: {
      const auto bits = element<std::uint16_t>(constant, i);
      const float value = half_to_float(bits);
      return float_to_half(value) == bits ? text_of(value) : "";
    }
    case DType::kBF16: {
      const auto bits = element<std::uint16_t>(constant, i);
      const float value = bfloat_to_float(bits);
      return float_to_bfloat(value) == bits ? text_of(value) : "";
    }
    case DType::kI64:
    case DType::kC64:  // its bits
      return std::to_string(element<std::int64_t>(constant, i));
    case DType::kI32:
      return std::to_string(element<std::int32_t>(constant, i));
    case DType::kU32:
      return std::to_string(element<std::uint32_t>(constant, i));
    case DType::kI16:
      return std::to_string(element<std::int16_t>(constant, i));
    case DType::kU16:
      return std::to_string(element<std::uint16_t>(constant, i));
    case DType::kI8:
      return std::to_string(element<std::int8_t>(constant, i));
    case DType::kU8:
    case DType::kBool:
      break;
  }
  return std::to_string(element<std::uint8_t>(constant, i));
}

class Writer {
 public:
  Writer(const Graph& graph, const TextOptions& options)
      : graph_(graph),
        options_(options),
        mentioned_(graph.tensors.size(), false),
        described_(graph.tensors.size(), false),
        written_(graph.tensors.size(), false) {}

  std::string text() {
    for (const Node& node : graph_.nodes) {
      mention(node.inputs);
      mention(node.outputs);
      mention({node.predicate});
      for (const int id : node.outputs)
        if (exists(id)) written_[uz(id)] = true;
    }
    mention(graph_.inputs);
    mention(graph_.outputs);
    // An input or a constant is written first, even if a node writes it.
    for (const int id : graph_.inputs)
      if (exists(id)) written_[uz(id)] = false;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      if (tensor.is_constant()) mentioned_[i] = true, written_[i] = false;
      if (tensor.placement && exists(tensor.placement->whole))
        mentioned_[uz(tensor.placement->whole)] = true;
    }
    std::string text = graph_.allows_tf32 ? "tf32\n" : "";
    if (graph_.allows_half) text += "half\n";
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (!mentioned_[i] || written_[i]) continue;
      text += described(static_cast<int>(i));
      if (const auto& constant = graph_.tensors[i].constant)
        text += " = const " + constant_text(*constant, graph_.tensors[i]);
      text += "\n";
    }
    text += "inputs " + id_texts(graph_.inputs) + "\n";
    for (const Node& node : graph_.nodes) {
      text += join(node.outputs, ", ", [&](int id) { return described(id); }) + " = ";
      text += call_text(node) + "\n";
    }
    text += "outputs " + id_texts(graph_.outputs) + "\n";
    if (!options_.steps) return text;
    for (const Step& step : graph_.steps) {
      text += "step " + word_text(step.pass) + " " + name_of(step.outcome);
      if (step.node >= 0) text += " node=" + std::to_string(step.node);
      if (step.into >= 0) text += " into=" + std::to_string(step.into);
      if (step.tensor >= 0) text += " tensor=" + std::to_string(step.tensor);
      if (!step.detail.empty()) text += " " + quoted(step.detail);
      text += "\n";
    }
    return text;
  }

  std::string call_text(const Node& node) const {
    return (node.kind == nullptr ? "?" : name_of(*node.kind)) + "(" + id_texts(node.inputs) + ")" +
           rest_text(node);
  }

 private:
  bool exists(int id) const { return id >= 0 && uz(id) < graph_.tensors.size(); }

  void mention(const std::vector<int>& ids) {
    for (const int id : ids)
      if (exists(id)) mentioned_[uz(id)] = true;
  }

  // A tensor, with all its properties at the first occurrence.
  std::string described(int id) {
    if (!exists(id) || described_[uz(id)]) return id_text(id);
    described_[uz(id)] = true;
    const Tensor& tensor = graph_.tensor(id);
    std::string text = id_text(id) + ": " + name_of(tensor.dtype) + tensor.shape.str();
    if (!tensor.name.empty()) text += " " + quoted(tensor.name);
    if (tensor.tflite_id >= 0) text += " tflite=" + std::to_string(tensor.tflite_id);
    if (tensor.state >= 0) text += " state=" + std::to_string(tensor.state);
    if (tensor.carried >= 0) text += " carried=" + std::to_string(tensor.carried);
    if (tensor.largest_of >= 0) text += " largest_of=" + std::to_string(tensor.largest_of);
    if (tensor.is_fed) text += " fed";
    if (tensor.is_kept) text += " kept";
    if (tensor.model_rank != tensor.shape.rank())
      text += " rank=" + std::to_string(tensor.model_rank);
    if (tensor.storage != tensor.dtype) text += std::string(" storage=") + name_of(tensor.storage);
    if (tensor.quantization != nullptr) text += " " + quantization_text(*tensor.quantization);
    if (tensor.placement) {
      text += " part(" + id_text(tensor.placement->whole) +
              ", pitch=" + std::to_string(tensor.placement->pitch) +
              ", first=" + std::to_string(tensor.placement->first) + ")";
    }
    return text;
  }

  std::string quantization_text(const Quantization& q) const {
    const bool leaves_out = !options_.complete && q.scales.size() > kLongForPeople;
    const auto& zeros = q.zero_points;
    const bool alike = !zeros.empty() && zeros.size() == q.scales.size() &&
                       std::all_of(zeros.begin(), zeros.end(),
                                   [&](std::int32_t zero) { return zero == zeros.front(); });
    std::string text = "quantized(";
    if (leaves_out) {
      text += "omitted(" + std::to_string(q.scales.size()) + ")";
    } else {
      const std::string scales = join(q.scales, ", ", text_of);
      text += q.scales.size() == 1 ? scales : "[" + scales + "]";
    }
    text += ", ";
    text += alike ? std::to_string(zeros.front())
                  : "[" + join(zeros, ", ", [](std::int32_t z) { return std::to_string(z); }) + "]";
    if (q.axis != 0) text += ", axis=" + std::to_string(q.axis);
    if (q.block != 0) text += ", block=" + std::to_string(q.block);
    if (q.narrow) text += ", narrow=true";
    return text + ")";
  }

  std::string constant_text(const Constant& constant, const Tensor& tensor) const {
    if (constant.bits < 8) return constant_text(constant.widened(), tensor);
    std::string text =
        constant.dtype == tensor.dtype ? "" : std::string(name_of(constant.dtype)) + " ";
    const std::size_t size = size_of(constant.dtype), count = constant.bytes / size;
    const auto* bytes = static_cast<const char*>(constant.data);
    const bool whole = constant.bytes % size == 0;
    const std::string first = whole && count > 0 ? element_text(constant, 0) : "";
    // Whether all elements are equal: each is compared with the previous one.
    const bool splat =
        !first.empty() && count > 1 && std::memcmp(bytes, bytes + size, constant.bytes - size) == 0;
    if (splat) {
      const bool fills = tensor.shape.elements() == static_cast<std::int64_t>(count);
      return text + "splat(" + first + (fills ? "" : ", " + std::to_string(count)) + ")";
    }
    if (whole && count <= (options_.complete ? kLongList : kLongForPeople)) {
      std::string list;
      bool all = true;
      for (std::size_t i = 0; i < count; ++i) {
        const std::string item = element_text(constant, i);
        all = all && !item.empty();
        append_item(list, item);
      }
      if (all) return text + "[" + list + "]";
    }
    const std::string_view all{bytes, constant.bytes};
    if (options_.complete || constant.bytes <= kLongForPeople)
      return text + "hex(" + hex(all) + ")";
    constexpr std::size_t kDigits = 16;
    return text + "omitted(" + std::to_string(constant.bytes) +
           (options_.digests ? ", " + sha256_hex(all).substr(0, kDigits) : "") + ")";
  }

  // The fields after the operands.
  std::string rest_text(const Node& node) const {
    std::string text;
    if (node.kind != nullptr && node.attrs != nullptr) {
      const Attrs& attrs = *node.attrs;
      if (node.kind->attrs != nullptr) {
        const auto record = value_of(*node.kind->attrs, attrs);
        if (!record) {
          text += " ?";
        } else if (!record->items.empty()) {
          text += " " + value_text(*record);
        }
      } else if (typeid(attrs) != typeid(Attrs)) {
        text += " ?";
      }
    }
    if (!node.op.empty()) text += " op=" + word_text(node.op);
    if (node.tflite_index >= 0) text += " node=" + std::to_string(node.tflite_index);
    const Epilogue& epilogue = node.epilogue;
    if (epilogue.activation != Activation::kNone)
      text += " activation=" + activation_text(epilogue.activation);
    if (epilogue.alpha != 0.0F) text += " alpha=" + text_of(epilogue.alpha);
    if (epilogue.residual_after) text += " residual_after";
    if (node.allows_tf32) text += " tf32";
    if (node.bf16_pairs) text += " bf16_pairs";
    if (node.half_sums) text += " half_sums";
    if (node.is_band) text += " band";
    if (node.predicate >= 0) {
      text += " only_if(" + id_text(node.predicate);
      if (node.predicate_element >= 0) text += ", " + std::to_string(node.predicate_element);
      text += ")";
    }
    if (node.tail != nullptr) text += tail_text(*node.tail);
    for (const auto& graph : node.graphs) text += " graph {\n" + indented(*graph) + "}";
    return text;
  }

  std::string indented(const Graph& graph) const {
    std::string text;
    bool begins = true;
    for (const char c : write_text(graph, options_)) {
      if (begins) text += "  ";
      text += c;
      begins = c == '\n';
    }
    return text;
  }

  std::string value_text(const Value& value) const {
    switch (value.kind) {
      case Value::Kind::kList:
        return "[" + join(value.items, ", ", [&](const Value& item) { return value_text(item); }) +
               "]";
      case Value::Kind::kRecord: {
        std::string text;
        for (std::size_t i = 0; i < value.items.size(); ++i)
          append_item(text, value.names[i] + "=" + value_text(value.items[i]));
        return "{" + text + "}";
      }
      case Value::Kind::kNode:
        if (value.node == nullptr) return "none";
        return "<" + id_texts(value.node->outputs) + " = " + call_text(*value.node) + ">";
      case Value::Kind::kScalar:
        break;
    }
    return value.text;
  }

  static std::string activation_text(Activation activation) {
    return word_of(static_cast<int>(activation), activation_words());
  }

  std::string tail_text(const Tail& tail) const {
    std::string text;
    const auto add = [&](const char* name, const std::string& value) {
      append_item(text, std::string(name) + "=" + value);
    };
    if (tail.own != nullptr) add("own", quantization_text(*tail.own));
    if (!tail.table.empty()) {
      const std::string_view bytes{reinterpret_cast<const char*>(tail.table.data()),
                                   tail.table.size()};
      add("table", "hex(" + hex(bytes) + ")");
    }
    if (tail.looked_up != nullptr) add("looked_up", quantization_text(*tail.looked_up));
    if (tail.sum != nullptr) add("sum", quantization_text(*tail.sum));
    if (tail.sum_activation != Activation::kNone)
      add("sum_activation", activation_text(tail.sum_activation));
    return " tail(" + text + ")";
  }

  const Graph& graph_;
  const TextOptions& options_;
  std::vector<bool> mentioned_, described_, written_;
};

}  // namespace

const std::vector<std::string>& activation_words() {
  static const std::vector<std::string> words = {
      "none",     "relu",    "relu_n1_to_1", "relu6",      "tanh",
      "sign_bit", "sigmoid", "relu_0_to_1",  "hard_swish", "leaky_relu",
      "elu",      "gelu",    "gelu_tanh",    "swish",      "prelu"};
  return words;
}

std::string name_of(const OpKind& kind) {
  return *kind.variant == 0 ? kind.name : std::string(kind.name) + "." + kind.variant;
}

std::string write_text(const Graph& graph, const TextOptions& options) {
  return Writer(graph, options).text();
}

}  // namespace clgpu::ir
