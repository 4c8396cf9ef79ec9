#include "delegate/claim/model.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "delegate/int_array.hpp"
#include "ops/shared/common.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::delegate {
namespace {

Refusal not_core() {
  return {Why::kOption, "ops", "the operation is not one of the core operations"};
}

// Why a tensor keeps its node off the device, whatever the family.
std::optional<Refusal> check_tensor(const tfl::TensorView& tensor, const std::string& what,
                                    const ops::Family& family, int slot, bool may_vary) {
  const char* const type = tfl::type_name(tensor.tflite_type());
  const bool narrow = tensor.is_narrow() && slot >= 0 && slot == family.narrow;
  if (!narrow && !tfl::dtype_of(tensor.tflite_type())) return Refusal{Why::kType, what, {}, type};
  if (auto refusal = tfl::check_quantization(tensor, what, family.int16_zero_points))
    return refusal;
  if (tensor.is_quantized() && !family.allows_quantized)
    return Refusal{Why::kIntegers, what, {}, type};
  if (tensor.raw().is_variable && !may_vary) return Refusal{Why::kVariable, what};
  if (tensor.raw().sparsity != nullptr && family.fold == nullptr)
    return Refusal{Why::kSparse, what};
  // Stock kernels check the number of axes with assertions that end the process.
  if (tensor.rank() > ops::kMostAxes && !family.is_view) {
    const std::string supported = "0 to " + std::to_string(family.most_axes);
    return Refusal{Why::kAborts, what, {}, "rank " + std::to_string(tensor.rank()), {supported}};
  }
  if (auto refusal = ops::check_rank(tensor, what, 0, family.most_axes)) return refusal;
  if (tensor.raw().allocation_type == kTfLiteMmapRo && tensor.raw().data == nullptr)
    return Refusal{Why::kMalformed, what, "is a constant without data"};
  return std::nullopt;
}

std::shared_ptr<const ir::Constant> constant_of(const tfl::TensorView& view) {
  if (!view.has_data() || view.raw().sparsity != nullptr) return nullptr;
  auto constant = std::make_shared<ir::Constant>();
  constant->data = view.raw().data;
  constant->bytes = view.raw().bytes;
  constant->dtype = view.dtype();
  // Rows of a matrix that begin at whole bytes are widened while they are uploaded: the host needs
  // no second copy, and graphs share the weights.
  const auto each = static_cast<std::size_t>(8 / tfl::bits_of(view));
  const bool whole = view.rank() == 2 && uz(view.dim(1)) % each == 0 &&
                     view.raw().bytes * each == static_cast<std::size_t>(view.elements());
  if (view.is_narrow() && whole) {
    constant->bits = tfl::bits_of(view);
  } else if (view.is_narrow()) {
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>(tfl::unpacked(view));
    constant->data = bytes->data();
    constant->bytes = bytes->size();
    constant->owner = bytes;
  }
  return constant;
}

}  // namespace

Model::Model(TfLiteContext& context, const Options& options)
    : evaluator_(context),
      inner_(std::make_shared<InnerTensors>(context.tensors_size)),
      context_(context),
      core_only_(options.core_only),
      has_stages_(options.carry.empty() && options.plan.memory_budget == 0) {
  whole_.tensors.resize(context.tensors_size);
  TfLiteIntArray* plan = nullptr;
  if (context.GetExecutionPlan(&context, &plan) != kTfLiteOk || plan == nullptr)
    throw Error("the runtime does not list the nodes of the model (GetExecutionPlan failed)");
  // The runtime overwrites the array at the next call.
  const std::vector<int> order(plan->data, plan->data + plan->size);
  find_writers(context, order);
  for (const int index : order) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context.GetNodeAndRegistration(&context, index, &node, &registration) != kTfLiteOk) {
      throw Error("the runtime does not show node " + std::to_string(index) +
                  " (GetNodeAndRegistration failed)");
    }
    const tfl::NodeView view(evaluator_.context(), *node, *registration, index);
    position_[index] = nodes.size();
    ModelNode entry;
    entry.index = index;
    entry.op = view.op();
    entry.has_side_effect = node->might_have_side_effect;
    entry.inputs.assign(node->inputs->data, node->inputs->data + node->inputs->size);
    entry.outputs.assign(node->outputs->data, node->outputs->data + node->outputs->size);
    for (const auto* ids : {&entry.inputs, &entry.outputs}) {
      for (const int id : *ids) {
        if (view.is_tensor(id) && read_.insert(id).second) read_tensor(view.tensor(id), id);
      }
    }
    entry.cpu = std::make_shared<const CpuNode>(index, entry.op, *node, *registration);
    import(entry, view, options);
    if (entry.is_inlined()) {
      if (entry.claimed) inline_graphs(entry, options);
      entry.works = entry.claimed;
    } else if (entry.claimed && !entry.waits() &&
               entry.operation->resource == ops::Resource::kNone) {
      evaluate(entry);
    }
    if (entry.works) note_open(entry);
    for (const int id : entry.inputs) {
      if (id >= 0) readers_[id].push_back(nodes.size());
    }
    for (const int id : entry.outputs) {
      if (id >= 0) writer_[id] = nodes.size();
    }
    if (computes_constant(entry)) constants_.insert(entry.outputs.begin(), entry.outputs.end());
    nodes.push_back(std::move(entry));
  }
  refuse_with_aborting();
}

