#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "ops/families/composite.hpp"
#include "ops/families/fully_connected_fused.hpp"
#include "ops/families/rotate.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_products";

class Fuser {
 public:
  Fuser(ir::Graph& graph, const DeviceInfo& device)
      : graph_(graph),
        device_(device),
        readers_(ir::readers_of(graph)),
        is_output_(ir::output_mask(graph)),
        removed_(graph.nodes.size(), false) {}

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!ops::rms_norm_epsilon(graph_.nodes[i])) continue;
      ir::rely_on_shapes(graph_);  // after a resize there may be one row
      fuse_readers(i);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (removed_[i] || !ops::is_fully_connected(graph_.nodes[i])) continue;
      if (auto fused = gated(nullptr, i)) commit({std::move(*fused)});
    }
    ir::remove_nodes(graph_, removed_);
  }

 private:
  struct Fused {
    std::size_t place;               // of the last node
    ir::Node node;                   // in its place
    std::vector<std::size_t> parts;  // the others, without the normalisation
    bool normed;
  };

  // The only reader of a node's result; -1 if there are others.
  int only_reader(const ir::Node& node) const {
    const auto result = uz(node.outputs[0]);
    return is_output_[result] || readers_[result].size() != 1 ? -1 : readers_[result][0];
  }

  // A product whose result is multiplied by that of another product of the same rows.
  std::optional<Fused> gated(const ir::Node* norm, std::size_t product) const {
    const ir::Node& node = graph_.nodes[product];
    const int gate = only_reader(node);
    if (gate < 0) return std::nullopt;
    for (const int reader : readers_[uz(node.inputs[0])]) {
      const ir::Node& other = graph_.nodes[uz(reader)];
      if (uz(reader) == product || removed_[uz(reader)] || !ops::is_fully_connected(other) ||
          only_reader(other) != gate)
        continue;
      auto fused =
          ops::fused_product(graph_, {norm, &node, &other, &graph_.nodes[uz(gate)]}, device_);
      if (fused) return Fused{uz(gate), std::move(*fused), {product, uz(reader)}, norm != nullptr};
    }
    return std::nullopt;
  }

  // A normalisation goes only if all its readers compute it themselves.
  void fuse_readers(std::size_t index) {
    const ir::Node& norm = graph_.nodes[index];
    const auto result = uz(norm.outputs[0]);
    if (is_output_[result]) return;
    std::vector<Fused> list;
    std::vector<std::size_t> done;
    const auto is_done = [&](int i) {
      return std::find(done.begin(), done.end(), uz(i)) != done.end();
    };
    for (const bool with_gate : {true, false}) {
      for (const int reader : readers_[result]) {
        if (is_done(reader) || !ops::is_fully_connected(graph_.nodes[uz(reader)])) continue;
        std::optional<Fused> fused;
        if (with_gate) {
          fused = gated(&norm, uz(reader));
          if (!fused) continue;
        } else {
          auto node = ops::fused_product(graph_, {&norm, &graph_.nodes[uz(reader)]}, device_);
          if (!node) return;
          fused = Fused{uz(reader), std::move(*node), {}, true};
        }
        done.insert(done.end(), fused->parts.begin(), fused->parts.end());
        done.push_back(fused->place);
        list.push_back(std::move(*fused));
      }
    }
    const auto& readers = readers_[result];
    if (readers.empty() || !std::all_of(readers.begin(), readers.end(), is_done)) return;
    for (const Fused& fused : list)
      ir::applied(graph_, kPass, norm.tflite_index, fused.node.tflite_index);
    removed_[index] = true;
    commit(std::move(list));
  }

  void commit(std::vector<Fused> list) {
    for (Fused& fused : list) {
      for (const std::size_t part : fused.parts) removed_[part] = true;
      fused.parts.push_back(fused.place);
      const int into = fused.node.tflite_index;
      for (const std::size_t part : fused.parts) {
        const int index = graph_.nodes[part].tflite_index;
        if (index != into) ir::applied(graph_, kPass, index, into);
      }
      if (fused.normed) {
        // Each node has a tensor of its own for what it may compute in between.
        ir::Tensor between = graph_.tensor(fused.node.outputs[1]);
        fused.node.outputs[1] = static_cast<int>(graph_.tensors.size());
        graph_.tensors.push_back(std::move(between));
      }
      graph_.nodes[fused.place] = std::move(fused.node);
    }
    ir::rely_on_shapes(graph_);  // how many rows there are
  }

  ir::Graph& graph_;
  const DeviceInfo& device_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_output_, removed_;
};

// A rotation or an update moves into the product whose row it reads, in a shape of its own.
void fuse_ends(ir::Graph& graph, const DeviceInfo& device) {
  Rewriting rewriting(graph, kPass);
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const auto end = rewriting.node(i) != nullptr ? ops::rows_end(graph.nodes[i]) : std::nullopt;
    if (!end) continue;
    std::vector<std::size_t> parts;
    int tensor = end->rows, reader = static_cast<int>(i);
    int writer = rewriting.writer(tensor);
    while (writer >= 0 && rewriting.only_reader(tensor) == reader) {
      parts.push_back(uz(writer));
      const ir::Node& node = graph.nodes[uz(writer)];
      if (!node.kind->is_view) break;
      tensor = node.inputs[0], reader = writer;
      writer = rewriting.writer(tensor);
    }
    if (parts.empty() || graph.nodes[parts.back()].kind->is_view) continue;
    const ir::Node& product = graph.nodes[parts.back()];
    if (auto node = ops::ended_product(graph, product, graph.nodes[i], end->rows, device)) {
      rewriting.replace(i, std::move(*node), parts);
      ir::rely_on_shapes(graph);  // how many rows there are
    }
  }
  rewriting.finish();
}

}  // namespace

void fuse_products(ir::Graph& graph, bool products, const DeviceInfo& device) {
  if (!device.mma_f16) return;
  if (!products)
    return ir::skipped(graph, kPass,
                       "a memory budget, or a kernel that engines names, keeps its parts apart");
  Fuser(graph, device).run();
  fuse_ends(graph, device);
}

}  // namespace clgpu::passes
