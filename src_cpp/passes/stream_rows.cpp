#include "passes/stream_rows.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/index.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/rows.hpp"
#include "passes/row_schedule.hpp"

namespace clgpu::passes {
namespace {

using ops::RowNeed;
using ops::RowRange;

// A tensor that contains some rows of another.
struct Window {
  int tensor = -1;
  RowRange rows;
};

// Rewrites one region of a graph.
class Streamer {
 public:
  Streamer(ir::Graph& graph, std::vector<int> nodes, std::int64_t max_object)
      : graph_(graph), max_object_(max_object) {
    std::sort(nodes.begin(), nodes.end());
    chain_.nodes = std::move(nodes);
  }

  // Keeps `labels`, one per node, up to date; those of the region are removed.
  bool run(int band, std::vector<int>& labels) {
    if (!connect()) return false;
    progress_ = row_progress(graph_, chain_, band);
    done_.assign(chain_.nodes.size(), 0);
    for (const std::vector<int>& until : progress_) step(until);
    replace(labels);
    return true;
  }

 private:
  // Finds the readers of each tensor; false if the nodes are not a valid region.
  bool connect() {
    const auto readers = ir::readers_of(graph_);
    const std::vector<bool> is_output = ir::output_mask(graph_);
    std::map<int, int> position;
    for (std::size_t k = 0; k < chain_.nodes.size(); ++k) {
      if (!has_rows(graph_, graph_.nodes[uz(chain_.nodes[k])])) return false;
      position[chain_.nodes[k]] = static_cast<int>(k);
    }
    for (const int n : chain_.nodes) {
      std::vector<RowReader> inside;
      bool outside = false;
      for (const int id : graph_.nodes[uz(n)].outputs) {
        bool leaves = is_output[uz(id)];
        for (const int reader : readers[uz(id)]) {
          const auto found = position.find(reader);
          leaves = leaves || found == position.end();
          if (found == position.end()) continue;
          const ir::Node& node = graph_.nodes[uz(reader)];
          const ops::NodeContext context(graph_, node);
          for (int i = 0; i < context.input_count(); ++i) {
            if (node.inputs[uz(i)] != id) continue;
            if (ops::family_of(node).rows->need(context, i, {0, 1}).kind == RowNeed::Kind::kWhole)
              return false;
            inside.push_back({found->second, i});
          }
        }
        if (leaves) pieces_[id];
        outside = outside || leaves;
      }
      chain_.outside.push_back(outside || inside.empty());
      chain_.readers.push_back(std::move(inside));
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const int id : graph_.nodes[n].outputs) writer_[id] = static_cast<int>(n);
    }
    return split();
  }

  // Nodes between those of the region move behind it if they depend on it, otherwise in front of
  // it.
  bool split() {
    std::set<int> dependent;  // tensors
    std::size_t next = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool member = next < chain_.nodes.size() && uz(chain_.nodes[next]) == n;
      next += member ? 1 : 0;
      bool behind = false;
      for (const int id : node.inputs) behind = behind || dependent.count(id) > 0;
      if (member) {
        if (behind) return false;  // a path leaves the region and returns
        for (const int id : node.outputs) own_.insert(id);
        continue;
      }
      for (const int id : node.inputs) behind = behind || own_.count(id) > 0;
      if (behind) dependent.insert(node.outputs.begin(), node.outputs.end());
      (behind ? after_ : before_).push_back(static_cast<int>(n));
    }
    return true;
  }

  int height(std::size_t k) const {
    return graph_.tensor(graph_.nodes[uz(chain_.nodes[k])].outputs[0]).shape[1];
  }

