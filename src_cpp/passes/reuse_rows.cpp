#include "passes/reuse_rows.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/held_rows.hpp"
#include "ops/families/rows.hpp"
#include "ops/work.hpp"
#include "passes/concatenations.hpp"
#include "passes/row_schedule.hpp"

namespace clgpu::passes {
namespace {

using ops::RowNeed;
using ops::RowRange;

constexpr const char* kPass = "reuse_rows";
constexpr int kMostBands = 8;
// A band whose rows need more than this share of the inputs' rows is seldom left out alone.
constexpr double kMostReach = 0.75;
// Bands of so many rows keep the kernels' tiles of rows whole.
constexpr int kTile = 4;
// A band is worth the time of so many launches.
constexpr double kLaunches = 2;
constexpr double kWeightFlops = 1e6;  // of a block's weight

// By input of the graph that is held: the rows that something depends on; {0, 0}: on none.
using Reach = std::vector<RowRange>;

void join(Reach& reach, const Reach& more) {
  if (reach.empty()) reach.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i].count() == 0) continue;
    if (reach[i].count() == 0) {
      reach[i] = more[i];
    } else {
      reach[i] = {std::min(reach[i].first, more[i].first), std::max(reach[i].end, more[i].end)};
    }
  }
}

struct ByReach {
  bool operator()(const Reach& a, const Reach& b) const {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(), [](const RowRange& x, const RowRange& y) {
          return std::make_pair(x.first, x.end) < std::make_pair(y.first, y.end);
        });
  }
};

// Seconds of a launch that returns at once.
constexpr double kLaunchSeconds = 1e-5;

// Seconds that a node takes: a guess for a device of this kind and size.
double seconds_of(const ops::Work& work, const DeviceInfo& device) {
  const double units = std::max(device.compute_units, 1);
  const double flops = units * (device.is_cpu() ? 5e10 : 1e11);
  const double bytes = device.is_cpu() ? 1e10 : units * 1e10;
  return std::max(work.flops / flops,
                  static_cast<double>(work.bytes_read + work.bytes_written) / bytes);
}

class Reuser {
 public:
  Reuser(ir::Graph& graph, const ReuseWish& wish, const DeviceInfo& device)
      : graph_(graph),
        wish_(wish),
        device_(device),
        links_(graph),
        reaches_(graph.tensors.size()) {}

  void run() {
    find_sources();
    follow();
    if (blocks_of_.empty()) {
      return ir::declined(graph_, kPass, -1, "no node depends on inputs of the application alone");
    }
    keep();
    rewrite();
  }

 private:
  // What a tensor depends on.
  struct TensorReach {
    bool known = false;       // nothing else that changes
    Reach all;                // of all of its elements
    std::vector<Reach> rows;  // of each row of an image; empty: `all`
  };

