#include "delegate/verify/shadow.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/index.hpp"
#include "delegate/int_array.hpp"
#include "delegate/verify/sandbox.hpp"
#include "tfl/node_view.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::delegate {
namespace {

void* const kInitFailed = reinterpret_cast<void*>(-1);  // newer runtimes' TfLiteKernelInitFailed()

ir::Weights weights_of(const CpuNode& node) {
  return node.family != nullptr ? node.family->weights : ir::Weights{};
}

// The real values that a constant of 8-bit integers represents.
std::vector<float> dequantized(const TfLiteTensor& tensor, const ir::Quantization& quantization) {
  const std::vector<int> dims = to_vector(tensor.dims);
  std::size_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(quantization.axis) + 1; d < dims.size(); ++d)
    inner *= static_cast<std::size_t>(dims[d]);
  std::vector<float> values(tensor.bytes);
  const auto* stored = static_cast<const std::int8_t*>(tensor.data);
  const std::size_t channels = quantization.scales.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = channels == 1 ? 0 : i / inner % channels;
    values[i] =
        static_cast<float>(stored[i] - quantization.zero_points[c]) * quantization.scales[c];
  }
  return values;
}

}  // namespace

CpuNode::CpuNode(int node, std::string operation, const TfLiteNode& tflite,
                 const TfLiteRegistration& by)
    : index(node),
      op(std::move(operation)),
      family(ops::find_handler(by.builtin_code, nullptr).family),
      inputs(to_vector(tflite.inputs)),
      outputs(to_vector(tflite.outputs)),
      intermediates(to_vector(tflite.intermediates)),
      builtin_data(tflite.builtin_data),
      custom_data(tflite.custom_initial_data),
      custom_bytes(tflite.custom_initial_data_size) {
  // Copies the fields that the runtime's struct has; our reserved ones come after them.
  std::memcpy(&registration, &by, offsetof(TfLiteRegistration, inplace_operator) + 8);
}

struct Shadow::Impl {
  struct Instance {
    CpuNode recipe;
    TfLiteNode node{};
    bool prepared = false;
  };

  Sandbox sandbox;
  std::vector<Instance> instances;
  std::set<int> boundary;            // tensors read, but written by no node here
  std::map<int, std::size_t> until;  // tensor -> last instance that uses it
  std::set<int> open;                // tensors whose shapes depend on values
  std::vector<std::vector<float>> weights;

