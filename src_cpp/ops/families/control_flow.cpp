// Family of WHILE and IF, whose graphs become part of the graph around them
// (delegate/claim/inline.cpp). Their own nodes in the IR are views of the results of these graphs.
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kIf = 118, kWhile = 119;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::ControlFlowParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  Imported imported;
  imported.graphs = {params->first_graph, params->second_graph};
  return imported;
}

ir::Shapes infer(const NodeContext& node) { return {node.input(0).shape}; }

}  // namespace

extern const Family kControlFlowFamily;
const Family kControlFlowFamily = [] {
  const auto operation = [](int code, const char* name, Control control) {
    Operation result{code, name, 1, kAnyNumber, kAnyNumber, -1};
    result.control = control;
    return result;
  };
  Family family;
  family.name = "control_flow";
  family.builtins = {operation(kIf, "IF", Control::kBranch),
                     operation(kWhile, "WHILE", Control::kLoop)};
  family.import = import;
  family.infer = infer;
  family.is_view = true;
  family.runs_graphs = true;
  family.allows_quantized = true;
  family.most_axes = kMostAxes;
  return family;
}();

}  // namespace clgpu::ops
