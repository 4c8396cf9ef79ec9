#include "delegate/delegate.hpp"

#include <algorithm>

#include "delegate/guard.hpp"
#include "delegate/model.hpp"

namespace clgpu::delegate {
namespace {

// TfLiteIntArray over a std::vector, for arguments that the runtime only reads.
class IntArray {
 public:
  explicit IntArray(const std::vector<int>& values) : words_(values.size() + 1) {
    words_[0] = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), words_.begin() + 1);
  }
  const TfLiteIntArray* get() const { return reinterpret_cast<const TfLiteIntArray*>(words_.data()); }

 private:
  std::vector<int> words_;
};

std::vector<int> to_vector(const TfLiteIntArray& array) { return {array.data, array.data + array.size}; }

struct PartitionIds {
  std::vector<int> nodes, outputs;
};

std::vector<PartitionIds> preview(TfLiteContext& context, const std::vector<int>& nodes) {
  TfLiteDelegateParams* params = nullptr;
  int count = 0;
  CLGPU_CHECK(context.PreviewDelegatePartitioning(&context, IntArray(nodes).get(), &params, &count) == kTfLiteOk);
  std::vector<PartitionIds> partitions;
  for (int i = 0; i < count; ++i) {
    partitions.push_back({to_vector(*params[i].nodes_to_replace), to_vector(*params[i].output_tensors)});
  }
  return partitions;
}

// One attempt: builds all partitions of the claimed nodes, or refuses what stood in the way and
// returns false.
bool try_build(TfLiteContext& context, const std::shared_ptr<State>& state, Model& model,
               std::vector<std::unique_ptr<Partition>>& built) {
  built.clear();
  const std::vector<int> claimed = model.claimed();
  if (claimed.empty()) return true;
  const std::vector<PartitionIds> partitions = preview(context, claimed);
  for (const PartitionIds& ids : partitions) {
    if (static_cast<int>(ids.nodes.size()) < state->options.min_nodes) {
      for (const int index : ids.nodes) {
        model.refuse(index, "its partition has " + std::to_string(ids.nodes.size()) +
                                " nodes, fewer than the option 'min_nodes'");
      }
      return false;
    }
  }
  for (const PartitionIds& ids : partitions) {
    auto partition = std::make_unique<Partition>(state, model.graph(ids.nodes, ids.outputs), ids.nodes,
                                                 static_cast<int>(built.size()));
    try {
      partition->build();
    } catch (const plan::NoCandidate& failure) {
      for (ModelNode& node : model.nodes) {
        if (node.claimed && node.family->name == failure.family()) model.refuse(node.index, failure.what());
      }
      return false;
    } catch (const ShapeError& error) {
      model.refuse(error.node(), error.what());
      return false;
    } catch (const OptionError&) {
      throw;
    } catch (const Error& error) {
      // Out of device memory, say: the partition stays on the CPU.
      for (const int index : ids.nodes) model.refuse(index, error.what());
      return false;
    }
    built.push_back(std::move(partition));
  }
  return true;
}

Report make_report(const State& state, const Model& model, TfLiteContext& context,
                   const std::vector<std::unique_ptr<Partition>>& partitions) {
  Report report;
  report.device = state.device().name;
  report.platform = state.device().platform;
  report.precision = state.options.precision == passes::Precision::kFp16 ? "fp16" : "fp32";
  for (const ModelNode& node : model.nodes) {
    NodeReport entry;
    entry.index = node.index;
    entry.op = node.op;
    entry.claimed = node.claimed;
    entry.reason = !node.reason.empty() ? node.reason : "runs on the device";
    const auto shapes = [&](const std::vector<int>& ids, std::vector<std::vector<int>>& out) {
      for (const int id : ids) {
        if (id >= 0) out.push_back(tfl::TensorView(&context.tensors[id], id).dims());
      }
    };
    shapes(node.inputs, entry.inputs);
    shapes(node.outputs, entry.outputs);
    report.nodes.push_back(std::move(entry));
  }
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    for (const int index : partitions[p]->nodes()) {
      for (NodeReport& node : report.nodes) {
        if (node.index == index) node.partition = static_cast<int>(p);
      }
    }
  }
  report.partitions.resize(partitions.size());
  return report;
}

TfLiteStatus prepare_callback(TfLiteContext* context, TfLiteDelegate* tflite) {
  return guarded(
      kTfLiteError, [&](const char* what) { context->ReportError(context, "clgpu_delegate: %s", what); },
      [&] {
        Delegate::of(tflite).prepare(*context);
        return kTfLiteOk;
      });
}

}  // namespace

Delegate::Delegate(const std::map<std::string, std::string>& options)
    : state_(std::make_shared<State>(parse_options(options))) {
  tflite_.data_ = this;
  tflite_.Prepare = prepare_callback;
  // Shapes are inferred by us, in the kernel's prepare; so the CPU kernels of claimed nodes need not
  // be able to prepare them.
  tflite_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
}

void Delegate::release(Delegate* delegate) {
  if (delegate == nullptr) return;
  bool seen = false;
  {
    const std::lock_guard<std::mutex> lock(delegate->mutex_);
    seen = delegate->seen_;
    delegate->pending_.clear();
    delegate->state_.reset();
  }
  if (!seen) delete delegate;
}

void Delegate::prepare(TfLiteContext& context) {
  std::shared_ptr<State> state;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = true;
    state = state_;
  }
  if (state == nullptr) throw Error("the delegate has been deleted; keep it alive as long as its interpreter");
  Model model(context, state->options);
  std::vector<std::unique_ptr<Partition>> partitions;
  do {
    model.settle_constants();
  } while (!try_build(context, state, model, partitions));
  state->set_report(make_report(*state, model, context, partitions));
  const std::vector<int> claimed = model.claimed();
  if (claimed.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_[&context] = std::move(partitions);
  }
  const TfLiteStatus status =
      context.ReplaceNodeSubsetsWithDelegateKernels(&context, kernel_registration(), IntArray(claimed).get(), &tflite_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.erase(&context);
  }
  if (status != kTfLiteOk) throw Error("the runtime refuses to replace nodes by the delegate's kernels");
}

std::unique_ptr<Partition> Delegate::take(TfLiteContext& context, const std::vector<int>& nodes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::unique_ptr<Partition>& partition : pending_[&context]) {
    if (partition != nullptr && partition->nodes() == nodes) return std::move(partition);
  }
  throw InternalError("the runtime asks for a partition that it did not preview");
}

}  // namespace clgpu::delegate
