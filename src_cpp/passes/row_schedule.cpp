#include "passes/row_schedule.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace clgpu::passes {
namespace {

using ops::RowNeed;
using ops::RowRange;

int rounded_up(std::int64_t a, std::int64_t b) {
  return static_cast<int>(a >= 0 ? (a + b - 1) / b : -(-a / b));
}

class Progress {
 public:
  Progress(const ir::Graph& graph, const RowChain& chain) : graph_(graph), chain_(chain) {
    for (std::size_t k = 0; k < chain.nodes.size(); ++k) {
      const ops::NodeContext node = context(k);
      height_.push_back(node.output(0).shape[1]);
      unit_.push_back(ops::family_of(node.node()).rows->unit(node));
      tallest_ = std::max(tallest_, height_.back());
    }
  }

  std::vector<std::vector<int>> steps(int band) const {
    // How far each node is ahead when the first row of the results outside is due.
    int early = 0;
    const std::vector<int> ahead = due(0);
    for (std::size_t k = 0; k < ahead.size(); ++k) {
      early = std::max(
          early, rounded_up(std::int64_t{ahead[k]} * tallest_, std::int64_t{height_[k]} * band));
    }
    const int count = early + rounded_up(tallest_, band);
    std::vector<std::vector<int>> progress;
    for (int step = 0; step < count; ++step) {
      progress.push_back(made(due(std::int64_t{step + 1 - early} * band)));
    }
    return progress;
  }

 private:
  ops::NodeContext context(std::size_t k) const {
    return {graph_, graph_.nodes[uz(chain_.nodes[k])]};
  }

  int in_units(std::size_t k, int rows) const { return ops::ceil_of(rows, unit_[k]) * unit_[k]; }

  // The rows of each node that are due, by the rule for the middle of the image: negative before
  // its first row is due, above its height at the end. `rows`: rows of the tallest.
  std::vector<int> due(std::int64_t rows) const {
    std::vector<int> result(height_.size(), INT32_MIN);
    for (std::size_t k = height_.size(); k-- > 0;) {
      if (chain_.outside[k]) result[k] = rounded_up(rows * height_[k], tallest_);
      for (const RowReader& reader : chain_.readers[k]) {
        const int end = result[uz(reader.node)];
        const ops::NodeContext node = context(uz(reader.node));
        const auto need =
            ops::family_of(node.node()).rows->need(node, reader.input, {end - 1, end});
        result[k] = std::max(result[k], need.rows.end);
      }
      result[k] = in_units(k, result[k]);
    }
    return result;
  }

  // The same, limited to the image, whose top and bottom may need more rows.
  std::vector<int> made(const std::vector<int>& due) const {
    std::vector<int> result(due.size());
    for (std::size_t k = due.size(); k-- > 0;) {
      int rows = due[k];
      for (const RowReader& reader : chain_.readers[k]) {
        const int end = result[uz(reader.node)];
        if (end == 0) continue;
        rows = std::max(rows, rows_needed(context(uz(reader.node)), reader.input, {0, end}).end);
      }
      result[k] = std::clamp(in_units(k, rows), 0, height_[k]);
    }
    return result;
  }

  const ir::Graph& graph_;
  const RowChain& chain_;
  std::vector<int> height_, unit_;
  int tallest_ = 0;
};

}  // namespace

bool depends_by_rows(const ir::Graph& graph, const ir::Node& node) {
  const ops::RowRules* rules = ops::family_of(node).rows;
  if (rules == nullptr || node.is_band || node.outputs.empty()) return false;
  const ops::NodeContext context(graph, node);
  const int height = context.output(0).shape.rank() == 4 ? context.output(0).shape[1] : 0;
  if (height < 2) return false;
  for (int i = 0; i < context.output_count(); ++i) {
    const ir::Shape& shape = context.output(i).shape;
    if (shape.rank() != 4 || shape[0] != 1 || shape[1] != height) return false;
  }
  if (rules->unit(context) == 0) return false;
  bool reads_rows = false;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i) || rules->need(context, i, {0, 1}).kind == RowNeed::Kind::kWhole)
      continue;
    const ir::Tensor& input = context.input(i);
    if (input.shape.rank() != 4 || input.shape[0] != 1) return false;
    reads_rows = reads_rows || !input.is_constant();
  }
  return reads_rows;
}

bool has_rows(const ir::Graph& graph, const ir::Node& node) {
  if (node.predicate >= 0 || !depends_by_rows(graph, node)) return false;
  // A slice has its place in a whole, and its residual has the same layout.
  const ops::NodeContext context(graph, node);
  for (int i = 0; i < context.output_count(); ++i) {
    if (context.output(i).placement) return false;
  }
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i) || !context.input(i).placement) continue;
    if (ops::family_of(node).rows->need(context, i, {0, 1}).kind != RowNeed::Kind::kWhole)
      return false;
  }
  return true;
}

ir::Tensor tensor_like(const ir::Tensor& source, const std::string& suffix) {
  ir::Tensor tensor = source;
  tensor.name += suffix;
  tensor.tflite_id = -1;
  tensor.state = tensor.carried = -1;
  tensor.is_fed = tensor.is_kept = false;
  tensor.placement.reset();
  return tensor;
}

ir::Tensor rows_like(const ir::Tensor& whole, RowRange rows) {
  ir::Tensor tensor =
      tensor_like(whole, " rows " + std::to_string(rows.first) + ":" + std::to_string(rows.end));
  tensor.constant = nullptr;
  tensor.shape[1] = rows.count();
  return tensor;
}

RowRange rows_needed(const ops::NodeContext& node, int input, RowRange rows) {
  const RowNeed need = ops::family_of(node.node()).rows->need(node, input, rows);
  CLGPU_CHECK(need.kind != RowNeed::Kind::kWhole);
  const int height = node.input(input).shape[1];
  RowRange result{std::clamp(need.rows.first, 0, height - 1), 0};
  result.end = std::clamp(need.rows.end, result.first + 1, height);
  if (need.beyond == RowNeed::Beyond::kNothing) return result;
  // Mirroring reads the row at the same distance inside the image, counted from its first or last
  // row.
  const int twice = need.beyond == RowNeed::Beyond::kSymmetric ? 1 : 0;
  if (need.rows.first < 0)
    result.end = std::clamp(-need.rows.first - twice + 1, result.end, height);
  if (need.rows.end > height) {
    const int mirrored = 2 * (height - 1) - (need.rows.end - 1) + twice;
    result.first = std::clamp(mirrored, 0, result.first);
  }
  return result;
}

std::vector<std::vector<int>> row_progress(const ir::Graph& graph, const RowChain& chain,
                                           int band) {
  return Progress(graph, chain).steps(band);
}

}  // namespace clgpu::passes
