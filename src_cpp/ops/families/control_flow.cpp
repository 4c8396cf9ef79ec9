// Family of WHILE and IF. If planning knows the condition, their graphs become part of the graph
// around them (delegate/claim/inline.cpp), and their own nodes in the IR are views of the results
// of these graphs. Otherwise a node of a variant has the graphs, which the host runs in an
// inference, unless passes::inline_branches makes both branches part of the graph.
#include "ops/families/control_flow.hpp"

#include "ops/shared/broadcast.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {

extern const Family kControlFlowFamily, kLoopFamily, kBranchFamily, kStateFamily, kChoiceFamily;

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

ir::Shapes infer_loop(const NodeContext& node) {
  ir::Shapes shapes;
  for (int i = 0; i < node.input_count(); ++i) shapes.push_back(node.input(i).shape);
  return shapes;
}

ir::Shapes infer_branch(const NodeContext& node) {
  ir::Shapes shapes(uz(node.output_count()));
  const ir::Graph& graph = *node.node().graphs.front();
  const int first = node.input_count() - 1;
  for (const int id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.carried >= first) shapes.at(uz(tensor.carried - first)) = tensor.shape;
  }
  return shapes;
}

std::vector<kernel::Candidate> run_graphs(const NodeContext& node, const DeviceInfo&) {
  kernel::Launch launch("", "graphs");
  launch.runs_graphs = true;
  for (int i = 0; i < node.input_count(); ++i) launch.src(i);
  for (int i = 0; i < node.output_count(); ++i) launch.dst(i);
  return {{"by_host", {launch}, {}}};
}

std::vector<kernel::Candidate> copies(const NodeContext& node, const DeviceInfo&) {
  const int elements = static_cast<int>(node.input(0).shape.elements());
  return {{"copy",
           {strided_copy({{elements}, {1}}, node.input(0).storage, node.output(0).storage)},
           {}}};
}

ir::Shapes infer_choice(const NodeContext& node) {
  const ir::Shape &first = node.input(1).shape, &second = node.input(2).shape;
  if (first != second)
    throw ShapeError("its graphs give a result different shapes: " + first.str() + " and " +
                     second.str());
  return {first};
}

std::vector<kernel::Candidate> choices(const NodeContext& node, const DeviceInfo&) {
  const ir::Shape& shape = node.output(0).shape;
  const BroadcastWalk walk = broadcast_walk(shape, {ir::Shape(), shape, shape});
  kernel::Launch launch("select/select.cl", "select_elementwise");
  launch.type("X_T", node.input(1).storage).type("Y_T", node.input(2).storage);
  launch.type("DST_T", node.output(0).storage).src(0).src(1).src(2).dst(0);
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

Family variant(const char* name) {
  Family family;
  family.name = "control_flow";
  family.variant = name;
  family.allows_quantized = true;
  family.most_axes = kMostAxes;
  family.flops = no_flops;
  return family;
}

}  // namespace

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
  family.variants = {&kLoopFamily, &kBranchFamily, &kStateFamily, &kChoiceFamily};
  return family;
}();

const Family kLoopFamily = [] {
  Family family = variant("loop");
  family.runs = ir::Runs::kLoop;
  family.infer = infer_loop;
  family.candidates = run_graphs;
  return family;
}();

const Family kBranchFamily = [] {
  Family family = variant("branch");
  family.runs = ir::Runs::kBranch;
  family.infer = infer_branch;
  family.candidates = run_graphs;
  return family;
}();

// A copy of a tensor that is a state already.
const Family kStateFamily = [] {
  Family family = variant("state");
  family.infer = infer;
  family.candidates = copies;
  return family;
}();

// Input 1 if input 0, one bool, is true, else input 2.
const Family kChoiceFamily = [] {
  Family family = variant("choice");
  family.infer = infer_choice;
  family.candidates = choices;
  return family;
}();

const Family& running(Control control) {
  return control == Control::kLoop ? kLoopFamily : kBranchFamily;
}

ir::Node state_of(int source, int result) {
  ir::Node node;
  node.kind = &kStateFamily;
  node.op = "STATE";
  node.inputs = {source};
  node.outputs = {result};
  node.attrs = std::make_shared<const ir::Attrs>();
  return node;
}

bool is_state(const ir::Node& node) { return node.kind == &kStateFamily; }

ir::Node choice_of(int condition, int first, int second, int result) {
  ir::Node node;
  node.kind = &kChoiceFamily;
  node.inputs = {condition, first, second};
  node.outputs = {result};
  node.attrs = std::make_shared<const ir::Attrs>();
  return node;
}

bool is_choice(const ir::Node& node) { return node.kind == &kChoiceFamily; }

}  // namespace clgpu::ops