void Model::refuse_with_aborting() {
  const auto aborting = std::find_if(nodes.begin(), nodes.end(), [](const ModelNode& node) {
    return node.refusal && node.refusal->why == Why::kAborts;
  });
  if (aborting == nodes.end()) return;
  // Without the delegate, an error of another node may prevent this one from running.
  const Refusal all{
      Why::kAborts, "node " + std::to_string(aborting->index) + " (" + aborting->op + ")",
      "can end the process in the runtime's kernels: " + sentence_of(*aborting->refusal)};
  for (const ModelNode& node : nodes) {
    if (!node.refusal) refuse(node.index, all);
  }
}

void Model::read_tensor(const tfl::TensorView& view, int id) {
  dynamic_ = dynamic_ || leaves_size_open(view.raw().dims_signature);
  ir::Tensor tensor;
  tensor.name = view.raw().name != nullptr ? printable(view.raw().name) : "";
  tensor.tflite_id = id;
  tensor.shape = ir::Shape(view.dims());
  tensor.model_rank = view.rank();
  if (view.is_narrow() || tfl::dtype_of(view.tflite_type())) {
    tensor.dtype = tensor.storage = view.dtype();
    tensor.constant = constant_of(view);
    tensor.quantization = tfl::quantization_of(view);
    if (view.has_data()) {
      stored_.insert(id);
      constants_.insert(id);
    }
  }
  whole_.tensor(id) = std::move(tensor);
}

// As much as the shapes and the axes of a model need. More is left to the device.
constexpr std::int64_t kMostEvaluated = 1024;

bool Model::follows_from_shapes(const ModelNode& node, bool inferred) const {
  if (node.folded != nullptr) return false;
  if (node.operation->by_shape) return true;
  bool any_evaluated = false;
  for (const int id : node.inputs) {
    if (id < 0) continue;
    const bool evaluated = known_.count(id) != 0;
    if (!evaluated && stored_.count(id) == 0) return false;
    any_evaluated = any_evaluated || evaluated;
  }
  if (node.inputs.empty()) return false;
  if (!node.family->has_kernels()) return true;
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
    const ir::Tensor& tensor = whole_.tensor(id);
    // Constants other than indices and conditions are folded on the device.
    const bool index = tensor.dtype == DType::kI32 || tensor.dtype == DType::kI64 ||
                       (tensor.dtype == DType::kBool && tensor.shape.elements() == 1);
    // Lists without elements have no shape on the device.
    return inferred ? (any_evaluated || index) && tensor.shape.elements() <= kMostEvaluated
                    : any_evaluated && index;
  });
}

bool Model::evaluate(ModelNode& node) {
  node.reads_values = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](int id) { return known_.count(id) != 0; });
  const bool inferred = !node.family->has_kernels() || infer(node);
  if (!follows_from_shapes(node, inferred)) return inferred;
  try {
    const std::vector<Known> results = evaluator_.run(*node.cpu);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ir::Tensor& tensor = whole_.tensor(node.outputs[i]);
      tensor.shape = ir::Shape(results[i].dims);
      tensor.model_rank = tensor.shape.rank();
      tensor.constant = results[i].constant;
      known_.insert(node.outputs[i]);
    }
    node.evaluated = true;
    const bool by_shape =
        node.operation->by_shape || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                [&](int id) { return by_shape_.count(id) != 0; });
    if (by_shape) by_shape_.insert(node.outputs.begin(), node.outputs.end());
    return true;
  } catch (const ShadowError& error) {
    if (node.family->has_kernels()) return inferred;
    node.works = node.claimed = false;
    node.refusal = Refusal{Why::kRuntime, "the runtime", error.what()};
    return false;
  }
}

