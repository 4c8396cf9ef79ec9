// Which resources of the runtime the partitions keep: a part of Model.
#include <algorithm>

#include "delegate/claim/model.hpp"

namespace clgpu::delegate {

const std::string* Model::resource_of(const ModelNode& node) const {
  if (node.operation == nullptr || !node.works) return nullptr;
  switch (node.operation->resource) {
    case ops::Resource::kHandle:
      return &node.imported.resource;
    case ops::Resource::kRead:
    case ops::Resource::kAssign: {
      const auto writer = writer_.find(node.inputs.at(0));
      return writer == writer_.end() ? nullptr : resource_of(nodes[writer->second]);
    }
    case ops::Resource::kNone:
    case ops::Resource::kOnce:
      break;
  }
  return nullptr;
}

void Model::refuse_resource(const std::string& name, const Refusal& refusal) {
  std::vector<int> found;
  for (const ModelNode& node : nodes) {
    const std::string* const used = resource_of(node);
    if (node.claimed && used != nullptr && *used == name) found.push_back(node.index);
  }
  for (const int index : found) refuse(index, refusal);
}

bool Model::has_several_shapes(const std::string& resource) const {
  std::set<std::vector<int>> shapes;
  for (const ModelNode& node : nodes) {
    const std::string* const name = resource_of(node);
    if (name == nullptr || *name != resource) continue;
    if (node.operation->resource == ops::Resource::kRead)
      shapes.insert(whole_.tensor(node.outputs[0]).shape.dims());
    if (node.operation->resource == ops::Resource::kAssign)
      shapes.insert(whole_.tensor(node.inputs[1]).shape.dims());
  }
  return shapes.size() > 1;
}

void Model::settle_states() {
  for (const ModelNode& node : nodes) {
    if (!node.claimed) continue;
    for (const int slot : states_of(node)) {
      // The runtime orders nodes by other tensors only.
      if (readers_[node.inputs[uz(slot)]].size() < 2) continue;
      refuse(node.index, {Why::kVariable, "input " + std::to_string(slot),
                          "is a variable tensor that another node uses, too"});
      break;
    }
  }
}

void Model::settle_resources() {
  std::set<std::string> kept;
  for (const ModelNode& node : nodes) {
    const std::string* const name = resource_of(node);
    if (node.claimed && name != nullptr) kept.insert(*name);
  }
  const auto is_on_cpu = [](const ModelNode& node) { return !node.claimed; };
  // A node with side effects may call another graph, which uses resources.
  // Variables have an order among them, and what sets their first values is one node for all.
  const auto other = std::find_if(nodes.begin(), nodes.end(), [&](const ModelNode& node) {
    return is_on_cpu(node) && node.has_side_effect;
  });
  const bool stores_only = std::all_of(nodes.begin(), nodes.end(), [&](const ModelNode& node) {
    const bool uses = node.operation != nullptr && node.operation->resource != ops::Resource::kNone;
    return is_on_cpu(node) || uses || node.evaluated || computes_constant(node);
  });
  for (const std::string& name : kept) {
    if (has_several_shapes(name)) {
      refuse_resource(name, {Why::kVariable, "", "nodes give the variable several shapes"});
    } else if (stores_only) {
      refuse_resource(name, {Why::kVariable, "", "the graph computes nothing but its variables"});
    } else if (other != nodes.end()) {
      refuse_resource(name, {Why::kVariable, "",
                             "node " + std::to_string(other->index) + " (" + other->op +
                                 ") on the CPU may use the variable"});
    }
  }
  const bool any = std::any_of(nodes.begin(), nodes.end(), [&](const ModelNode& node) {
    return node.claimed && resource_of(node) != nullptr;
  });
  for (const ModelNode& node : nodes) {
    if (!any && node.claimed && node.operation->resource == ops::Resource::kOnce)
      refuse(node.index, {Why::kVariable, "", "no variable is on the device"});
  }
}

bool Model::leave_shared_resources(const std::vector<std::vector<int>>& partitions) {
  std::map<std::string, std::set<std::size_t>> users;  // partitions, by resource
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    for (const int index : partitions[i]) {
      const ModelNode& user = node(index);
      const bool uses = user.operation->resource == ops::Resource::kRead ||
                        user.operation->resource == ops::Resource::kAssign;
      if (const std::string* const name = resource_of(user); uses && name != nullptr)
        users[*name].insert(i);
    }
  }
  bool any = false;
  for (const auto& [name, parts] : users) {
    if (parts.size() < 2) continue;
    refuse_resource(
        name, {Why::kVariable, "", std::to_string(parts.size()) + " partitions use the variable"});
    any = true;
  }
  return any;
}

}  // namespace clgpu::delegate