  // A tensor with some rows of `whole`.
  int add_tensor(int whole, RowRange rows) {
    graph_.tensors.push_back(rows_like(graph_.tensor(whole), rows));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  void emit(ir::Node node) {
    node.is_band = true;
    node.tflite_index = tflite_index_;
    made_.push_back(std::move(node));
  }

  // Exactly these rows of `whole`, copied out of a window that has more.
  int exactly(int whole, const Window& window, RowRange rows, bool kept = false) {
    if (window.rows == rows) return window.tensor;
    const auto key = std::make_tuple(window.tensor, rows.first, rows.end);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    const int copy = add_tensor(whole, rows);
    emit(ops::rows_of(window.tensor, {rows.first - window.rows.first, rows.end - window.rows.first},
                      copy, kept));
    return copies_[key] = copy;
  }

  int joined(int whole, const std::vector<int>& parts, RowRange rows) {
    const int result = add_tensor(whole, rows);
    emit(ops::concatenation_of(parts, result, 1));
    return result;
  }

  // The parts of a tensor that is too large to exist; empty for others.
  std::vector<Window> bands_of(int id) const {
    const auto writer = writer_.find(id);
    if (writer == writer_.end() || graph_.tensor(id).storage_bytes() <= max_object_) return {};
    const ir::Node& node = graph_.nodes[uz(writer->second)];
    if (!node.is_band || !ops::joins_rows(node)) return {};
    std::vector<Window> bands;
    int first = 0;
    for (const int part : node.inputs) {
      const int end = first + graph_.tensor(part).shape[1];
      bands.push_back({part, {first, end}});
      first = end;
    }
    return bands;
  }

  // A window of a tensor from outside, with at least these rows.
  Window outside(int id, RowRange rows) {
    const std::vector<Window> bands = bands_of(id);
    if (bands.empty()) return {id, {0, graph_.tensor(id).shape[1]}};
    std::vector<int> parts;
    for (const Window& band : bands) {
      const RowRange common{std::max(rows.first, band.rows.first),
                            std::min(rows.end, band.rows.end)};
      if (common == rows) return band;
      if (common.first < common.end) parts.push_back(exactly(id, band, common));
    }
    const auto key = std::make_tuple(id, rows.first, rows.end);
    if (const auto found = copies_.find(key); found != copies_.end()) return {found->second, rows};
    return {copies_[key] = joined(id, parts, rows), rows};
  }

  // Computes all nodes up to the rows that exist after the step.
  void step(const std::vector<int>& until) {
    copies_.clear();
    std::map<int, std::size_t> last;  // node that uses a tensor of the region
    for (std::size_t k = 0; k < until.size(); ++k) {
      if (until[k] == done_[k]) continue;
      const ir::Node& node = graph_.nodes[uz(chain_.nodes[k])];
      for (const int id : node.outputs) last[id] = k;
      for (const int id : node.inputs) {
        if (own_.count(id) > 0) last[id] = k;
      }
    }
    std::map<std::size_t, std::vector<int>> finished;
    for (const auto& [id, k] : last) finished[k].push_back(id);
    for (std::size_t k = 0; k < until.size(); ++k) {
      if (until[k] == done_[k]) continue;
      compute(k, {done_[k], until[k]});
      done_[k] = until[k];
      for (const int id : finished[k]) trim(id);
    }
  }

  void compute(std::size_t k, RowRange rows) {
    const ir::Node source = graph_.nodes[uz(chain_.nodes[k])];  // adding tensors does not move it
    const ops::RowRules& rules = *ops::family_of(source).rows;
    tflite_index_ = source.tflite_index;
    ir::Node node = source;
    ops::RowBand band{rows, std::vector<RowRange>(source.inputs.size())};
    for (std::size_t i = 0; i < source.inputs.size(); ++i) {
      const int id = source.inputs[i];
      if (id < 0) continue;
      const ops::NodeContext context(graph_, source);
      const auto kind = rules.need(context, static_cast<int>(i), rows).kind;
      if (kind == RowNeed::Kind::kWhole) continue;
      const RowRange need = rows_needed(context, static_cast<int>(i), rows);
      Window window = own_.count(id) > 0 ? windows_.at(id) : outside(id, need);
      CLGPU_CHECK(window.rows.first <= need.first && need.end <= window.rows.end);
      if (kind == RowNeed::Kind::kExact) window = {exactly(id, window, need), need};
      node.inputs[i] = window.tensor;
      band.inputs[i] = window.rows;
    }
    node.attrs = rules.attrs(ops::NodeContext(graph_, source), band);
    for (int& id : node.outputs) id = add_tensor(id, rows);
    const std::vector<int> results = node.outputs;
    check(node);
    emit(std::move(node));
    for (std::size_t i = 0; i < results.size(); ++i) {
      append(source.outputs[i], {results[i], rows}, k);
    }
  }

  // The family confirms what the node computes.
  void check(const ir::Node& node) const {
    const ops::NodeContext context(graph_, node);
    const ir::Shapes shapes = ops::family_of(node).infer(context);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      CLGPU_CHECK(shapes[i] == context.output(static_cast<int>(i)).shape);
    }
  }