  explicit Impl(const TfLiteContext& context) : sandbox(context) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    for (Instance& instance : instances) {
      const TfLiteRegistration& by = instance.recipe.registration;
      TfLiteNode& node = instance.node;
      if (by.free != nullptr && node.user_data != nullptr) by.free(&sandbox, node.user_data);
      for (TfLiteIntArray* array :
           {node.inputs, node.outputs, node.intermediates, node.temporaries})
        std::free(array);
    }
  }

  // Separate from the constructor: if it throws, the destructor frees what it has allocated.
  void load(std::vector<CpuNode> nodes, bool dequantize) {
    std::set<int> written;
    for (CpuNode& node : nodes) instances.push_back({std::move(node)});
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const CpuNode& recipe = instances[i].recipe;
      for (const int id : recipe.inputs) {
        if (id < 0) continue;
        until[id] = i;
        if (sandbox.at(id).allocation_type != kTfLiteMmapRo && written.count(id) == 0)
          boundary.insert(id);
      }
      for (const int id : recipe.outputs) {
        until.emplace(id, i);
        written.insert(id);
      }
    }
    if (dequantize) widen_weights();
    add_biases();
    for (Instance& instance : instances) init(instance);
  }

  [[noreturn]] void fail(const Instance& instance, const char* what) const {
    std::string text = sandbox.error;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    throw ShadowError("the CPU kernel of node " + std::to_string(instance.recipe.index) + " (" +
                      instance.recipe.op + ") " + what + (text.empty() ? "" : ": " + text));
  }

  // Only weights that float products alone read.
  void widen_weights() {
    std::set<int> found, others;
    for (const Instance& instance : instances) {
      const CpuNode& recipe = instance.recipe;
      const bool product = weights_of(recipe).slot >= 0 && !recipe.outputs.empty() &&
                           sandbox.at(recipe.outputs[0]).type == kTfLiteFloat32;
      (product ? found : others).insert(recipe.inputs.begin(), recipe.inputs.end());
    }
    for (const int id : found) {
      if (id < 0 || others.count(id) != 0) continue;
      TfLiteTensor& tensor = sandbox.at(id);
      if (tensor.type != kTfLiteInt8 || tensor.allocation_type != kTfLiteMmapRo ||
          tensor.data == nullptr)
        continue;
      const auto quantization = tfl::quantization_of(tfl::TensorView(&tensor, id));
      if (quantization == nullptr) continue;
      weights.push_back(dequantized(tensor, *quantization));
      tensor.type = kTfLiteFloat32;
      tensor.data = weights.back().data();
      tensor.bytes = weights.back().size() * sizeof(float);
      tensor.params = {};
      tensor.quantization = {};
    }
  }

  // Stock convolutions need a bias: without one, some fail to prepare and others crash.
  void add_biases() {
    for (std::size_t i = 0; i < instances.size(); ++i) {
      std::vector<int>& inputs = instances[i].recipe.inputs;
      const ir::Weights slots = weights_of(instances[i].recipe);
      if (!slots.stock_needs_bias) continue;
      const std::size_t slot = uz(slots.slot), bias_slot = uz(slots.bias);
      if (inputs.size() <= slot || (inputs.size() > bias_slot && inputs[bias_slot] >= 0)) continue;
      if (sandbox.at(inputs[slot]).type != kTfLiteFloat32)
        fail(instances[i], "has no bias, without which it may crash");
      const int channels = sandbox.at(inputs[slot]).dims->data[slots.out_axis];
      weights.emplace_back(static_cast<std::size_t>(channels), 0.0F);
      sandbox.make_room();
      int id = -1;
      if (sandbox.AddTensors(&sandbox, 1, &id) != kTfLiteOk)
        fail(instances[i], "cannot be given a bias");
      TfLiteTensor& bias = sandbox.at(id);
      bias.type = kTfLiteFloat32;
      bias.allocation_type = kTfLiteMmapRo;
      bias.dims = new_array({channels});
      bias.data = weights.back().data();
      bias.bytes = weights.back().size() * sizeof(float);
      inputs.resize(bias_slot, -1);
      inputs.push_back(id);
      until[id] = i;
    }
  }

  void init(Instance& instance) {
    const CpuNode& recipe = instance.recipe;
    const TfLiteRegistration& by = recipe.registration;
    if (by.invoke == nullptr || by.registration_external != nullptr)
      fail(instance, "can be run only by the interpreter");
    TfLiteNode& node = instance.node;
    node.inputs = new_array(recipe.inputs);
    node.outputs = new_array(recipe.outputs);
    node.intermediates = new_array(recipe.intermediates);
    node.temporaries = new_array({});
    node.builtin_data = recipe.builtin_data;
    node.custom_initial_data = recipe.custom_data;
    node.custom_initial_data_size = recipe.custom_bytes;
    if (by.init == nullptr) return;
    sandbox.make_room();
    const bool custom = recipe.custom_data != nullptr;
    const void* data = custom ? recipe.custom_data : recipe.builtin_data;
    node.user_data = by.init(&sandbox, static_cast<const char*>(data),
                             custom ? static_cast<std::size_t>(recipe.custom_bytes) : 0);
    if (node.user_data != kInitFailed) return;
    node.user_data = nullptr;
    fail(instance, "cannot be made");
  }

  bool is_dynamic(int id) { return id >= 0 && sandbox.at(id).allocation_type == kTfLiteDynamic; }

  void prepare_node(Instance& instance) {
    const TfLiteRegistration& by = instance.recipe.registration;
    sandbox.error.clear();
    sandbox.make_room();
    if (by.prepare != nullptr && by.prepare(&sandbox, &instance.node) != kTfLiteOk)
      fail(instance, "does not take its inputs");
    instance.prepared = true;
  }

  void prepare() {
    open.clear();
    for (Instance& instance : instances) {
      const std::vector<int>& inputs = instance.recipe.inputs;
      const bool waits = std::any_of(inputs.begin(), inputs.end(),
                                     [&](int id) { return is_dynamic(id) || open.count(id) != 0; });
      if (!waits) prepare_node(instance);
      for (const int id : instance.recipe.outputs) {
        if (waits || is_dynamic(id)) open.insert(id);
      }
    }
  }

  void run_node(Instance& instance) {
    const TfLiteRegistration& by = instance.recipe.registration;
    const std::vector<int>& inputs = instance.recipe.inputs;
    const bool dynamic =
        std::any_of(inputs.begin(), inputs.end(), [&](int id) { return is_dynamic(id); });
    if (!instance.prepared || dynamic) prepare_node(instance);
    sandbox.error.clear();
    for (const TfLiteIntArray* ids : {instance.node.outputs, instance.node.temporaries}) {
      for (const int id : to_vector(ids)) {
        if (id >= 0) sandbox.provide(id);
      }
    }
    sandbox.make_room();
    if (by.invoke(&sandbox, &instance.node) != kTfLiteOk) fail(instance, "has failed");
  }

  void read_boundary(const TfLiteContext& context) {
    for (const int id : boundary) {
      const TfLiteTensor& real = context.tensors[id];
      TfLiteTensor& tensor = sandbox.at(id);
      if ((real.data == nullptr && real.bytes != 0) || real.bytes != tensor.bytes)
        throw ShadowError("an input of the partition has no memory on the host");
      tensor.data = real.data;
    }
  }

  void run(const TfLiteContext& context, const std::set<int>& wanted, bool keep) {
    sandbox.recommended_num_threads = context.recommended_num_threads;
    read_boundary(context);
    for (std::size_t i = 0; i < instances.size(); ++i) {
      Instance& instance = instances[i];
      run_node(instance);
      const auto release = [&](int id) {
        if (id >= 0 && sandbox.at(id).allocation_type == kTfLiteArenaRw && sandbox.owns(id))
          sandbox.release(id);
      };
      for (const int id : to_vector(instance.node.temporaries)) release(id);
      if (keep) continue;
      for (const auto* ids : {&instance.recipe.inputs, &instance.recipe.outputs}) {
        for (const int id : *ids) {
          if (id >= 0 && until.at(id) == i && wanted.count(id) == 0) release(id);
        }
      }
    }
    open.clear();
  }
};

Shadow::Shadow(const TfLiteContext& context, std::vector<CpuNode> nodes, bool dequantize)
    : impl_(std::make_unique<Impl>(context)) {
  impl_->load(std::move(nodes), dequantize);
}
Shadow::~Shadow() = default;

void Shadow::prepare() { impl_->prepare(); }

std::optional<std::vector<int>> Shadow::shape(int id) const {
  if (impl_->open.count(id) != 0) return std::nullopt;
  return to_vector(impl_->sandbox.at(id).dims);
}

void Shadow::run(const TfLiteContext& context, const std::set<int>& wanted, bool keep) {
  impl_->run(context, wanted, keep);
}

const TfLiteTensor& Shadow::tensor(int id) const { return impl_->sandbox.at(id); }

}  // namespace clgpu::delegate
