// Plans of a partition that depend on values of an inference: the last ones stay, because sizes
// often come again. The numbers that decide on them are measured here, too.
#include <algorithm>

#include "delegate/building/partition.hpp"
#include "delegate/int_array.hpp"
#include "passes/pass.hpp"

namespace clgpu::delegate {
namespace {

constexpr std::size_t kMostPlans = 4;  // with the present one

}  // namespace

std::string Partition::key() const {
  std::string key;
  for (const int id : model_.inputs) {
    const ir::Tensor& tensor = model_.tensor(id);
    key += tensor.shape.str();
    const Known* const known =
        tensor.tflite_id < 0 ? nullptr : specialization_->find(session_->known, tensor.tflite_id);
    if (known == nullptr) continue;
    key += ir::Shape(known->dims).str();
    key.append(static_cast<const char*>(known->constant->data), known->constant->bytes);
  }
  for (const Meter& meter : meters_) key += ' ' + std::to_string(meter.number);
  return key;
}

// A judgement is of one plan, and a budget is that of one.
bool Partition::keeps_plans() const {
  return awaits() && specialization_ != nullptr && trust_ == nullptr &&
         state_->target.options.plan.memory_budget == 0;
}

void Partition::set_aside() {
  if (executor_ == nullptr || is_on_cpu()) return;
  executor_->forget_tensors();  // the runtime may move them until it is used again
  session_->holdings->leave(*this);
  aside_.push_back({key_, original_, published_, graph_, executor_});
  executor_.reset();
}

bool Partition::drop_aside() {
  const bool any = !aside_.empty();
  aside_.clear();
  return any;
}

bool Partition::take_up() {
  const auto found = std::find_if(aside_.begin(), aside_.end(),
                                  [&](const AsidePlan& plan) { return plan.key == key_; });
  if (found == aside_.end()) {
    if (aside_.size() >= kMostPlans) aside_.erase(aside_.begin());
    return false;
  }
  cpu_.shadow.reset();
  cpu_.reason.clear();
  problem_.clear();
  specialization_->take_known(model_, session_->known);
  original_ = std::move(found->original);
  published_ = std::move(found->published);
  graph_ = std::move(found->graph);
  executor_ = std::move(found->executor);
  aside_.erase(found);
  session_->held[index_] = executor_->plan().peak_bytes;
  session_->holdings->enter(*this);
  return true;
}

bool Partition::take_numbers(TfLiteContext& context) {
  bool changed = false;
  for (Meter& meter : meters_) {
    const std::int64_t before = meter.number;
    const std::int64_t number = measure(context, meter);
    meter.number = static_cast<std::int32_t>(number);
    changed = changed || number != before;
    specialization_->set_number(meter.measured.result, number);
  }
  return changed;
}

std::int64_t Partition::measure(TfLiteContext& context, Meter& meter) {
  ir::Graph& graph = meter.measured.graph;
  const int id = meter.measured.tensor;
  ir::Tensor& tensor = graph.tensor(graph.inputs.at(0));
  const ir::Shape shape(to_vector(context.tensors[id].dims));
  if (shape.elements() == 0) return 0;
  if (meter.executor == nullptr || tensor.shape != shape) {
    meter.executor.reset();
    tensor.shape = shape;
    passes::infer_shapes(graph);
    meter.executor = state_->builder
                         .build(graph, 0, session_->pool, Level::kAsAsked, /*lasts=*/false, nullptr,
                                /*records=*/false, [this] { return drop_aside(); })
                         .executor;
    meter.executor->save_programs();
  }
  const std::unique_ptr<Loan> loan =
      stages_ == nullptr ? nullptr : stages_->borrow(context, {id}, {});
  cl::cl_mem buffer = loan == nullptr ? nullptr : loan->buffer(id);
  if (buffer != nullptr && !meter.executor->takes(0, buffer)) {
    loan->map(id);
    buffer = nullptr;
  }
  const TfLiteTensor& tflite = context.tensors[id];
  if (buffer == nullptr && tflite.data == nullptr)
    throw Error("tensor " + std::to_string(id) +
                ", on which the size of a result depends, has no "
                "memory on the host");
  runtime::Executor::Lent lent;
  lent.buffers = {buffer, nullptr};
  meter.executor->run({buffer == nullptr ? tflite.data : nullptr}, {&meter.number}, lent);
  return meter.number;
}

}  // namespace clgpu::delegate
