#include <algorithm>
#include <map>
#include <numeric>

#include "base/index.hpp"
#include "passes/row_schedule.hpp"
#include "passes/stream_rows.hpp"

namespace clgpu::passes {
namespace {

// Whether a node reads rows of an input, and everything else is the same for all rows.
bool reads_rows(const ir::Graph& graph, const ir::Node& node, std::size_t input) {
  return ops::family_of(node).rows->need({graph, node}, static_cast<int>(input), {0, 1}).kind !=
         ops::RowNeed::Kind::kWhole;
}

// Number of borders on the way to each node: two nodes with the same number that can be computed by
// rows have no border between them, on any path.
std::vector<int> levels_of(const ir::Graph& graph, const std::vector<bool>& rows, RowCut cut) {
  const std::vector<int> writers = ir::writers_of(graph);
  std::vector<int> levels(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const int id = node.inputs[i];
      const int writer = id < 0 ? -1 : writers[uz(id)];
      if (writer < 0) continue;
      bool border = rows[n] && (!rows[uz(writer)] || !reads_rows(graph, node, i));
      if (rows[n] && !border && cut == RowCut::kHeights)
        border = graph.tensor(id).shape[1] != graph.tensor(node.outputs[0]).shape[1];
      levels[n] = std::max(levels[n], levels[uz(writer)] + (border ? 1 : 0));
    }
  }
  return levels;
}

}  // namespace

std::vector<RowRegion> row_regions(const ir::Graph& graph, RowCut cut) {
  std::vector<bool> rows;
  for (const ir::Node& node : graph.nodes) rows.push_back(has_rows(graph, node));
  const std::vector<int> levels = levels_of(graph, rows, cut);
  const std::vector<int> writers = ir::writers_of(graph);

  // Nodes of a level that are connected by the rows that they read.
  std::vector<int> root(graph.nodes.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int n) {
    while (root[uz(n)] != n) n = root[uz(n)] = root[uz(root[uz(n)])];
    return n;
  };
  const auto together = [&](std::size_t n, int id) {
    const int writer = id < 0 ? -1 : writers[uz(id)];
    return writer >= 0 && rows[n] && rows[uz(writer)] && levels[n] == levels[uz(writer)];
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int id : graph.nodes[n].inputs) {
      if (together(n, id)) root[uz(find(static_cast<int>(n)))] = find(writers[uz(id)]);
    }
  }

  std::map<std::pair<int, int>, RowRegion> regions;  // by level: no region reads from a later one
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (rows[n])
      regions[{levels[n], find(static_cast<int>(n))}].nodes.push_back(static_cast<int>(n));
  }
  const auto readers = ir::readers_of(graph);
  const std::vector<bool> is_output = ir::output_mask(graph);
  std::vector<RowRegion> result;
  for (auto& [key, region] : regions) {
    // A region of one node is useful only if it reads bands that another region leaves.
    const auto reads_bands = [&](int n) {
      for (const int id : graph.nodes[uz(n)].inputs) {
        if (id >= 0 && writers[uz(id)] >= 0 && rows[uz(writers[uz(id)])]) return true;
      }
      return false;
    };
    if (region.nodes.size() == 1 && !reads_bands(region.nodes[0])) continue;
    for (const int n : region.nodes) {
      for (const int id : graph.nodes[uz(n)].outputs) {
        bool inside = !is_output[uz(id)];
        for (const int reader : readers[uz(id)]) inside = inside && together(uz(reader), id);
        if (!inside) continue;
        const std::int64_t bytes = graph.tensor(id).storage_bytes();
        region.largest = std::max(region.largest, bytes);
        region.all += bytes;
      }
    }
    result.push_back(std::move(region));
  }
  return result;
}

}  // namespace clgpu::passes
