// Convolution is linear in its input channels: the convolution of [a, b] is that of a plus that of
// b, each with its part of the weights. The sum passes from one to the next as the addend that
// their kernels accept.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/index.hpp"
#include "ops/products/conv_geometry.hpp"
#include "passes/concatenations.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "split_convolutions";
constexpr int kImage = 0;  // input of a convolution
// As in choose_storage: with half precision these stay float.
constexpr std::int64_t kSmallTensor = 4096;

// Channels `first` .. `first + count` of a concatenation, which are tensor `id`.
struct Channels {
  int id, first, count;
  bool copied;  // it cannot be written in place
};

class Splitter {
 public:
  Splitter(ir::Graph& graph, const Sums& sums, std::int64_t most, bool only_large)
      : graph_(graph), links_(graph), sums_(sums), most_(most), only_large_(only_large) {
    for (const Slot& slot : choose_slots(graph, sums)) {
      if (!is_large(slot.node)) in_place_.insert(slot.tensors.front());
    }
  }

  void run() {
    const std::size_t count = graph_.nodes.size();
    instead_.resize(count);
    replaced_.assign(count, false);
    // Backwards: splitting an outer concatenation also splits the inner ones that make its inputs.
    for (std::size_t n = count; n-- > 0;) {
      if (!replaced_[n] && can_split(static_cast<int>(n))) split(static_cast<int>(n));
    }
    std::vector<ir::Node> nodes;
    for (std::size_t n = 0; n < count; ++n) {
      if (!replaced_[n]) nodes.push_back(std::move(graph_.nodes[n]));
      for (ir::Node& node : instead_[n]) nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  bool is_large(int n) const {
    return graph_.tensor(graph_.nodes[uz(n)].outputs[0]).storage_bytes() > most_;
  }

  bool has_copies(int n) const {
    const ir::Node& node = graph_.nodes[uz(n)];
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int id) {
      return in_place_.count(id) == 0 || (is_inner(id) && has_copies(links_.writers[uz(id)]));
    });
  }

  // Whether a concatenation of channels writes a tensor whose only reader is another concatenation.
  bool is_inner(int id) const {
    const int writer = links_.writers[uz(id)];
    return writer >= 0 && joins_channels(graph_, writer) && links_.readers[uz(id)].size() == 1 &&
           !links_.is_output[uz(id)] && sums_.count(id) == 0;
  }