  // Adds new rows of a tensor: to the rows that are kept, and to the whole if there is to be one.
  void append(int id, const Window& band, std::size_t k) {
    const bool read = is_read(id, k);
    Window& window = windows_[id];
    if (read && window.tensor >= 0) {
      const RowRange rows{window.rows.first, band.rows.end};
      CLGPU_CHECK(window.rows.end == band.rows.first);
      window = {joined(id, {window.tensor, band.tensor}, rows), rows};
    } else if (read) {
      window = band;
    }
    const auto pieces = pieces_.find(id);
    if (pieces == pieces_.end()) return;
    // Rows that are also read here are copied, so that the band need not live as long as the whole.
    int piece = band.tensor;
    if (read) {
      piece = add_tensor(id, band.rows);
      emit(ops::rows_of(window.tensor,
                        {band.rows.first - window.rows.first, band.rows.end - window.rows.first},
                        piece, false));
    }
    pieces->second.push_back(piece);
    if (band.rows.end == height(k)) emit(ops::concatenation_of(pieces->second, id, 1));
  }

  bool is_read(int id, std::size_t k) const {
    for (const RowReader& reader : chain_.readers[k]) {
      if (source_of(reader) == id) return true;
    }
    return false;
  }

  int source_of(const RowReader& reader) const {
    return graph_.nodes[uz(chain_.nodes[uz(reader.node)])].inputs[uz(reader.input)];
  }

  // Keeps the rows of a tensor that its readers still need.
  void trim(int id) {
    Window& window = windows_[id];
    if (window.tensor < 0) return;
    const auto writer = std::lower_bound(chain_.nodes.begin(), chain_.nodes.end(), writer_.at(id));
    const auto k = static_cast<std::size_t>(writer - chain_.nodes.begin());
    int keep = window.rows.end;
    bool more = false;
    for (const RowReader& reader : chain_.readers[k]) {
      const RowRange rest{done_[uz(reader.node)], progress_.back()[uz(reader.node)]};
      if (source_of(reader) != id || rest.first == rest.end) continue;
      const ops::NodeContext context(graph_, graph_.nodes[uz(chain_.nodes[uz(reader.node)])]);
      keep = std::min(keep, rows_needed(context, reader.input, rest).first);
      more = true;
    }
    if (!more || keep == window.rows.end) {
      window = {};
    } else if (keep > window.rows.first) {
      const RowRange rows{keep, window.rows.end};
      tflite_index_ = graph_.nodes[uz(writer_.at(id))].tflite_index;
      window = {exactly(id, window, rows, true), rows};
    }
  }

  void replace(std::vector<int>& labels) {
    std::vector<ir::Node> nodes;
    std::vector<int> new_labels;
    const auto keep = [&](int n) {
      nodes.push_back(std::move(graph_.nodes[uz(n)]));
      new_labels.push_back(labels[uz(n)]);
    };
    for (const int n : before_) keep(n);
    for (ir::Node& node : made_) nodes.push_back(std::move(node));
    new_labels.resize(nodes.size(), -1);
    for (const int n : after_) keep(n);
    graph_.nodes = std::move(nodes);
    labels = std::move(new_labels);
  }

  ir::Graph& graph_;
  const std::int64_t max_object_;
  RowChain chain_;
  std::vector<std::vector<int>> progress_;
  std::vector<int> done_;                            // rows of each node
  std::vector<int> before_, after_;                  // nodes outside
  std::set<int> own_;                                // tensors that the region writes
  std::map<int, int> writer_;                        // tensor -> node
  std::map<int, Window> windows_;                    // tensor of the region -> its existing rows
  std::map<int, std::vector<int>> pieces_;           // tensor that is read outside -> its bands
  std::map<std::tuple<int, int, int>, int> copies_;  // of this step
  std::vector<ir::Node> made_;
  int tflite_index_ = -1;
};

// Cuts what a region reads by rows, if it has more than `most` bytes, into bands right behind the
// node that writes it: then it can leave the device, and return, band by band.
class Cutter {
 public:
  Cutter(ir::Graph& graph, std::vector<int>& labels, int region, std::int64_t most)
      : graph_(graph), labels_(labels), region_(region), most_(most) {}