bool Model::infer(const ModelNode& node) {
  try {
    ir::Node now = ir_node(node, [](int id) { return id; });
    for (const int slot : states_of(node)) now.outputs.push_back(node.inputs[uz(slot)]);
    passes::infer_shapes(whole_, now);
  } catch (const Error&) {
    // The file's shapes remain: those of a dynamic model may not fit together before it is resized.
    // Building its partition reports other errors.
    return false;
  }
  for (const int id : node.outputs) {
    ir::Tensor& tensor = whole_.tensor(id);
    tensor.model_rank = tensor.shape.rank();
    evaluator_.set_shape(id, tensor.shape.dims());
  }
  return true;
}

void Model::refuse_readers() {
  for (const ModelNode& node : nodes) {
    if (!node.claimed || !node.reads_values || computes_constant(node)) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (known_.count(node.inputs[i]) == 0) continue;
      const ModelNode& writer = nodes[writer_.at(node.inputs[i])];
      if (writer.claimed || computes_constant(writer)) continue;
      refuse(node.index, {Why::kRunTime, "input " + std::to_string(i)});
      break;
    }
  }
}

void Model::find_writers(TfLiteContext& context, const std::vector<int>& order) {
  for (std::size_t position = 0; position < order.size(); ++position) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context.GetNodeAndRegistration(&context, order[position], &node, &registration) !=
        kTfLiteOk)
      continue;  // the constructor says so
    for (int i = 0; i < node->outputs->size; ++i) {
      if (node->outputs->data[i] >= 0) writers_[node->outputs->data[i]].push_back(position);
    }
    if (!unbounded_) unbounded_ = check_bounds(context, *node, registration->builtin_code);
  }
}

std::optional<Refusal> Model::check_bounds(const TfLiteContext& context, const TfLiteNode& node,
                                           int builtin) const {
  const auto find = [&](const TfLiteIntArray& ids, int i) -> const TfLiteTensor* {
    const bool is_tensor = i < ids.size && ids.data[i] >= 0 &&
                           static_cast<std::size_t>(ids.data[i]) < context.tensors_size;
    return is_tensor ? &context.tensors[ids.data[i]] : nullptr;
  };
  for (int i = 0; i < node.outputs->size; ++i) {
    const TfLiteTensor* const output = find(*node.outputs, i);
    // The file has already written a constant. The memory of other tensors has the size that the
    // last of their writers needs.
    if ((output != nullptr && output->allocation_type == kTfLiteMmapRo) ||
        is_written_twice(node.outputs->data[i]))
      return Refusal{Why::kMalformed, "a tensor of the model", "is written more than once"};
  }
  // Stock kernels write as many bytes as the elements of the input's type need, whatever the size
  // of the output; those of views also copy types that have no kernels here.
  const ops::Handler handler = ops::find_handler(builtin, nullptr);
  if (handler.operation == nullptr || handler.operation->type_of < 0) return std::nullopt;
  const auto size = [](const TfLiteTensor& tensor) -> std::optional<std::size_t> {
    const auto dtype = tfl::dtype_of(tensor.type);
    return dtype ? std::optional<std::size_t>(size_of(*dtype)) : std::nullopt;
  };
  const TfLiteTensor* const input = find(*node.inputs, handler.operation->type_of);
  for (int i = 0; i < node.outputs->size && input != nullptr; ++i) {
    const TfLiteTensor* const output = find(*node.outputs, i);
    if (output == nullptr || output->type == input->type) continue;
    if (i > 0 && handler.operation->outputs != ops::kAnyNumber) break;
    const bool known = size(*input) && size(*output);
    const bool overruns = known ? *size(*output) < *size(*input) : handler.family->is_view;
    if (!overruns) continue;
    const std::string has = tfl::type_name(output->type), wanted = tfl::type_name(input->type);
    return Refusal{Why::kType,
                   "the output of " + std::string(handler.operation->name) + " in the model",
                   "is " + has + " and its input " + wanted,
                   has,
                   {wanted}};
  }
  return std::nullopt;
}

bool Model::is_written_twice(int tensor) const {
  const auto writers = writers_.find(tensor);
  return writers != writers_.end() && writers->second.size() > 1;
}

std::optional<Refusal> Model::check_order(const tfl::NodeView& view) const {
  // Without the delegate, an error of another node may prevent the writer from running.
  if (unbounded_) return unbounded_;
  const std::size_t here = nodes.size();
  for (int i = 0; i < view.input_count(); ++i) {
    if (!view.has_input(i)) continue;
    const auto writers = writers_.find(view.input(i).id());
    if (writers == writers_.end()) continue;
    const std::string what = "input " + std::to_string(i);
    if (writers->second.front() >= here)
      return Refusal{Why::kMalformed, what, "is written by a later node"};
  }
  return std::nullopt;
}

