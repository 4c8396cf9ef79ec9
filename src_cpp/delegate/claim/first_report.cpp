#include "delegate/claim/first_report.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/join.hpp"
#include "plan/choose.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Engines that the option 'engines' names and no node's family has: with the alternative "auto"
// this is no error, but probably a typing error.
std::vector<std::string> unknown_engines(
    const Options& options, const std::vector<std::unique_ptr<Partition>>& partitions) {
  std::vector<std::string> notes;
  for (const auto& [family, wish] : options.plan.engines) {
    std::set<std::string> known;
    for (const auto& partition : partitions) {
      if (partition->plan() == nullptr) continue;
      for (const plan::Choice& choice : partition->plan()->choices) {
        if (choice.family != family) continue;
        known.insert(choice.candidates.begin(), choice.candidates.end());
        for (const plan::Refused& refused : choice.refused) known.insert(refused.first);
      }
    }
    if (known.empty()) continue;
    for (const std::string& engine : plan::alternatives(wish)) {
      const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
        return plan::goes_by(name, engine);
      });
      if (found || engine == "auto") continue;
      std::string note = "option 'engines' asks for '";
      note +=
          engine + "' of " + family + "; no node of this model offers it; offered: " + join(known);
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

// Names in the option 'exclude' that the main graph does not have: probably typing errors.
std::vector<std::string> unknown_excluded(const Options& options, const Model& model) {
  std::set<std::string> operations, indices;
  const std::function<void(const ModelNode&)> add = [&](const ModelNode& node) {
    operations.insert(node.op);
    std::for_each(node.inner.begin(), node.inner.end(), add);
  };
  for (const ModelNode& node : model.nodes) {
    add(node);
    indices.insert(std::to_string(node.index));
  }
  std::vector<std::string> notes;
  for (const std::string& item : options.exclude) {
    if (operations.count(item) != 0 || indices.count(item) != 0) continue;
    notes.push_back("option 'exclude' names '" + item +
                    "'; the model has no such node; it has nodes 0 to " +
                    std::to_string(model.nodes.size() - 1) + ", of " + join(operations));
  }
  return notes;
}

std::vector<TensorReport> tensor_reports(const TfLiteContext& context,
                                         const std::vector<NodeReport>& nodes) {
  std::set<int> ids;
  for (const NodeReport& node : nodes) {
    ids.insert(node.input_ids.begin(), node.input_ids.end());
    ids.insert(node.output_ids.begin(), node.output_ids.end());
  }
  std::vector<TensorReport> reports;
  for (const int id : ids) {
    const TfLiteTensor& tensor = context.tensors[id];
    reports.push_back({id, tensor.name != nullptr ? tensor.name : "", tfl::type_name(tensor.type),
                       static_cast<std::int64_t>(tensor.bytes),
                       tensor.allocation_type == kTfLiteMmapRo});
  }
  return reports;
}

NodeReport node_report(const TfLiteContext& context, const ModelNode& node) {
  NodeReport report;
  report.index = node.index;
  report.op = node.op;
  report.claimed = node.claimed;
  report.reason = node.hosted ? "the shapes of other nodes follow from it: computed while planning"
                  : node.evaluated ? "follows from shapes and constants: computed while planning"
                  : node.folded_at_load ? "computes a constant: runs once, at load time"
                                        : "runs on the device";
  report.computed = node.evaluated ? "planning" : node.folded_at_load ? "load" : "inference";
  if (node.claimed && node.as_graph)
    report.reason = "runs as the graph that defines it: " + sentence_of(*node.as_graph);
  if (!node.claimed) report.refusal = node.refusal;
  const auto read = [&](const std::vector<int>& ids, std::vector<std::vector<int>>& shapes,
                        std::vector<int>& present) {
    for (const int id : ids) {
      if (id < 0) continue;
      shapes.push_back(tfl::TensorView(&context.tensors[id], id).dims());
      present.push_back(id);
    }
  };
  read(node.inputs, report.inputs, report.input_ids);
  read(node.outputs, report.outputs, report.output_ids);
  return report;
}

}  // namespace

Report first_report(const Target& target, const Model& model, const TfLiteContext& context,
                    const std::vector<std::unique_ptr<Partition>>& partitions) {
  Report report;
  report.device = target.device().name;
  report.platform = target.device().platform;
  report.precision = passes::name_of(target.options.precision);
  report.has_state =
      std::any_of(context.tensors, context.tensors + context.tensors_size,
                  [](const TfLiteTensor& t) { return t.is_variable || t.type == kTfLiteResource; });
  for (const ModelNode& node : model.nodes) report.nodes.push_back(node_report(context, node));
  report.tensors = tensor_reports(context, report.nodes);
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    for (const int index : partitions[p]->nodes()) {
      for (NodeReport& node : report.nodes) {
        if (node.index == index) node.partition = static_cast<int>(p);
      }
    }
  }
  report.partitions.resize(partitions.size());
  report.notes = unknown_engines(target.options, partitions);
  for (std::string& note : unknown_excluded(target.options, model))
    report.notes.push_back(std::move(note));
  return report;
}

}  // namespace clgpu::delegate
