#include "delegate/verify/shadow.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "delegate/int_array.hpp"
#include "delegate/verify/sandbox.hpp"
#include "tfl/node_view.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::delegate {
namespace {

ir::Weights weights_of(const CpuNode& node) {
  return node.family != nullptr ? node.family->weights : ir::Weights{};
}

// The real values that a constant of integers of 8 bits or less represents.
std::vector<float> dequantized(const TfLiteTensor& tensor, const ir::Quantization& quantization) {
  const std::vector<int> dims = to_vector(tensor.dims);
  std::size_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(quantization.axis) + 1; d < dims.size(); ++d)
    inner *= static_cast<std::size_t>(dims[d]);
  if (quantization.block > 0) inner = static_cast<std::size_t>(quantization.block);
  const tfl::TensorView view(&tensor, -1);
  std::vector<std::uint8_t> unpacked;
  if (view.is_narrow()) unpacked = tfl::unpacked(view);
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  const auto* stored =
      static_cast<const std::int8_t*>(view.is_narrow() ? unpacked.data() : tensor.data);
  const std::size_t channels = quantization.scales.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = channels == 1 ? 0 : i / inner % channels;
    values[i] =
        static_cast<float>(stored[i] - quantization.zero_points[c]) * quantization.scales[c];
  }
  return values;
}

// Calls visit(node) for nodes and for those of the graphs that they run.
template <class F>
void for_all(const CpuNode& node, F visit) {
  visit(node);
  if (node.graphs == nullptr) return;
  for (const CpuGraph* graph : {&node.graphs->first, &node.graphs->second}) {
    for (const CpuNode& inner : graph->nodes) for_all(inner, visit);
  }
}

}  // namespace

struct Shadow::Impl {
  Sandbox sandbox;
  std::vector<std::unique_ptr<CpuKernel>> kernels;
  std::set<int> boundary;            // tensors read, but written by no node here
  std::map<int, std::size_t> until;  // tensor -> last instance that uses it
  std::set<int> open;                // tensors whose shapes depend on values
  std::set<const CpuKernel*>
      later;  // that are prepared in each run, because they read such tensors
  std::vector<std::vector<float>> weights;

  Impl(const TfLiteContext& context, const InnerTensors* inner) : sandbox(context, inner) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void load(std::vector<CpuNode> nodes, bool dequantize) {
    std::set<int> written;
    for (CpuNode& node : nodes)
      kernels.push_back(std::make_unique<CpuKernel>(sandbox, std::move(node)));
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const CpuNode& recipe = kernels[i]->recipe();
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
    widen_weights(dequantize);
    add_biases();
    for (const auto& kernel : kernels) kernel->init();
  }

  // Only weights that float products alone read. `products`: also those of families that can
  // multiply integers as the runtimes' kernels do.
  void widen_weights(bool products) {
    std::set<int> found, others;
    const auto look = [&](const CpuNode& recipe) {
      const bool widens = recipe.family != nullptr && recipe.family->widens_weights;
      const bool product = (widens || (products && weights_of(recipe).slot >= 0)) &&
                           !recipe.outputs.empty() &&
                           sandbox.at(recipe.outputs[0]).type == kTfLiteFloat32;
      (product ? found : others).insert(recipe.inputs.begin(), recipe.inputs.end());
    };
    for (const auto& kernel : kernels) for_all(kernel->recipe(), look);
    for (const int id : found) {
      if (id < 0 || others.count(id) != 0) continue;
      TfLiteTensor& tensor = sandbox.at(id);
      const bool narrow = tensor.type == kTfLiteInt8 || tfl::TensorView(&tensor, id).is_narrow();
      if (!narrow || tensor.allocation_type != kTfLiteMmapRo || tensor.data == nullptr) continue;
      const auto quantization = tfl::quantization_of(tfl::TensorView(&tensor, id, &sandbox));
      if (quantization == nullptr) continue;
      weights.push_back(dequantized(tensor, *quantization));
      tensor.type = kTfLiteFloat32;
      tensor.data = weights.back().data();
      tensor.bytes = weights.back().size() * sizeof(float);
      tensor.params = {};
      tensor.quantization = {};
    }
  }