  void find_sources() {
    for (const int id : graph_.inputs) {
      const ir::Tensor& tensor = graph_.tensor(id);
      if (tensor.is_fed && ops::may_hold(tensor.storage)) sources_.push_back(id);
    }
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const ir::Shape& shape = graph_.tensor(sources_[s]).shape;
      TensorReach& reach = reaches_[uz(sources_[s])];
      const int rows = ops::held_row_count(shape);
      reach.known = true;
      reach.all.resize(sources_.size());
      reach.all[s] = {0, rows};
      if (shape.rank() != 4 || shape[0] != 1) continue;
      for (int row = 0; row < rows; ++row) {
        reach.rows.push_back(Reach(sources_.size()));
        reach.rows.back()[s] = {row, row + 1};
      }
    }
  }

  bool is_constant(int id) const { return id < 0 || links_.known[uz(id)]; }

  // Whether a node's results follow from the sources.
  bool follows(const ir::Node& node) const {
    if (node.predicate >= 0) return false;
    bool any = false;
    for (const int id : node.inputs) {
      if (is_constant(id)) continue;
      if (!reaches_[uz(id)].known) return false;
      any = true;
    }
    return any && std::none_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
             return graph_.tensor(id).state >= 0 || graph_.tensor(id).carried >= 0;
           });
  }

  Reach reach_of(int tensor, RowRange rows) const {
    const TensorReach& reach = reaches_[uz(tensor)];
    if (reach.rows.empty()) return reach.all;
    Reach result(sources_.size());
    for (int row = rows.first; row < rows.end; ++row) join(result, reach.rows[uz(row)]);
    return result;
  }

  // Of rows of a node's results.
  Reach reach_of(const ops::NodeContext& context, RowRange rows) const {
    const ops::RowRules& rules = *ops::family_of(context.node()).rows;
    Reach result(sources_.size());
    for (int i = 0; i < context.input_count(); ++i) {
      const int id = context.node().inputs[uz(i)];
      if (is_constant(id)) continue;
      const bool whole = rules.need(context, i, rows).kind == RowNeed::Kind::kWhole;
      join(result, whole ? reaches_[uz(id)].all : reach_of(id, rows_needed(context, i, rows)));
    }
    return result;
  }

  void follow() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool constant = std::all_of(node.outputs.begin(), node.outputs.end(),
                                        [&](int id) { return is_constant(id); });
      if (constant || !follows(node)) continue;
      TensorReach reach;
      reach.known = true;
      for (const int id : node.inputs) {
        if (!is_constant(id)) join(reach.all, reaches_[uz(id)].all);
      }
      if (!node.kind->is_view && depends_by_rows(graph_, node)) {
        const ops::NodeContext context(graph_, node);
        const int unit = ops::family_of(node).rows->unit(context);
        const int height = context.output(0).shape[1];
        Reach own;
        for (int first = 0; first < height; first += unit) {
          const int end = std::min(first + unit, height);
          const Reach rows = reach_of(context, {first, end});
          reach.rows.insert(reach.rows.end(), uz(end - first), rows);
          join(own, rows);
        }
        reach.all = own;
        divide(n, reach.rows);
      }
      for (const int id : node.outputs) reaches_[uz(id)] = reach;
      if (node.kind->is_view) continue;
      if (bands_.count(n) > 0) continue;
      blocks_of_[n] = {block(reach.all, ops::work_of({graph_, node}).flops)};
    }
  }

  // The number of a block; each may stand for several launches.
  int block(const Reach& reach, double flops) {
    const auto [found, is_new] =
        numbers_.try_emplace(reach, static_cast<int>(attrs_.blocks.size()));
    if (is_new) attrs_.blocks.push_back({reach, 0});
    int& weight = attrs_.blocks[uz(found->second)].weight;
    weight = static_cast<int>(std::min(weight + 1 + flops / kWeightFlops, 1e9));
    return found->second;
  }

  // Which share of the rows of the inputs that it depends on at all.
  double share(const Reach& reach) const {
    double most = 0;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const int rows = ops::held_row_count(graph_.tensor(sources_[s]).shape);
      most = std::max(most, static_cast<double>(reach[s].count()) / rows);
    }
    return most;
  }

  // Whether the rows of a node's result can be written one band after the other to their places.
  bool is_divisible(const ir::Node& node) const {
    const ops::RowRules& rules = *ops::family_of(node).rows;
    if (node.outputs.size() != 1 || !node.kind->writes_slices || concatenation_of(node) != nullptr)
      return false;
    const ops::NodeContext context(graph_, node);
    for (int i = 0; i < context.input_count(); ++i) {
      if (!context.has_input(i)) continue;
      const auto kind = rules.need(context, i, {0, 1}).kind;
      if (kind != RowNeed::Kind::kWhole && context.input(i).placement) return false;
    }
    return true;
  }

  // Chooses the bands of a node.
  void divide(std::size_t n, const std::vector<Reach>& rows) {
    const ir::Node& node = graph_.nodes[n];
    if (!is_divisible(node)) return;
    const ops::NodeContext context(graph_, node);
    const int height = static_cast<int>(rows.size());
    const int unit = ops::family_of(node).rows->unit(context);
    const ops::Work work = ops::work_of(context);
    int size = 0;
    if (wish_.rows > 0) {
      int tallest = 1;
      for (const int id : sources_)
        tallest = std::max(tallest, ops::held_row_count(graph_.tensor(id).shape));
      size = static_cast<int>(ops::ceil_div(std::int64_t{wish_.rows} * height, tallest));
    } else {
      const double worth = seconds_of(work, device_) / kLaunchSeconds;
      const int bands = static_cast<int>(std::clamp(worth / kLaunches, 1.0, double{kMostBands}));
      size = static_cast<int>(ops::ceil_div(height, bands));
      size = static_cast<int>(ops::round_up(size, kTile));
    }
    size = static_cast<int>(ops::round_up(size, unit));
    if (size >= height) return;
    std::vector<RowRange> bands;
    std::vector<Reach> reaches;
    double sum = 0;
    for (int first = 0; first < height; first += size) {
      bands.push_back({first, std::min(first + size, height)});
      Reach& reach = reaches.emplace_back(sources_.size());
      for (int row = first; row < bands.back().end; ++row) join(reach, rows[uz(row)]);
      sum += share(reach);
    }
    if (sum > kMostReach * static_cast<double>(bands.size())) return;
    for (std::size_t b = 0; b < bands.size(); ++b)
      blocks_of_[n].push_back(block(reaches[b], work.flops * bands[b].count() / height));
    bands_[n] = std::move(bands);
  }

  int root_of(int id) const {
    for (int writer = links_.writers[uz(id)]; writer >= 0 && graph_.nodes[uz(writer)].kind->is_view;
         writer = links_.writers[uz(id)])
      id = graph_.nodes[uz(writer)].inputs[0];
    return id;
  }

  // Marks tensors that are needed when the nodes that write them do not run.
  void keep() {
    const auto keeps = [&](int id) {
      const int root = root_of(id), writer = links_.writers[uz(root)];
      if (writer >= 0 && blocks_of_.count(uz(writer)) > 0) graph_.tensor(root).is_kept = true;
    };
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (node.kind->is_view) continue;
      const auto blocks = blocks_of_.find(n);
      if (blocks != blocks_of_.end() && blocks->second.size() > 1) keeps(node.outputs[0]);
      std::vector<int> read = node.inputs;
      read.push_back(node.predicate);
      for (const int id : read) {
        if (is_constant(id)) continue;
        const int writer = links_.writers[uz(root_of(id))];
        const auto written = writer < 0 ? blocks_of_.end() : blocks_of_.find(uz(writer));
        if (written == blocks_of_.end()) continue;
        if (blocks == blocks_of_.end() || blocks->second != written->second) keeps(id);
      }
    }
    for (const int id : graph_.outputs) keeps(id);
  }

  int add_tensor(ir::Tensor tensor) {
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  void rewrite() {
    std::map<int, int> held;
    std::vector<int> outputs;
    for (const int id : sources_) {
      ir::Tensor tensor = tensor_like(graph_.tensor(id), " held");
      tensor.is_kept = true;
      outputs.push_back(held[id] = add_tensor(std::move(tensor)));
    }
    ir::Tensor flags;
    flags.name = "changed blocks";
    flags.dtype = flags.storage = DType::kI32;
    flags.shape = {static_cast<int>(attrs_.blocks.size())};
    flags.model_rank = 1;
    flags.is_kept = true;
    flags_ = add_tensor(std::move(flags));
    outputs.push_back(flags_);
    attrs_.tolerance = wish_.tolerance;
    std::vector<ir::Node> nodes{ops::held_rows_of(attrs_, sources_, outputs)};
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      ir::Node node = std::move(graph_.nodes[n]);
      for (int& id : node.inputs) {
        if (const auto found = held.find(id); found != held.end()) id = found->second;
      }
      if (bands_.count(n) > 0) {
        add_bands(n, node, nodes);
        continue;
      }
      if (blocks_of_.count(n) > 0) {
        node.predicate = flags_;
        node.predicate_element = blocks_of_.at(n)[0];
      }
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
    int divided = 0, launches = 0;
    for (const auto& [n, blocks] : blocks_of_) {
      divided += blocks.size() > 1 ? 1 : 0;
      launches += static_cast<int>(blocks.size());
    }
    ir::applied(graph_, kPass, -1, -1,
                std::to_string(blocks_of_.size()) +
                    " nodes run only if rows of the inputs change; " + std::to_string(divided) +
                    " of them in bands, " + std::to_string(launches) + " in all");
  }

  // A node for each band, which writes its rows of the result.
  void add_bands(std::size_t n, const ir::Node& source, std::vector<ir::Node>& nodes) {
    const ops::RowRules& rules = *ops::family_of(source).rows;
    const int whole = source.outputs[0];
    std::vector<int> parts;
    for (std::size_t b = 0; b < bands_[n].size(); ++b) {
      const RowRange rows = bands_[n][b];
      const auto predicated = [&](ir::Node node) {
        node.is_band = true;
        node.tflite_index = source.tflite_index;
        node.predicate = flags_;
        node.predicate_element = blocks_of_.at(n)[b];
        nodes.push_back(std::move(node));
      };
      ir::Node node = source;
      ops::RowBand band{rows, std::vector<RowRange>(source.inputs.size())};
      for (std::size_t i = 0; i < source.inputs.size(); ++i) {
        const int id = source.inputs[i];
        // A residual has the layout of the whole.
        if (id < 0 || static_cast<int>(i) == source.kind->residual) continue;
        const ops::NodeContext context(graph_, source);
        const auto kind = rules.need(context, static_cast<int>(i), rows).kind;
        if (kind == RowNeed::Kind::kWhole) continue;
        if (kind == RowNeed::Kind::kRows) {
          band.inputs[i] = {0, graph_.tensor(id).shape[1]};
          continue;
        }
        const RowRange need = rows_needed(context, static_cast<int>(i), rows);
        const int copy = add_tensor(rows_like(graph_.tensor(id), need));
        predicated(ops::rows_of(id, need, copy, false));
        node.inputs[i] = copy;
      }
      node.attrs = rules.attrs(ops::NodeContext(graph_, source), band);
      ir::Tensor part = rows_like(graph_.tensor(whole), rows);
      const ir::Shape& shape = graph_.tensor(whole).shape;
      ir::Placement place{whole, shape[3], 0};
      if (graph_.tensor(whole).placement) place = *graph_.tensor(whole).placement;
      place.first += std::int64_t{rows.first} * shape[2] * place.pitch;
      part.placement = place;
      part.is_kept = true;
      node.outputs = {add_tensor(std::move(part))};
      parts.push_back(node.outputs[0]);
      predicated(std::move(node));
    }
    ir::Node join = ops::concatenation_of(parts, whole, 1);
    join.tflite_index = source.tflite_index;
    join.is_band = true;
    nodes.push_back(std::move(join));
  }

  ir::Graph& graph_;
  const ReuseWish wish_;
  const DeviceInfo& device_;
  const Links links_;
  std::vector<int> sources_;          // inputs of the graph that are held
  std::vector<TensorReach> reaches_;  // by tensor
  // Of the nodes that may be left out: the blocks, one for each band; and the bands of those that
  // are divided.
  std::map<std::size_t, std::vector<int>> blocks_of_;
  std::map<std::size_t, std::vector<RowRange>> bands_;
  std::map<Reach, int, ByReach> numbers_;  // of blocks
  ops::HeldRowsAttrs attrs_;
  int flags_ = -1;
};

}  // namespace

void reuse_rows(ir::Graph& graph, const ReuseWish& wish, const DeviceInfo& device) {
  Reuser(graph, wish, device).run();
}

}  // namespace clgpu::passes
