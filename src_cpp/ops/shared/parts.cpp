#include "ops/shared/parts.hpp"

#include <algorithm>

#include "kernel/sources.hpp"

namespace clgpu::ops {

kernel::Launch translated(kernel::Launch launch, const ir::Node& part, const ir::Node& whole,
                          int scratch) {
  using Kind = kernel::Operand::Kind;
  for (kernel::Arg& arg : launch.args) {
    auto* operand = std::get_if<kernel::Operand>(&arg);
    if (operand == nullptr) continue;
    if (operand->kind == Kind::kScratch) {
      operand->index += scratch;
      continue;
    }
    const auto& ids = operand->kind == Kind::kInput ? part.inputs : part.outputs;
    const int tensor = ids.at(uz(operand->index));
    const auto input = std::find(whole.inputs.begin(), whole.inputs.end(), tensor);
    const bool is_input = input != whole.inputs.end();
    const auto output = std::find(whole.outputs.begin(), whole.outputs.end(), tensor);
    CLGPU_CHECK(is_input || output != whole.outputs.end());
    operand->kind = is_input ? Kind::kInput : Kind::kOutput;
    operand->index =
        static_cast<int>(is_input ? input - whole.inputs.begin() : output - whole.outputs.begin());
  }
  return launch;
}

kernel::Candidate separate(const NodeContext& node, const std::vector<ir::Node>& parts,
                           const DeviceInfo& device, bool plain, bool tensor_cores) {
  const char* name = plain ? "naive" : tensor_cores ? "separate" : "separate_scalar";
  kernel::Candidate result{name, {}, {}};
  if (plain) result.form = kernel::Form::kReference;
  for (const ir::Node& part : parts) {
    const auto list = family_of(part).candidates(NodeContext(node.graph(), part), device);
    const auto fits = [&](const kernel::Launch& launch) {
      return kernel::group_items(launch) <= device.max_work_group_size ||
             kernel::any_work_group(launch.file, launch.entry);
    };
    const auto suits = [&](const kernel::Candidate& c) {
      return c.refusal.empty() && (tensor_cores || !c.tensor_cores) &&
             std::all_of(c.launches.begin(), c.launches.end(), fits);
    };
    auto chosen = std::find_if(list.begin(), list.end(), suits);
    for (auto simpler = chosen; plain && simpler != list.end(); ++simpler) {
      if (simpler->form > chosen->form && suits(*simpler)) chosen = simpler;
    }
    if (chosen == list.end()) return {result.name, {}, {}, "no kernel of a part fits the device"};
    const int scratch = static_cast<int>(result.scratch.size());
    for (const kernel::Launch& launch : chosen->launches) {
      result.launches.push_back(translated(launch, part, node.node(), scratch));
    }
    result.scratch.insert(result.scratch.end(), chosen->scratch.begin(), chosen->scratch.end());
  }
  return result;
}

}  // namespace clgpu::ops