  static bool lacks_bias(const CpuNode& node) {
    const ir::Weights slots = weights_of(node);
    if (!slots.stock_needs_bias || node.inputs.size() <= uz(slots.slot)) return false;
    return node.inputs.size() <= uz(slots.bias) || node.inputs[uz(slots.bias)] < 0;
  }

  // Stock convolutions need a bias: without one, some fail to prepare and others crash.
  void add_biases() {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::vector<int>& inputs = kernels[i]->recipe().inputs;
      const ir::Weights slots = weights_of(kernels[i]->recipe());
      const std::size_t slot = uz(slots.slot);
      if (kernels[i]->recipe().graphs != nullptr) {
        for_all(kernels[i]->recipe(), [&](const CpuNode& inner) {
          if (lacks_bias(inner)) kernels[i]->fail("has a node without a bias, which may crash");
        });
      }
      if (!lacks_bias(kernels[i]->recipe())) continue;
      if (sandbox.at(inputs[slot]).type != kTfLiteFloat32)
        kernels[i]->fail("has no bias, without which it may crash");
      const int channels = sandbox.at(inputs[slot]).dims->data[slots.out_axis];
      weights.emplace_back(static_cast<std::size_t>(channels), 0.0F);
      sandbox.make_room();
      int id = -1;
      if (sandbox.AddTensors(&sandbox, 1, &id) != kTfLiteOk)
        kernels[i]->fail("cannot be given a bias");
      TfLiteTensor& bias = sandbox.at(id);
      bias.type = kTfLiteFloat32;
      bias.allocation_type = kTfLiteMmapRo;
      bias.dims = new_array({channels});
      bias.data = weights.back().data();
      bias.bytes = weights.back().size() * sizeof(float);
      kernels[i]->add_input(slots.bias, id);
      until[id] = i;
    }
  }

  bool is_dynamic(int id) { return id >= 0 && sandbox.at(id).allocation_type == kTfLiteDynamic; }

  void prepare() {
    open.clear();
    later.clear();
    for (const auto& kernel : kernels) {
      const std::vector<int>& inputs = kernel->recipe().inputs;
      const bool waits = std::any_of(inputs.begin(), inputs.end(),
                                     [&](int id) { return is_dynamic(id) || open.count(id) != 0; });
      if (waits) {
        later.insert(kernel.get());
      } else {
        kernel->prepare();
      }
      for (const int id : kernel->recipe().outputs) {
        if (waits || !kernel->knows_shapes() || is_dynamic(id)) open.insert(id);
      }
    }
  }

  void run_node(CpuKernel& kernel) {
    const std::vector<int>& inputs = kernel.recipe().inputs;
    const bool dynamic =
        std::any_of(inputs.begin(), inputs.end(), [&](int id) { return is_dynamic(id); });
    if (!kernel.is_prepared() || dynamic || later.count(&kernel) != 0) kernel.prepare();
    kernel.invoke();
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
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      CpuKernel& kernel = *kernels[i];
      run_node(kernel);
      const auto release = [&](int id) {
        if (id >= 0 && sandbox.at(id).allocation_type == kTfLiteArenaRw && sandbox.owns(id))
          sandbox.release(id);
      };
      for (const int id : kernel.temporaries()) release(id);
      if (keep) continue;
      for (const auto* ids : {&kernel.recipe().inputs, &kernel.recipe().outputs}) {
        for (const int id : *ids) {
          if (id >= 0 && until.at(id) == i && wanted.count(id) == 0) release(id);
        }
      }
    }
    open.clear();
  }
};

Shadow::Shadow(const TfLiteContext& context, const InnerTensors* inner, std::vector<CpuNode> nodes,
               bool dequantize)
    : impl_(std::make_unique<Impl>(context, inner)) {
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
