// Family of VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE. Reading and assigning are
// views: the value before the inference is an input of the graph, the value after it an output
// (delegate/building/states.hpp). The other two have no nodes in the IR.
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kCallOnce = 129, kVarHandle = 142, kReadVariable = 143, kAssignVariable = 144;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  Imported imported;
  // A file does not tell a scalar from a shape that is known only at run time.
  CLGPU_REFUSE_IF(node.builtin() == kReadVariable && node.output(0).rank() == 0,
                  Why::kUnknownShape, "output 0", "has no shape in the model");
  if (node.builtin() != kVarHandle) return imported;
  const auto* params = node.params<tfl::VarHandleParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto text = [](const char* name) { return std::string(name == nullptr ? "" : name); };
  // Neither of the two contains the separator.
  imported.resource = text(params->container) + '\n' + text(params->shared_name);
  return imported;
}

ir::Shapes infer(const NodeContext& node) { return {node.input(0).shape}; }

}  // namespace

extern const Family kVariablesFamily;
const Family kVariablesFamily = [] {
  const auto operation = [](int code, const char* name, int inputs, int outputs,
                            Resource resource) {
    Operation result{code, name, inputs, 0, outputs, -1};
    result.resource = resource;
    return result;
  };
  Family family;
  family.name = "variables";
  family.builtins = {operation(kCallOnce, "CALL_ONCE", 0, 0, Resource::kOnce),
                     operation(kVarHandle, "VAR_HANDLE", 0, 1, Resource::kHandle),
                     operation(kReadVariable, "READ_VARIABLE", 1, 1, Resource::kRead),
                     operation(kAssignVariable, "ASSIGN_VARIABLE", 2, 0, Resource::kAssign)};
  family.import = import;
  family.infer = infer;
  family.is_view = true;
  family.allows_quantized = true;
  return family;
}();

}  // namespace clgpu::ops
