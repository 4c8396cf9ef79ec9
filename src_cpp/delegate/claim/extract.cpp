// What a partition takes of the model: the rest of Model.
#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "delegate/claim/model.hpp"
#include "ops/families/control_flow.hpp"

namespace clgpu::delegate {
namespace {

// Tensors that nodes of a graph read and none of them writes, without constants.
void find_inputs(ir::Graph& graph) {
  std::set<int> known;
  for (const ir::Node& node : graph.nodes) known.insert(node.outputs.begin(), node.outputs.end());
  for (const ir::Node& node : graph.nodes) {
    for (const int id : node.inputs) {
      if (id < 0 || graph.tensor(id).is_constant()) continue;
      if (known.insert(id).second) graph.inputs.push_back(id);
    }
  }
}

// Names the values of states while a graph is made, node by node.
class StateValues {
 public:
  StateValues(ir::Graph& graph, std::vector<StateSource>& sources)
      : graph_(graph), sources_(sources) {}

  // The state of a variable tensor or, with a name, of a resource.
  StateSource& source(int tensor, const std::string& resource, const std::string& name) {
    const auto [entry, is_new] = index_.try_emplace({tensor, resource}, sources_.size());
    if (is_new) {
      StateSource source;
      source.name = name;
      source.tensor = tensor;
      sources_.push_back(std::move(source));
      current_.push_back(-1);
    }
    return sources_[entry->second];
  }

  // The tensor with the value that a node of the graph reads now. `like` has its shape and type.
  int read(const StateSource& source, ir::Tensor like) {
    int& current = current_[position(source)];
    if (current < 0) current = add(source, std::move(like));
    return current;
  }

  // A tensor for a new value.
  int write(const StateSource& source, ir::Tensor like) {
    return current_[position(source)] = add(source, std::move(like));
  }

  // The values that remain become outputs of the graph; the others are no states' any more.
  void finish() {
    const std::set<int> inputs(graph_.inputs.begin(), graph_.inputs.end());
    for (std::size_t id = 0; id < graph_.tensors.size(); ++id) {
      ir::Tensor& tensor = graph_.tensors[id];
      if (tensor.state < 0 || inputs.count(static_cast<int>(id)) > 0) continue;
      if (current_[uz(tensor.state)] == static_cast<int>(id)) {
        graph_.outputs.push_back(static_cast<int>(id));
      } else {
        tensor.state = -1;
      }
    }
  }

 private:
  std::size_t position(const StateSource& source) const {
    return static_cast<std::size_t>(&source - sources_.data());
  }

