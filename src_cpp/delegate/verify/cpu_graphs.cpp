// Loops and branches that the sandbox runs: their kernels run those of their graphs.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "delegate/guard.hpp"
#include "delegate/int_array.hpp"
#include "delegate/verify/cpu_kernel.hpp"

namespace clgpu::delegate {
namespace {

struct Value {
  std::vector<std::uint8_t> bytes;
  std::vector<int> dims;
};

class Runner {
 public:
  Runner(Sandbox& sandbox, const CpuGraphs& graphs) : sandbox_(sandbox), graphs_(graphs) {
    load(graphs_.first, first_);
    load(graphs_.second, second_);
  }

  /// The status tells whether the shapes of the outputs are known.
  TfLiteStatus prepare(const TfLiteNode& node) {
    give_shapes(node);
    is_prepared_ = true;
    std::set<int> open;  // tensors whose shapes depend on values
    for (auto* kernels : {&first_, &second_}) {
      for (const auto& kernel : *kernels) {
        const CpuNode& recipe = kernel->recipe();
        const bool waits =
            is_dynamic(*kernel) || std::any_of(recipe.inputs.begin(), recipe.inputs.end(),
                                               [&](int id) { return open.count(id) != 0; });
        if (!waits) kernel->prepare();
        if (waits || !kernel->knows_shapes())
          open.insert(recipe.outputs.begin(), recipe.outputs.end());
      }
    }
    const bool settled = keeps_shapes(open);
    for (std::size_t i = 0; i < uz(node.outputs->size); ++i) {
      const int output = node.outputs->data[i];
      if (settled) {
        resize(output, dims_of(graphs_.second.results.at(i)));
      } else {
        make_dynamic(output);
      }
    }
    return settled ? kTfLiteOk : kTfLiteOutputShapeNotKnown;
  }

  void invoke(const TfLiteNode& node) {
    const int first = graphs_.is_loop ? 0 : 1;
    std::vector<Value> values;
    for (int i = first; i < node.inputs->size; ++i)
      values.push_back(value_of(node.inputs->data[i]));
    set(graphs_.values, values);
    if (graphs_.is_loop) {
      for (bool more = is_true(run(first_, graphs_.first).at(0)); more;) {
        values = run(second_, graphs_.second);
        more = is_true(values.back());
        values.pop_back();
        set(graphs_.values, values);
      }
    } else {
      const bool taken = is_true(value_of(node.inputs->data[0]));
      values = taken ? run(first_, graphs_.first) : run(second_, graphs_.second);
    }
    set(to_vector(node.outputs), values);
  }

 private:
  void load(const CpuGraph& graph, std::vector<std::unique_ptr<CpuKernel>>& kernels) {
    for (const CpuNode& node : graph.nodes) {
      kernels.push_back(std::make_unique<CpuKernel>(sandbox_, node));
      kernels.back()->init();
    }
  }

  bool is_dynamic(const CpuKernel& kernel) const {
    const std::vector<int>& inputs = kernel.recipe().inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](int id) {
      return id >= 0 && sandbox_.at(id).allocation_type == kTfLiteDynamic;
    });
  }

  std::vector<int> dims_of(int id) const { return to_vector(sandbox_.at(id).dims); }