  // Bands have `band` rows of an image of `tallest` rows, and as much less of lower ones.
  void run(int band, int tallest) {
    const std::vector<int> writers = ir::writers_of(graph_);
    std::map<int, std::vector<ir::Node>> behind;  // nodes behind a node
    std::map<int, int> cut;                       // tensor -> what the region reads instead
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (labels_[n] != region_) continue;
      for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
        const int id = graph_.nodes[n].inputs[i];
        const int writer = id < 0 ? -1 : writers[uz(id)];
        if (writer < 0 || labels_[uz(writer)] == region_ || !is_cut(graph_.nodes[n], i, writer))
          continue;
        if (cut.count(id) == 0) {
          const std::int64_t rows = std::int64_t{band} * graph_.tensor(id).shape[1] / tallest;
          cut[id] = make_bands(id, std::max(1, static_cast<int>(rows)), behind[writer],
                               graph_.nodes[uz(writer)].tflite_index);
        }
        graph_.nodes[n].inputs[i] = cut.at(id);
      }
    }
    insert(behind);
  }

 private:
  bool is_cut(const ir::Node& reader, std::size_t input, int writer) const {
    const ir::Tensor& tensor = graph_.tensor(reader.inputs[input]);
    if (tensor.storage_bytes() <= most_ || tensor.shape.rank() != 4) return false;
    const ir::Node& node = graph_.nodes[uz(writer)];
    if (node.is_band && ops::joins_rows(node)) return false;  // it consists of bands already
    const auto need =
        ops::family_of(reader).rows->need({graph_, reader}, static_cast<int>(input), {0, 1});
    return need.kind != RowNeed::Kind::kWhole;
  }

  int make_bands(int id, int band, std::vector<ir::Node>& nodes, int tflite_index) {
    std::vector<int> parts;
    const int height = graph_.tensor(id).shape[1];
    for (int first = 0; first < height; first += band) {
      const RowRange rows{first, std::min(first + band, height)};
      graph_.tensors.push_back(rows_like(graph_.tensor(id), rows));
      parts.push_back(static_cast<int>(graph_.tensors.size()) - 1);
      nodes.push_back(ops::rows_of(id, rows, parts.back(), false));
    }
    graph_.tensors.push_back(rows_like(graph_.tensor(id), {0, height}));
    const int joined = static_cast<int>(graph_.tensors.size()) - 1;
    nodes.push_back(ops::concatenation_of(parts, joined, 1));
    for (ir::Node& node : nodes) {
      node.is_band = true;
      node.tflite_index = tflite_index;
    }
    return joined;
  }

  void insert(std::map<int, std::vector<ir::Node>>& behind) {
    std::vector<ir::Node> nodes;
    std::vector<int> labels;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      nodes.push_back(std::move(graph_.nodes[n]));
      labels.push_back(labels_[n]);
      for (ir::Node& node : behind[static_cast<int>(n)]) nodes.push_back(std::move(node));
      labels.resize(nodes.size(), -1);
    }
    graph_.nodes = std::move(nodes);
    labels_ = std::move(labels);
  }

  ir::Graph& graph_;
  std::vector<int>& labels_;
  const int region_;
  const std::int64_t most_;
};

// Joins of bands that have no readers any more.
void remove_joins(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const std::vector<bool> is_output = ir::output_mask(graph);
  const auto dead = [&](const ir::Node& node) {
    const int id = node.outputs.at(0);
    return node.is_band && ops::joins_rows(node) && readers[uz(id)].empty() && !is_output[uz(id)];
  };
  graph.nodes.erase(std::remove_if(graph.nodes.begin(), graph.nodes.end(), dead),
                    graph.nodes.end());
}

}  // namespace

bool stream_rows(ir::Graph& graph, const std::vector<std::vector<int>>& regions, int band,
                 std::int64_t most) {
  CLGPU_CHECK(band >= 1);
  std::vector<int> labels(graph.nodes.size(), -1);
  for (std::size_t r = 0; r < regions.size(); ++r) {
    for (const int n : regions[r]) labels.at(uz(n)) = static_cast<int>(r);
  }
  bool changed = false;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    int tallest = 0;
    for (std::size_t n = 0; n < labels.size(); ++n) {
      if (labels[n] != static_cast<int>(r)) continue;
      const ir::Shape& shape = graph.tensor(graph.nodes[n].outputs.at(0)).shape;
      if (shape.rank() == 4) tallest = std::max(tallest, shape[1]);
    }
    if (tallest <= band) continue;
    Cutter(graph, labels, static_cast<int>(r), most).run(band, tallest);
    std::vector<int> nodes;
    for (std::size_t n = 0; n < labels.size(); ++n) {
      if (labels[n] == static_cast<int>(r)) nodes.push_back(static_cast<int>(n));
    }
    changed = Streamer(graph, std::move(nodes), most).run(band, labels) || changed;
  }
  if (changed) remove_joins(graph);
  return changed;
}

}  // namespace clgpu::passes
