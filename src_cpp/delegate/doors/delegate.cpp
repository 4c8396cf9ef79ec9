#include "delegate/doors/delegate.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "cl/fork.hpp"
#include "delegate/claim/claim.hpp"
#include "delegate/guard.hpp"
#include "delegate/int_array.hpp"

namespace clgpu::delegate {
namespace {

TfLiteStatus prepare_callback(TfLiteContext* context, TfLiteDelegate* tflite) {
  return guarded(
      kTfLiteError,
      [&](const char* what) { context->ReportError(context, "clgpu_delegate: %s", what); },
      [&] {
        Delegate::of(tflite).prepare(*context);
        return kTfLiteOk;
      });
}

bool has_open_shapes(const TfLiteContext& context) {
  return std::any_of(context.tensors, context.tensors + context.tensors_size,
                     [](const TfLiteTensor& t) { return leaves_size_open(t.dims_signature); });
}

// Tensors that nodes outside of the partitions read or write.
std::set<int> tensors_of_others(TfLiteContext& context, const std::vector<int>& claimed) {
  TfLiteIntArray* plan = nullptr;
  if (context.GetExecutionPlan(&context, &plan) != kTfLiteOk)
    throw Error("the runtime does not tell its nodes");
  std::set<int> tensors;
  for (const int index : to_vector(plan)) {
    if (std::find(claimed.begin(), claimed.end(), index) != claimed.end()) continue;
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context.GetNodeAndRegistration(&context, index, &node, &registration) != kTfLiteOk)
      throw Error("the runtime does not tell its nodes");
    for (const TfLiteIntArray* ids : {node->inputs, node->outputs}) {
      for (const int id : to_vector(ids)) tensors.insert(id);
    }
  }
  return tensors;
}

}  // namespace

Delegate::Delegate(const std::map<std::string, std::string>& options, const cl::GlContext* gl)
    : state_(std::make_shared<State>(parse_options(options), gl)) {
  tflite_.data_ = this;
  tflite_.Prepare = prepare_callback;
  // The delegate infers shapes itself, in the kernel's prepare, so the CPU kernels of claimed nodes
  // need not be able to prepare them.
  tflite_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  enlist();
}

Delegate::Delegate(Problem problem) : problem_(std::move(problem.sentence)) {
  tflite_.data_ = this;
  tflite_.Prepare = prepare_callback;
  enlist();
}

void Delegate::prepare(TfLiteContext& context) {
  cl::refuse_forked_child();
  std::shared_ptr<State> state;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = true;
    state = state_;
  }
  if (!problem_.empty()) throw Error(problem_);
  if (state == nullptr)
    throw Error("the delegate has been deleted; keep it alive as long as its interpreter");
  state->ledger.fail(std::nullopt);
  recording_failure(state->ledger, [&] { prepare(context, state); });
}

void Delegate::prepare(TfLiteContext& context, const std::shared_ptr<State>& state) {
  bool is_run = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_run = inlined_.erase(&context) == 0;
  }
  Claim made = claim(context, state, is_run);
  if (made.nodes.empty()) return;
  // Buffers of tensors that change their sizes would be created too small.
  const bool fixes_sizes = state->lender != nullptr && state->lender->fixes_sizes();
  const bool any_awaits = std::any_of(made.partitions.begin(), made.partitions.end(),
                                      [](const auto& partition) { return partition->awaits(); });
  // A partition that waits for values reads the memory of the host.
  if (state->lender != nullptr && !(fixes_sizes && (any_awaits || has_open_shapes(context)))) {
    if (const std::shared_ptr<void> entry = state->lender->enter(context, made.is_main)) {
      const std::set<int> others = tensors_of_others(context, made.nodes);
      for (const auto& partition : made.partitions) partition->lend_all_but(others, entry);
    }
  }
  for (const auto& partition : made.partitions) {
    if (!made.is_main) break;
    partition->keep_memory(
        context, [&](const std::vector<int>& nodes) { return tensors_of_others(context, nodes); });
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_[&context] = std::move(made.partitions);
    inlined_.insert(made.inlined.begin(), made.inlined.end());
  }
  const TfLiteStatus status = context.ReplaceNodeSubsetsWithDelegateKernels(
      &context, kernel_registration(), IntArray(made.nodes).get(), &tflite_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.erase(&context);
  }
  if (status != kTfLiteOk)
    throw Error("the runtime refuses to replace nodes by the delegate's kernels");
}

std::unique_ptr<Stages> Delegate::take(TfLiteContext& context, const TfLiteIntArray& nodes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto pending = pending_.find(&context);
  if (pending == pending_.end()) return nullptr;
  for (std::unique_ptr<Stages>& partition : pending->second) {
    if (partition != nullptr && std::equal(partition->nodes().begin(), partition->nodes().end(),
                                           nodes.data, nodes.data + nodes.size))
      return std::move(partition);
  }
  return nullptr;
}

}  // namespace clgpu::delegate