  int add(const StateSource& source, ir::Tensor tensor) {
    tensor.name = source.name;
    tensor.tflite_id = -1;
    tensor.constant = nullptr;
    tensor.state = static_cast<int>(position(source));
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  ir::Graph& graph_;
  std::vector<StateSource>& sources_;
  std::map<std::pair<int, std::string>, std::size_t> index_;
  std::vector<int> current_;  // by state
};

// The kind of the nodes that pass on the results of a node's graphs.
const ops::Family* view_of(const ops::Family& family) {
  if (family.is_view) return &family;
  const auto found = std::find_if(family.variants.begin(), family.variants.end(),
                                  [](const ops::Family* variant) { return variant->is_view; });
  CLGPU_CHECK(found != family.variants.end());
  return *found;
}

// The name in the model without the separator that ops::Imported::resource may contain.
std::string readable(std::string resource) {
  std::replace(resource.begin(), resource.end(), '\n', ' ');
  resource.erase(0, resource.find_first_not_of(' '));
  return printable(resource);
}

}  // namespace

ir::Node Model::ir_node(const ModelNode& node, const std::function<int(int)>& id_of) {
  ir::Node result;
  result.kind = node.family;
  result.op = node.op;
  result.tflite_index = node.index;
  result.attrs = node.imported.attrs;
  result.epilogue = node.imported.epilogue;
  for (const int id : node.inputs) result.inputs.push_back(id_of(id));
  for (const int id : node.outputs) result.outputs.push_back(id_of(id));
  return result;
}

ir::Node Model::running_node(const ModelNode& node, const std::function<int(int)>& id_of) const {
  ir::Node result = ir_node(node, id_of);
  result.kind = &ops::running(node.operation->control);
  result.attrs = std::make_shared<const ir::Attrs>();
  for (const bool is_first : {true, false}) result.graphs.push_back(running_graph(node, is_first));
  return result;
}

std::shared_ptr<const ir::Graph> Model::running_graph(const ModelNode& node, bool is_first) const {
  auto made = std::make_shared<ir::Graph>();
  ir::Graph& graph = *made;
  std::map<int, int> id_of;
  const std::function<int(int)> intern = [&](int id) {
    if (id < 0) return -1;
    const auto [entry, is_new] = id_of.try_emplace(id, static_cast<int>(graph.tensors.size()));
    if (is_new) graph.tensors.push_back(whole_.tensor(id));
    if (is_new && known_.count(id) != 0) graph.tensors.back().constant = nullptr;
    return entry->second;
  };
  // The tensor whose memory it has.
  const auto root_of = [&](int id) {
    for (bool found = true; found;) {
      found = false;
      for (const ir::Node& writer : graph.nodes) {
        if (!writer.kind->is_view || writer.outputs[0] != id) continue;
        id = writer.inputs[0];
        found = true;
      }
    }
    return id;
  };
  const std::vector<int>& values = node.run->values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    graph.inputs.push_back(intern(values[i]));
    graph.tensors.back().carried = static_cast<int>(i);
  }
  const std::size_t split = node.run->split;
  for (std::size_t i = is_first ? 0 : split; i < (is_first ? split : node.inner.size()); ++i) {
    const ModelNode& inner = node.inner[i];
    if (inner.run != nullptr) {
      graph.nodes.push_back(running_node(inner, intern));
    } else if (inner.folded != nullptr) {
      graph.tensor(intern(inner.outputs[0])).constant = inner.folded;
    } else {
      graph.nodes.push_back(ir_node(inner, intern));
    }
  }
  // Each result has memory of its own, except for a state that stays as it is.
  std::set<int> taken;
  const auto give = [&](int tflite_id, int number) {
    int id = intern(tflite_id);
    const int source = root_of(id);
    const bool is_input = std::count(graph.inputs.begin(), graph.inputs.end(), source) > 0;
    const bool is_own = is_input && number >= 0 && graph.tensor(source).carried == number;
    if (!taken.insert(source).second || (is_input && !is_own)) {
      ir::Tensor copy = graph.tensor(id);
      copy.tflite_id = -1;
      copy.constant = nullptr;
      graph.tensors.push_back(std::move(copy));
      const int to = static_cast<int>(graph.tensors.size()) - 1;
      graph.nodes.push_back(ops::state_of(id, to));
      graph.nodes.back().tflite_index = node.index;
      id = to;
    }
    graph.tensor(id).carried = number;
    graph.outputs.push_back(id);
  };
  const bool is_loop = node.operation->control == ops::Control::kLoop;
  const std::vector<int>& results = is_first ? node.run->results : node.run->otherwise;
  // A value that no node changes is handed on.
  const std::size_t changed = is_loop && !is_first ? values.size() : 0;
  for (std::size_t i = changed; i < values.size(); ++i) {
    taken.insert(graph.inputs[i]);
    graph.outputs.push_back(graph.inputs[i]);
  }
  const int first = is_loop ? 0 : static_cast<int>(values.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool is_condition = is_loop && i + 1 == results.size();
    give(results[i], is_condition ? -1 : static_cast<int>(i) + first);
  }
  return made;
}

std::vector<int> Model::states_of(const ModelNode& node) {
  std::vector<int> slots;
  for (const int slot : node.operation->states) {
    if (slot < static_cast<int>(node.inputs.size()) && node.inputs[uz(slot)] >= 0)
      slots.push_back(slot);
  }
  return slots;
}

std::unique_ptr<Specialization> Model::specialization(const TfLiteContext& context,
                                                      const std::vector<int>& node_indices,
                                                      const std::vector<int>& awaited) const {
  std::map<int, CpuNode> evaluated, readers;
  std::set<int> awaiting;
  const std::function<void(const ModelNode&)> add = [&](const ModelNode& node) {
    if (node.run != nullptr) return void(std::for_each(node.inner.begin(), node.inner.end(), add));
    if (!node.evaluated && !node.reads_values) return;
    (node.evaluated ? evaluated : readers).emplace(node.outputs.at(0), *node.cpu);
  };
  for (const std::size_t position : members(node_indices)) {
    const ModelNode& node = nodes[position];
    if (node.waits() || node.hosted) awaiting.insert(node.index);
    if (!node.is_inlined()) add(node);
    std::for_each(node.inner.begin(), node.inner.end(), add);
  }
  if (evaluated.empty() && readers.empty()) return nullptr;
  return std::make_unique<Specialization>(context, inner_.get(), std::move(evaluated),
                                          std::move(readers), std::move(awaiting), awaited);
}

Measured Model::measured(const ModelNode& node) const {
  Measured measured;
  measured.tensor = node.measures;
  measured.result = node.outputs.at(0);
  ir::Graph& graph = measured.graph;
  graph.tensors.push_back(whole_.tensor(node.measures));
  ir::Tensor number;
  number.name = "the number of '" + graph.tensors[0].name + "'";
  number.dtype = number.storage = DType::kI32;
  number.shape = ir::Shape{1};
  number.model_rank = 1;
  graph.tensors.push_back(std::move(number));
  graph.inputs = {0};
  graph.outputs = {1};
  ir::Node by;
  by.kind = node.family->measure;
  by.op = node.op;
  by.tflite_index = node.index;
  by.attrs = std::make_shared<const ir::Attrs>();
  by.inputs = {0};
  by.outputs = {1};
  graph.nodes.push_back(std::move(by));
  return measured;
}

std::vector<StageNodes> Model::stages(const std::vector<int>& node_indices,
                                      const std::vector<int>& outputs) const {
  const std::set<std::size_t> all = members(node_indices);
  std::map<std::size_t, std::size_t> stage_of;  // by position
  const auto writer_in = [&](int id) {
    const auto writer = id < 0 || is_constant(id) ? writer_.end() : writer_.find(id);
    return writer == writer_.end() || stage_of.count(writer->second) == 0
               ? stage_of.end()
               : stage_of.find(writer->second);
  };
  // `divides`: nodes that measure an input of the partition are not in the first stage.
  const auto assign = [&](bool divides) {
    stage_of.clear();
    std::size_t last = 0;
    for (const std::size_t position : all) {
      const ModelNode& node = nodes[position];
      std::size_t& stage = stage_of[position];
      if (divides && node.measures >= 0) stage = 1;
      for (const int id : node.inputs) {
        const auto writer = writer_in(id);
        if (writer == stage_of.end()) continue;
        // What is evaluated is known while its stage is planned.
        const bool is_read =
            (id == node.measures || std::count(node.awaits.begin(), node.awaits.end(), id) != 0) &&
            !nodes[writer->first].evaluated;
        stage = std::max(stage, writer->second + (is_read ? 1 : 0));
      }
      last = std::max(last, stage);
    }
    return last;
  };
  // Kernels that do not depend on a number need no new plan for it. A state has one stage.
  const auto has_state = [&](std::size_t position) {
    const ops::Operation& operation = *nodes[position].operation;
    return operation.resource != ops::Resource::kNone || !operation.states.empty();
  };
  const auto is_first_kernel = [&](std::size_t position) {
    const ModelNode& node = nodes[position];
    return stage_of.at(position) == 0 && !node.evaluated && !computes_constant(node);
  };
  std::size_t last = assign(has_stages_ && std::none_of(all.begin(), all.end(), has_state));
  if (std::none_of(all.begin(), all.end(), is_first_kernel)) last = assign(false);
  if (last == 0) return {{node_indices, outputs, {}}};
  std::vector<StageNodes> stages(last + 1);
  const auto add = [](std::vector<int>& list, int id) {
    if (std::count(list.begin(), list.end(), id) == 0) list.push_back(id);
  };
  for (const int index : node_indices)
    stages[stage_of.at(position_.at(index))].nodes.push_back(index);
  for (const std::size_t position : all) {
    const ModelNode& node = nodes[position];
    const std::size_t stage = stage_of.at(position);
    for (const int id : node.outputs) {
      if (std::count(outputs.begin(), outputs.end(), id) != 0) add(stages[stage].outputs, id);
    }
    for (const int id : node.inputs) {
      const auto writer = writer_in(id);
      if (writer == stage_of.end() || writer->second == stage) continue;
      add(stages[writer->second].outputs, id);
      if (nodes[writer->first].evaluated && node.reads_values) add(stages[stage].values, id);
    }
  }
  return stages;
}

bool Model::is_computed(int tensor) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const ModelNode& node) {
    return std::count(node.outputs.begin(), node.outputs.end(), tensor) > 0;
  });
}