  // Whether states have the same shapes in all rounds, or results those of either branch.
  bool keeps_shapes(const std::set<int>& open) const {
    const std::vector<int>& before = graphs_.is_loop ? graphs_.values : graphs_.first.results;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const int now = graphs_.second.results.at(i);
      if (open.count(before[i]) + open.count(now) > 0 || dims_of(before[i]) != dims_of(now))
        return false;
    }
    return true;
  }

  // As the runtime's own kernels do.
  void make_dynamic(int id) {
    TfLiteTensor& tensor = sandbox_.at(id);
    if (tensor.allocation_type == kTfLiteDynamic) return;
    sandbox_.release(id);
    tensor.allocation_type = kTfLiteDynamic;
  }

  void resize(int id, const std::vector<int>& dims) {
    TfLiteTensor& tensor = sandbox_.at(id);
    if (tensor.allocation_type == kTfLiteMmapRo) return;
    if (tensor.allocation_type != kTfLiteDynamic && to_vector(tensor.dims) == dims) return;
    if (sandbox_.ResizeTensor(&sandbox_, &tensor, new_array(dims)) != kTfLiteOk)
      throw ShadowError("a value of a loop or branch cannot be resized");
  }

  void give_shapes(const TfLiteNode& node) {
    const int first = graphs_.is_loop ? 0 : 1;
    for (std::size_t i = 0; i < graphs_.values.size(); ++i) {
      const int input = node.inputs->data[static_cast<int>(i) + first];
      resize(graphs_.values[i], to_vector(sandbox_.at(input).dims));
    }
  }

  Value value_of(int id) const {
    const TfLiteTensor& tensor = sandbox_.at(id);
    const auto* data = static_cast<const std::uint8_t*>(tensor.data);
    if (data == nullptr && tensor.bytes > 0)
      throw ShadowError("a value of a loop or branch is unknown");
    return {{data, data + tensor.bytes}, dims_of(id)};
  }

  // All at once: a result may be the old value of another one.
  void set(const std::vector<int>& ids, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (sandbox_.at(ids[i]).allocation_type == kTfLiteMmapRo) continue;
      const Value& value = values.at(i);
      is_prepared_ = is_prepared_ && dims_of(ids[i]) == value.dims;
      resize(ids[i], value.dims);
      sandbox_.provide(ids[i]);
      const TfLiteTensor& tensor = sandbox_.at(ids[i]);
      if (tensor.bytes != value.bytes.size())
        throw ShadowError("a value of a loop or branch has another size than its tensor");
      if (!value.bytes.empty()) std::memcpy(tensor.data, value.bytes.data(), tensor.bytes);
    }
  }

  std::vector<Value> run(std::vector<std::unique_ptr<CpuKernel>>& kernels, const CpuGraph& graph) {
    for (const auto& kernel : kernels) {
      if (!is_prepared_ || !kernel->is_prepared() || is_dynamic(*kernel)) kernel->prepare();
      kernel->invoke();
    }
    std::vector<Value> results;
    for (const int id : graph.results) results.push_back(value_of(id));
    return results;
  }

  static bool is_true(const Value& value) {
    if (value.bytes.size() != 1) throw ShadowError("the condition is no bool");
    return value.bytes[0] != 0;
  }

  Sandbox& sandbox_;
  const CpuGraphs& graphs_;
  std::vector<std::unique_ptr<CpuKernel>> first_, second_;
  bool is_prepared_ = true;  // for the shapes that the values have
};

// Errors are reported to the sandbox, of which a kernel of the node around tells them.
auto reporter(TfLiteContext* context) {
  return [context](const char* what) {
    if (static_cast<Sandbox*>(context)->error.empty()) static_cast<Sandbox*>(context)->error = what;
  };
}

void* init(TfLiteContext* context, const char* graphs, std::size_t /*length*/) {
  return guarded(kInitFailed, reporter(context), [&]() -> void* {
    return new Runner(*static_cast<Sandbox*>(context), *reinterpret_cast<const CpuGraphs*>(graphs));
  });
}

void free(TfLiteContext* /*context*/, void* runner) { delete static_cast<Runner*>(runner); }

TfLiteStatus prepare(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context),
                 [&] { return static_cast<Runner*>(node->user_data)->prepare(*node); });
}

TfLiteStatus invoke(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context), [&] {
    static_cast<Runner*>(node->user_data)->invoke(*node);
    return kTfLiteOk;
  });
}

}  // namespace

CpuNode graphs_node(const CpuNode& like, std::shared_ptr<const CpuGraphs> graphs,
                    std::vector<int> inputs, std::vector<int> outputs) {
  CpuNode node = like;
  node.family = nullptr;
  node.registration = {};
  node.registration.init = init;
  node.registration.free = free;
  node.registration.prepare = prepare;
  node.registration.invoke = invoke;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.intermediates = {};
  node.builtin_data = nullptr;
  node.custom_data = graphs.get();
  node.custom_bytes = sizeof(CpuGraphs);
  node.graphs = std::move(graphs);
  return node;
}

}  // namespace clgpu::delegate
