// The list of families, the look-up by operation and the check of a node's operands.
#include <cstring>

#include "ops/family.hpp"

namespace clgpu::ops {

#define CLGPU_FAMILY(object) extern const Family object;
#include "ops/families.def"
#undef CLGPU_FAMILY

const std::vector<const Family*>& all_families() {
  static const std::vector<const Family*> families = {
#define CLGPU_FAMILY(object) &object,
#include "ops/families.def"
#undef CLGPU_FAMILY
  };
  return families;
}

std::vector<const ir::OpKind*> all_kinds() {
  std::vector<const ir::OpKind*> kinds;
  for (const Family* family : all_families()) {
    kinds.push_back(family);
    kinds.insert(kinds.end(), family->variants.begin(), family->variants.end());
  }
  return kinds;
}

Handler find_handler(int builtin_code, const char* custom_name) {
  for (const Family* family : all_families()) {
    for (const Operation& operation : custom_name != nullptr ? family->customs : family->builtins) {
      if (custom_name != nullptr ? std::strcmp(operation.name, custom_name) == 0
                                 : operation.code == builtin_code)
        return {family, &operation};
    }
  }
  return {};
}

namespace {

bool may_lack(const Operation& operation, int input) {
  return operation.optional != kAnyNumber && input >= operation.inputs;
}

std::string count(int n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

bool may_lack(int builtin_code, bool is_input, int i) {
  constexpr int kReshape = 22;
  const Operation* operation = find_handler(builtin_code, nullptr).operation;
  if (operation == nullptr) return true;
  return is_input && builtin_code != kReshape && may_lack(*operation, i);
}

std::optional<Refusal> check_operands(const tfl::NodeView& node, const Operation& operation) {
  const int inputs = node.input_count(), outputs = node.output_count();
  const bool any = operation.optional == kAnyNumber;
  if (inputs < operation.inputs || (!any && inputs > operation.inputs + operation.optional)) {
    return Refusal{
        Why::kOperands, "",
        "it has " + count(inputs, "input") + "; the operation takes " + (any ? "at least " : "") +
            count(operation.inputs, "input") +
            (operation.optional > 0 ? " and at most " + std::to_string(operation.optional) + " more"
                                    : "")};
  }
  for (int i = 0; i < inputs; ++i) {
    if (!may_lack(operation, i) && !node.has_input(i))
      return Refusal{Why::kOperands, "input " + std::to_string(i),
                     "is absent, which the operation needs"};
  }
  if (operation.outputs == kAnyNumber ? outputs < 1 : outputs != operation.outputs) {
    return Refusal{
        Why::kOperands, "",
        "it has " + count(outputs, "output") + "; the operation has " +
            (operation.outputs == kAnyNumber ? "at least one" : std::to_string(operation.outputs))};
  }
  // Runtimes leave out results of loops that nothing reads.
  for (int i = 0; i < outputs && operation.control == Control::kNone; ++i) {
    if (!node.has_output(i))
      return Refusal{Why::kOperands, "output " + std::to_string(i), "is absent"};
  }
  const int typed = operation.outputs == kAnyNumber ? outputs : 1;
  for (int i = 0; i < typed && operation.type_of >= 0; ++i) {
    const tfl::TensorView from = node.input(operation.type_of), to = node.output(i);
    if (from.tflite_type() == to.tflite_type()) continue;
    if (from.is_quantized() && to.is_quantized()) continue;  // families check their scales
    if (operation.dequantizes && from.is_quantized() && to.tflite_type() == kTfLiteFloat32)
      continue;
    const std::string has = tfl::type_name(to.tflite_type()),
                      wanted = tfl::type_name(from.tflite_type());
    return Refusal{Why::kType,
                   "output " + std::to_string(i),
                   "is " + has + " and input " + std::to_string(operation.type_of) + " " + wanted +
                       "; the operation does not convert",
                   has,
                   {wanted}};
  }
  return std::nullopt;
}

}  // namespace clgpu::ops