bool Model::is_read_outside(int tensor, const std::set<int>& node_indices) const {
  const auto readers = readers_.find(tensor);
  return readers != readers_.end() &&
         std::any_of(readers->second.begin(), readers->second.end(),
                     [&](std::size_t r) { return node_indices.count(nodes[r].index) == 0; });
}

std::vector<int> Model::awaited(const StageNodes& stage) const {
  std::vector<int> awaited = stage.values;
  const std::set<std::size_t> own = members(stage.nodes);
  for (const std::size_t position : own) {
    for (const int id : awaited_by(nodes[position])) {
      const auto writer = writer_.find(id);
      if (writer != writer_.end() && own.count(writer->second) != 0) continue;  // it is hosted
      if (std::count(awaited.begin(), awaited.end(), id) == 0) awaited.push_back(id);
    }
  }
  return awaited;
}

Extract Model::extract(const TfLiteContext& context, const StageNodes& stage) const {
  const std::vector<int>& node_indices = stage.nodes;
  Extract extract;
  std::vector<StateSource> states;
  extract.graph = graph(node_indices, stage.outputs, states);
  extract.awaited = awaited(stage);
  for (const std::size_t position : members(node_indices)) {
    if (nodes[position].measures >= 0) extract.measured.push_back(measured(nodes[position]));
  }
  extract.specialization = specialization(context, node_indices, extract.awaited);
  if (!inner_->list().empty()) extract.inner = inner_;
  if (states.empty()) return extract;
  std::vector<CpuNode> once;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].claimed && nodes[i].operation->resource == ops::Resource::kOnce)
      once.push_back(*nodes[i].cpu);
  }
  extract.states = std::make_unique<States>(context, std::move(states), std::move(once));
  return extract;
}