std::optional<Refusal> Model::check(const ModelNode& node, const ops::Operation* operation,
                                    const tfl::NodeView& view, const Options& options) const {
  if (view.builtin() == kTfLiteBuiltinDelegate)
    return Refusal{Why::kRuntime, "another delegate", "has already claimed it"};
  if (node.family == nullptr && view.custom_name() != nullptr)
    return Refusal{Why::kUnknownCustom, "custom operation " + node.op};
  if (node.family == nullptr) return Refusal{Why::kNoKernels, "operation " + node.op};
  if (options.exclude.count(node.op) != 0 || options.exclude.count(std::to_string(node.index)) != 0)
    return Refusal{Why::kOption, "exclude"};
  if (auto refusal = ops::check_operands(view, *operation)) return refusal;
  if (auto refusal = check_order(view)) return refusal;
  for (int i = 0; i < view.input_count(); ++i) {
    if (!view.has_input(i)) continue;
    const tfl::TensorView input = view.input(i);
    const std::string what = "input " + std::to_string(i);
    const auto writer = writer_.find(input.id());
    if (input.tflite_type() == kTfLiteResource && operation->resource != ops::Resource::kNone) {
      // The name of a resource that comes from another graph is unknown.
      if (i == 0 && writer != writer_.end() && nodes[writer->second].works) continue;
      return Refusal{Why::kVariable, what, "is a resource that no node on the device names"};
    }
    const auto& states = operation->states;
    const bool is_state = std::count(states.begin(), states.end(), i) > 0;
    if (auto refusal = check_tensor(input, what, *node.family, i, is_state)) return refusal;
    // Files store an unknown shape as that of a scalar.
    const bool is_unknown =
        writer != writer_.end() && (!nodes[writer->second].works || open_.count(input.id()) != 0);
    if (input.rank() == 0 && is_unknown) return Refusal{Why::kUnknownShape, what};
  }
  for (int i = 0; i < view.output_count(); ++i) {
    const std::string what = "output " + std::to_string(i);
    if (operation->resource == ops::Resource::kHandle || !view.has_output(i)) continue;
    if (auto refusal = check_tensor(view.output(i), what, *node.family, -1, false)) return refusal;
  }
  return std::nullopt;
}

void Model::import(ModelNode& node, const tfl::NodeView& view, const Options& options) {
  const ops::Handler handler = ops::find_handler(view.builtin(), view.custom_name());
  node.family = handler.family;
  node.operation = handler.operation;
  node.refusal = check(node, handler.operation, view, options);
  // The digest of a model has the attributes of excluded nodes, too (mixed.cpp).
  if (node.refusal && node.refusal->why != Why::kOption) return;
  const bool is_excluded = node.refusal.has_value();
  try {
    const OrRefusal<ops::Imported> imported = node.family->import(view);
    if (is_excluded) {
      if (imported) node.imported = *imported;
      return;
    }
    if (!imported && (imported.refusal().why != Why::kRunTime || !await(node, view))) {
      // A composite that does not run as one operation may run as the graph that defines it.
      const bool is_composite =
          node.family->runs_graphs && node.operation->control == ops::Control::kNone;
      const auto* const composite = view.params<tfl::CompositeParams>();
      if (!is_composite || composite == nullptr) {
        node.refusal = imported.refusal();
        return;
      }
      node.as_graph = imported.refusal();
      node.imported.graphs = {composite->subgraph_index};
    }
    if (imported) node.imported = *imported;
    if (node.family->fold != nullptr) node.folded = node.family->fold(view);
  } catch (const Error& malformed) {
    if (!is_excluded) node.refusal = Refusal{Why::kMalformed, "", malformed.what()};
    return;
  }
  node.works = true;
  // Operations that only prepare constants for a core operation still run on the device at load
  // time.
  node.claimed = !core_only_ || node.family->core || computes_constant(node);
  if (!node.claimed) node.refusal = not_core();
}

void Model::refuse(int index, Refusal refusal) {
  ModelNode& refused = node(index);
  refused.works = refused.claimed = false;
  refused.refusal = std::move(refusal);
}

bool Model::computes_constant(const ModelNode& node) const {
  return node.works && !node.inputs.empty() && !runs_graphs(node) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](int id) { return id < 0 || is_constant(id); });
}

