#include "delegate/building/stage_tensors.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "cl/fork.hpp"
#include "delegate/int_array.hpp"
#include "ir/shape.hpp"

namespace clgpu::delegate {
namespace {

// Kernels may access whole vectors beyond the last element.
constexpr std::size_t kMargin = 256, kPage = 4096;

std::string name_of(int tensor) { return "tensor " + std::to_string(tensor); }

void resize(TfLiteContext& context, int id, const std::vector<int>& dims) {
  TfLiteTensor& tensor = context.tensors[id];
  if (context.ResizeTensor(&context, &tensor, new_array(dims)) != kTfLiteOk)
    throw Error("the runtime refuses to resize " + name_of(id) + " between two stages to " +
                ir::Shape(dims).str());
}

// With memory of the runtime.
void give_memory(TfLiteContext& context, int id, const std::vector<int>& dims) {
  TfLiteTensor& tensor = context.tensors[id];
  if (tensor.allocation_type != kTfLiteDynamic) {
    tensor.allocation_type = kTfLiteDynamic;
    tensor.data = nullptr;
  }
  resize(context, id, dims);
}

}  // namespace

class StageTensors::StageLoan : public Loan {
 public:
  StageLoan(StageTensors& tensors, TfLiteContext& context, std::vector<int> inputs,
            std::vector<int> outputs)
      : tensors_(tensors),
        context_(context),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    for (const int tensor : outputs_) {
      Held& held = tensors_.held_[tensor];
      held.is_mapped = false;
      try {
        tensors_.provide(tensor, context_.tensors[tensor].bytes);
      } catch (const cl::OpenCLError& error) {
        if (!error.out_of_memory()) throw;
        map(tensor);
      }
    }
  }

  cl::cl_mem buffer(int tensor) const override {
    const Held* const held = find(tensor);
    return held == nullptr || held->is_mapped ? nullptr : held->memory.get();
  }

  void map(int tensor) override {
    Held* const held = find(tensor);
    if (held == nullptr || held->is_mapped) return;
    const TfLiteTensor& tflite = context_.tensors[tensor];
    give_memory(context_, tensor, to_vector(tflite.dims));
    if (is_in(inputs_, tensor)) tensors_.read(tensor, tflite.data, tflite.bytes);
    held->is_mapped = true;
  }

  std::vector<cl::cl_event> ready() override { return {}; }
  bool may_fly() const override { return false; }
  void deliver(cl::EventHandle /*done*/) override {}
  bool may_be_kept() const override { return true; }

 private:
  static bool is_in(const std::vector<int>& list, int tensor) {
    return std::find(list.begin(), list.end(), tensor) != list.end();
  }
  // Null if it is not lent.
  Held* find(int tensor) const {
    if (!is_in(inputs_, tensor) && !is_in(outputs_, tensor)) return nullptr;
    return &tensors_.held_[tensor];
  }

  StageTensors& tensors_;
  TfLiteContext& context_;
  const std::vector<int> inputs_, outputs_;
};

StageTensors::StageTensors(std::shared_ptr<cl::Context> device, std::set<int> on_device,
                           std::set<int> on_host)
    : device_(std::move(device)),
      queue_(device_->create_queue()),
      on_device_(std::move(on_device)),
      on_host_(std::move(on_host)) {}

StageTensors::~StageTensors() {
  if (!cl::is_forked_child()) device_->api().clFinish(queue_.get());
}

void StageTensors::give_shape(TfLiteContext& context, int tensor,
                              const std::vector<int>& dims) const {
  if (!is_on_device(tensor)) return give_memory(context, tensor, dims);
  if (to_vector(context.tensors[tensor].dims) != dims) resize(context, tensor, dims);
}

std::unique_ptr<Loan> StageTensors::borrow(TfLiteContext& context, const std::vector<int>& inputs,
                                           const std::vector<int>& outputs) {
  const auto held = [&](const std::vector<int>& tensors) {
    std::vector<int> result;
    std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(result),
                 [&](int tensor) { return is_on_device(tensor); });
    return result;
  };
  std::vector<int> in = held(inputs), out = held(outputs);
  if (in.empty() && out.empty()) return nullptr;
  return std::make_unique<StageLoan>(*this, context, std::move(in), std::move(out));
}

void StageTensors::provide(int tensor, std::size_t bytes) {
  Held& held = held_[tensor];
  const std::size_t needed = (bytes + kMargin + kPage - 1) / kPage * kPage;
  if (held.bytes >= needed) return;
  held = {};  // first: it makes room
  held.memory = device_->create_buffer(needed, name_of(tensor) + " between two stages");
  held.bytes = needed;
}

void StageTensors::read(int tensor, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  cl::check(device_->api().clEnqueueReadBuffer(queue_.get(), held_.at(tensor).memory.get(),
                                               cl::CL_TRUE, 0, bytes, to, 0, nullptr, nullptr),
            "clEnqueueReadBuffer", name_of(tensor));
  cl::counters().bytes_down += bytes;
}

}  // namespace clgpu::delegate