ir::Graph Model::graph(const std::vector<int>& node_indices, const std::vector<int>& outputs,
                       std::vector<StateSource>& sources) const {
  ir::Graph graph;
  StateValues states(graph, sources);
  std::map<int, int> id_of;  // TFLite id -> graph id
  const auto intern = [&](int tflite_id) {
    if (tflite_id < 0) return -1;
    const auto [entry, inserted] =
        id_of.try_emplace(tflite_id, static_cast<int>(graph.tensors.size()));
    if (inserted) graph.tensors.push_back(whole_.tensor(tflite_id));
    // A partition computes such values itself, for its shapes.
    if (inserted && known_.count(tflite_id) != 0) graph.tensors.back().constant = nullptr;
    return entry->second;
  };
  // Nodes read variable tensors as states.
  const auto stateful = [&](const ModelNode& member) {
    ir::Node node = ir_node(member, [](int) { return -1; });
    const std::vector<int> slots = states_of(member);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const int id = member.inputs[i];
      if (std::count(slots.begin(), slots.end(), static_cast<int>(i)) == 0) {
        node.inputs[i] = intern(id);
      } else {
        const ir::Tensor& tensor = whole_.tensor(id);
        node.inputs[i] = states.read(states.source(id, {}, tensor.name), tensor);
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      node.outputs[i] = intern(member.outputs[i]);
    for (const int slot : slots) {
      const int id = member.inputs[uz(slot)];
      const ir::Tensor& tensor = whole_.tensor(id);
      node.outputs.push_back(states.write(states.source(id, {}, tensor.name), tensor));
    }
    return node;
  };
  const auto compute = [&](const ModelNode& member) {
    if (member.run != nullptr) {
      graph.nodes.push_back(running_node(member, intern));
    } else if (member.folded == nullptr) {
      graph.nodes.push_back(stateful(member));
    } else {
      graph.tensor(intern(member.outputs[0])).constant = member.folded;
    }
  };
  // The results of a loop, a branch or a composite are those of its nodes, or its inputs.
  const auto pass_on = [&](const ModelNode& member) {
    for (std::size_t i = 0; i < member.results.size(); ++i) {
      if (member.outputs[i] < 0) continue;
      ir::Node node = ir_node(member, [](int) { return -1; });
      node.kind = view_of(*member.family);
      node.inputs = {intern(member.results[i])};
      node.outputs = {intern(member.outputs[i])};
      graph.nodes.push_back(std::move(node));
    }
  };
  // The values of resources are states; nodes that assign or read them are views of these values.
  const auto access = [&](const ModelNode& member) {
    const std::string& resource = *resource_of(member);
    StateSource& source = states.source(-1, resource, readable(resource));
    source.handle = *nodes[writer_.at(member.inputs[0])].cpu;
    ir::Node node = ir_node(member, [](int) { return -1; });
    if (member.operation->resource == ops::Resource::kRead) {
      if (!source.read) source.read = *member.cpu;
      const ir::Tensor& tensor = whole_.tensor(member.outputs[0]);
      node.inputs = {states.read(source, tensor)};
      node.outputs = {intern(member.outputs[0])};
    } else {
      source.assign = *member.cpu;
      const ir::Tensor& tensor = whole_.tensor(member.inputs[1]);
      node.inputs = {intern(member.inputs[1])};
      node.outputs = {states.write(source, tensor)};
    }
    return node;
  };
  for (const std::size_t position :
       members(node_indices)) {  // a set of positions is sorted by execution order
    const ModelNode& member = nodes[position];
    if (member.is_inlined()) {
      for (const ModelNode& inner : member.inner) compute(inner);
      pass_on(member);
      continue;
    }
    switch (member.operation->resource) {
      case ops::Resource::kNone:
        compute(member);
        break;
      case ops::Resource::kRead:
      case ops::Resource::kAssign:
        graph.nodes.push_back(access(member));
        break;
      case ops::Resource::kHandle:
      case ops::Resource::kOnce:
        break;
    }
  }
  find_inputs(graph);
  const std::set<int> own(node_indices.begin(), node_indices.end());
  for (const int tflite_id : outputs) {
    if (id_of.count(tflite_id) == 0) continue;
    if (is_constant(tflite_id) && model_outputs.count(tflite_id) == 0) {
      // Other partitions fold their own copy, and no node on the CPU reads it (settle_constants).
      if (is_read_outside(tflite_id, own)) continue;
    }
    graph.outputs.push_back(id_of.at(tflite_id));
  }
  states.finish();
  return graph;
}

}  // namespace clgpu::delegate