void Model::settle_constants() {
  // Nodes refused since the last call no longer derive constants.
  constants_ = stored_;
  for (const ModelNode& node : nodes) {
    if (computes_constant(node)) constants_.insert(node.outputs.begin(), node.outputs.end());
  }
  settle_states();
  settle_awaited();
  refuse_readers();
  settle_resources();
  // Backwards: whether a chain of constants is needed depends on its last reader.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!node->claimed || !(computes_constant(*node) || node->evaluated)) continue;
    bool any_reader = false, any_claimed = false, all_claimed = true;
    for (const int id : node->outputs) {
      for (const std::size_t reader : readers_[id]) {
        any_reader = true;
        any_claimed = any_claimed || nodes[reader].claimed;
        all_claimed = all_claimed && nodes[reader].claimed;
      }
    }
    const bool is_constant = computes_constant(*node);
    // The results of other evaluated nodes cross borders.
    const bool unused = is_constant ? !all_claimed : !any_claimed;
    if (any_reader && unused) {
      node->claimed = false;
      node->refusal = is_constant ? Refusal{Why::kReader}
                                  : Refusal{Why::kReader, "", "is read only by nodes on the CPU"};
    } else if (!any_reader && core_only_ && !node->family->core) {
      node->claimed = false;
      node->refusal = not_core();
    } else {
      node->folded_at_load = is_constant && !node->evaluated;
    }
  }
}

bool Model::follows_cpu(const std::vector<int>& node_indices) const {
  for (const std::size_t position : members(node_indices)) {
    for (const int id : nodes[position].inputs) {
      const auto writer = writer_.find(id);
      if (writer != writer_.end() && !nodes[writer->second].claimed) return true;
    }
  }
  return false;
}

std::vector<int> Model::claimed() const {
  std::vector<int> indices;
  for (const ModelNode& node : nodes) {
    if (node.claimed) indices.push_back(node.index);
  }
  return indices;
}

std::set<std::size_t> Model::members(const std::vector<int>& node_indices) const {
  // Each partition folds its own constants, wherever TFLite put the nodes that compute them.
  std::set<std::size_t> members;
  std::vector<std::size_t> open;
  for (const int index : node_indices) open.push_back(position_.at(index));
  while (!open.empty()) {
    const std::size_t position = open.back();
    open.pop_back();
    if (!members.insert(position).second) continue;
    for (const int id : nodes[position].inputs) {
      const auto writer = id >= 0 && is_constant(id) ? writer_.find(id) : writer_.end();
      if (writer != writer_.end()) open.push_back(writer->second);
    }
  }
  return members;
}

CpuNode Model::cpu_node(const ModelNode& node) {
  if (node.run == nullptr) return *node.cpu;
  auto graphs = std::make_shared<CpuGraphs>();
  graphs->is_loop = node.operation->control == ops::Control::kLoop;
  for (std::size_t i = 0; i < node.inner.size(); ++i)
    (i < node.run->split ? graphs->first : graphs->second).nodes.push_back(cpu_node(node.inner[i]));
  graphs->first.results = node.run->results;
  graphs->second.results = node.run->otherwise;
  graphs->values = node.run->values;
  return graphs_node(*node.cpu, std::move(graphs), node.inputs, node.outputs);
}

std::vector<CpuNode> Model::cpu_nodes(const std::vector<int>& node_indices) const {
  std::set<std::size_t> needed = members(node_indices);
  // The kernels of resources also need the nodes that name and initialise these, wherever they are.
  bool any = false;
  for (const std::size_t position : members(node_indices)) {
    const ModelNode& node = nodes[position];
    if (node.operation->resource != ops::Resource::kRead &&
        node.operation->resource != ops::Resource::kAssign)
      continue;
    needed.insert(writer_.at(node.inputs[0]));
    any = true;
  }
  for (std::size_t i = 0; any && i < nodes.size(); ++i) {
    if (nodes[i].claimed && nodes[i].operation->resource == ops::Resource::kOnce) needed.insert(i);
  }
  std::vector<CpuNode> result;
  for (const std::size_t position : needed) {
    const ModelNode& node = nodes[position];
    if (!node.is_inlined()) {
      result.push_back(*node.cpu);
      continue;
    }
    for (const ModelNode& inner : node.inner) result.push_back(cpu_node(inner));
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      result.push_back(copy_node(*node.cpu, node.results[i], node.outputs[i]));
    }
  }
  return result;
}

}  // namespace clgpu::delegate