  bool can_split(int n) const {
    if (only_large_ && !is_large(n)) return false;
    if (!joins_channels(graph_, n) || !has_copies(n)) return false;
    const ir::Node& node = graph_.nodes[uz(n)];
    const int whole = node.outputs[0];
    if (links_.is_output[uz(whole)] || links_.known[uz(whole)] || sums_.count(whole) != 0)
      return false;
    const auto& readers = links_.readers[uz(whole)];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
      return is_linear_in(graph_.nodes[uz(reader)], whole);
    });
  }

  // Whether a node is a convolution of this tensor that can add the sum of others.
  bool is_linear_in(const ir::Node& node, int image) const {
    if (dynamic_cast<const ops::ConvAttrs*>(node.attrs.get()) == nullptr) return false;
    if (node.kind->weights.in_axis < 0 || node.inputs[kImage] != image) return false;
    if (std::count(node.inputs.begin(), node.inputs.end(), image) != 1) return false;
    const ir::Tensor& weights = graph_.tensor(node.inputs[uz(node.kind->weights.slot)]);
    // Sums of integers are rounded once, after the last of them.
    if (graph_.tensor(node.outputs[0]).is_quantized()) return false;
    if (weights.is_quantized()) return false;
    // The addend of a result that is written in place would need the shape of the whole.
    return weights.is_constant() && !ops::is_grouped(graph_, node) &&
           !node.epilogue.residual_after && in_place_.count(node.outputs[0]) == 0;
  }

  void collect(int n, int first, std::vector<Channels>& channels) {
    for (const int id : graph_.nodes[uz(n)].inputs) {
      const int count = graph_.tensor(id).shape.back(0);
      if (const int writer = links_.writers[uz(id)]; is_inner(id) && has_copies(writer)) {
        collect(writer, first, channels);
        replaced_[uz(writer)] = true;
        ir::applied(graph_, kPass, graph_.nodes[uz(writer)].tflite_index,
                    graph_.nodes[uz(n)].tflite_index);
      } else {
        channels.push_back({id, first, count, in_place_.count(id) == 0});
      }
      first += count;
    }
  }

  void split(int n) {
    const ir::Node node = graph_.nodes[uz(n)];
    std::vector<Channels> channels;
    collect(n, 0, channels);
    // Terms of the sum: each of the copied inputs, then the others together.
    std::vector<std::vector<Channels>> terms;
    std::vector<Channels> rest;
    for (const Channels& part : channels) {
      if (part.copied) {
        terms.push_back({part});
      } else {
        rest.push_back(part);
      }
    }
    std::vector<int> images;
    for (const auto& term : terms) images.push_back(term[0].id);
    if (!rest.empty()) {
      images.push_back(rest.size() == 1 ? rest[0].id : join(n, rest));
      terms.push_back(rest);
    }
    replaced_[uz(n)] = true;
    for (const int reader : links_.readers[uz(node.outputs[0])]) {
      chain(reader, images, terms);
      if (rest.size() < 2)
        ir::applied(graph_, kPass, node.tflite_index, graph_.nodes[uz(reader)].tflite_index);
    }
  }

  // A concatenation of the inputs that are written in place, which needs no launch.
  int join(int n, const std::vector<Channels>& parts) {
    ir::Node node = graph_.nodes[uz(n)];
    ir::Tensor joined = graph_.tensor(node.outputs[0]);
    int& count = joined.shape[joined.shape.rank() - 1];
    count = 0;
    node.inputs.clear();
    for (const Channels& part : parts) {
      node.inputs.push_back(part.id);
      count += part.count;
    }
    node.outputs = {add(std::move(joined))};
    instead_[uz(n)].push_back(node);
    return node.outputs[0];
  }

  void chain(int reader, const std::vector<int>& images,
             const std::vector<std::vector<Channels>>& terms) {
    const ir::Node whole = graph_.nodes[uz(reader)];
    int sum = ir::input_of(whole, whole.kind->residual);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const bool last = i + 1 == terms.size();
      ir::Node node = whole;
      node.inputs[kImage] = images[i];
      const std::size_t slot = uz(whole.kind->weights.slot);
      node.inputs[slot] = weights_of(whole.inputs[slot], terms[i]);
      if (sum >= 0) ir::set_input(node, whole.kind->residual, sum);
      if (!last) {
        ir::set_input(node, whole.kind->weights.bias, -1);
        if (ir::input_of(node, whole.kind->slopes) >= 0)
          ir::set_input(node, whole.kind->slopes, -1);
        node.epilogue = {};
        node.outputs[0] = sum = partial_sum(whole);
      }
      instead_[uz(reader)].push_back(std::move(node));
    }
    replaced_[uz(reader)] = true;
  }

  int partial_sum(const ir::Node& whole) {
    ir::Tensor sum = graph_.tensor(whole.outputs[0]);
    // Rounded to half once more than without the split; the arithmetic remains in float.
    sum.storage = sum.shape.elements() > kSmallTensor ? graph_.tensor(whole.inputs[kImage]).storage
                                                      : DType::kF32;
    return add(std::move(sum));
  }

  // The weights of these input channels.
  int weights_of(int id, const std::vector<Channels>& term) {
    std::vector<int> key{id};
    for (const Channels& part : term) key.insert(key.end(), {part.first, part.count});
    const auto [entry, inserted] = weights_.try_emplace(std::move(key), -1);
    if (!inserted) return entry->second;
    ir::Tensor weights = graph_.tensor(id);
    const ir::Constant& all = *weights.constant;
    const std::size_t size = size_of(all.dtype);
    const std::size_t pitch = uz(weights.shape[3]) * size;
    const auto rows = static_cast<std::size_t>(weights.shape.elements(0, 3));
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
    int channels = 0;
    for (const Channels& part : term) channels += part.count;
    bytes->resize(rows * uz(channels) * size);
    std::uint8_t* to = bytes->data();
    for (std::size_t row = 0; row < rows; ++row) {
      const auto* from = static_cast<const std::uint8_t*>(all.data) + row * pitch;
      for (const Channels& part : term) {
        std::memcpy(to, from + uz(part.first) * size, uz(part.count) * size);
        to += uz(part.count) * size;
      }
    }
    weights.shape[3] = channels;
    weights.constant = std::make_shared<const ir::Constant>(
        ir::Constant{bytes->data(), bytes->size(), all.dtype, bytes});
    return entry->second = add(std::move(weights));
  }

  int add(ir::Tensor tensor) {
    tensor.tflite_id = -1;
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  ir::Graph& graph_;
  const Links links_;
  const Sums& sums_;
  const std::int64_t most_;  // bytes of a concatenation that may be whole
  const bool only_large_;
  std::set<int> in_place_;                      // inputs of concatenations
  std::vector<std::vector<ir::Node>> instead_;  // of a node
  std::vector<bool> replaced_;
  std::map<std::vector<int>, int> weights_;  // tensor and its channels -> their tensor
};

}  // namespace

void split_convolutions(ir::Graph& graph, const Sums& sums, std::int64_t most, bool only_large) {
  Splitter(graph, sums, most, only_large).run();
}

}  // namespace clgpu::passes
