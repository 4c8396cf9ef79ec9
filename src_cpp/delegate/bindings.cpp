#include "delegate/bindings.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/join.hpp"
#include "delegate/int_array.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {

using cl::Imported;

// A tensor that partitions read or write, and no other node.
struct Bindings::Tensor {
  std::string name;
  std::int32_t type = 0;
  std::vector<int> dims;
  std::size_t bytes = 0;
  bool is_read = false, is_written = false;  // by partitions
};

struct Bindings::Binding {
  std::shared_ptr<const Imported> memory;
  Scaling scaling;
  std::shared_ptr<runtime::Pixels> pixels;  // of an image

  // What kernels may have in place of the tensor.
  cl::cl_mem buffer() const { return pixels != nullptr ? pixels->tensor() : memory->object(); }
};

// Lives as long as the partitions of the graph.
struct Bindings::Graph {
  std::map<int, Tensor> tensors;
  std::map<int, std::shared_ptr<Binding>> bound;
};

namespace {

using Binding = Bindings::Binding;

std::string quoted(int index, const std::string& name) {
  return "tensor " + std::to_string(index) + " '" + name + "'";
}

std::string shape_of(const std::vector<int>& dims) {
  std::vector<std::string> words;
  for (const int dim : dims) words.push_back(std::to_string(dim));
  return "[" + join(words) + "]";
}

// The form of an image's tensor; empty if it has none.
std::optional<runtime::Pixels::Form> form_of(std::int32_t type, const std::vector<int>& dims) {
  const std::optional<DType> dtype = tfl::dtype_of(type);
  const bool is_known = dtype == DType::kF32 || dtype == DType::kI8 || dtype == DType::kU8;
  if (!is_known || dims.size() != 4 || dims[0] != 1 || (dims[3] != 3 && dims[3] != 4) ||
      dims[1] <= 0 || dims[2] <= 0)
    return std::nullopt;
  return runtime::Pixels::Form{*dtype, dims[3], static_cast<std::size_t>(dims[2]),
                               static_cast<std::size_t>(dims[1])};
}

void check_image(const std::string& tensor, std::int32_t type, const std::vector<int>& dims,
                 const Imported& image) {
  const auto form = form_of(type, dims);
  if (!form) {
    throw Error(image.what() + " is an image and " + tensor + " is " + tfl::type_name(type) + " " +
                shape_of(dims) +
                "; an image needs a tensor of float32, uint8 or int8 and the shape [1, height, "
                "width, 3 or 4]");
  }
  if (form->width != image.width() || form->height != image.height()) {
    throw Error(image.what() + " has " + std::to_string(image.width()) + " x " +
                std::to_string(image.height()) + " pixels (width x height); " + tensor + " needs " +
                std::to_string(form->width) + " x " + std::to_string(form->height));
  }
  if (form->channels == 4 && !image.has_alpha()) {
    throw Error(image.what() + " has no alpha channel and " + tensor +
                " has four channels; allocate it with the format R8G8B8A8_UNORM");
  }
}

void check_buffer(const std::string& tensor, std::size_t bytes, const Imported& buffer) {
  if (buffer.bytes() >= bytes) return;
  throw Error(buffer.what() + " has " + std::to_string(buffer.bytes()) + " bytes; " + tensor +
              " needs " + std::to_string(bytes));
}

class BoundLoan : public Loan {
 public:
  BoundLoan(TfLiteContext& tflite, std::shared_ptr<cl::Context> device,
            const cl::QueueHandle& queue)
      : tflite_(tflite), device_(std::move(device)), queue_(queue) {}

  ~BoundLoan() override {
    if (cl::is_forked_child()) return;
    try {
      release();
    } catch (...) {
    }
    if (is_dirty_) device_->api().clFinish(queue_.get());
  }

  void add(int tensor, bool is_input, const std::shared_ptr<Binding>& binding) {
    Lent* const known = find(tensor);
    if (known == nullptr) {
      all_.push_back({tensor, binding, is_input, !is_input});
    } else {
      (is_input ? known->is_input : known->is_output) = true;
    }
  }

  bool is_empty() const { return all_.empty(); }

  // From here on the kernels' buffers have the values of the inputs.
  void begin() {
    for (Lent& lent : all_) {
      const TfLiteTensor& tensor = tflite_.tensors[lent.tensor];
      const std::string name = quoted(lent.tensor, tensor.name != nullptr ? tensor.name : "");
      if (lent.memory().is_image()) {
        // The runtime may have resized the tensor.
        check_image(name, tensor.type, to_vector(tensor.dims), lent.memory());
        if (!(*form_of(tensor.type, to_vector(tensor.dims)) == lent.binding->pixels->form())) {
          throw Error(name +
                      " has another type or number of channels than when memory was bound to "
                      "it; bind the memory again");
        }
      } else {
        check_buffer(name, tensor.bytes, lent.memory());
      }
    }
    for (Lent& lent : all_) {
      is_dirty_ = true;
      // One object may stand for several tensors.
      const bool is_first = std::none_of(all_.begin(), all_.end(), [&](const Lent& other) {
        return other.is_acquired && other.memory().object() == lent.memory().object();
      });
      if (is_first) lent.memory().acquire(queue_);
      lent.is_acquired = is_first;
      if (lent.is_input) convert(lent);
    }
    const cl::Api& api = device_->api();
    cl::cl_event event = nullptr;
    cl::check(api.clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event),
              "clEnqueueMarkerWithWaitList", "the queue of bound memory");
    begun_ = {api, event};
    // Other queues can wait only for commands that were flushed.
    cl::check(api.clFlush(queue_.get()), "clFlush", "the queue of bound memory");
  }

  cl::cl_mem buffer(int tensor) const override {
    for (const Lent& lent : all_) {
      if (lent.tensor == tensor && !lent.is_mapped) return lent.binding->buffer();
    }
    return nullptr;
  }

  void map(int tensor) override {
    Lent* const lent = find(tensor);
    if (lent == nullptr || lent->is_mapped) return;
    const TfLiteTensor& tflite = tflite_.tensors[tensor];
    if (tflite.data == nullptr)
      throw Error("tensor " + std::to_string(tensor) + " has no memory on the host");
    if (lent->is_input) {
      cl::check(
          device_->api().clEnqueueReadBuffer(queue_.get(), lent->binding->buffer(), cl::CL_TRUE, 0,
                                             tflite.bytes, tflite.data, 0, nullptr, nullptr),
          "clEnqueueReadBuffer", lent->memory().what());
      cl::counters().bytes_down += tflite.bytes;
    }
    lent->is_mapped = true;
  }

  std::vector<cl::cl_event> ready() override { return {begun_.get()}; }
  bool may_fly() const override { return false; }
  void deliver(cl::EventHandle /*done*/) override {}
  bool may_be_kept() const override { return false; }

  void end() override {
    const cl::Api& api = device_->api();
    for (Lent& lent : all_) {
      if (!lent.is_output) continue;
      const TfLiteTensor& tflite = tflite_.tensors[lent.tensor];
      if (lent.is_mapped) {
        cl::check(api.clEnqueueWriteBuffer(queue_.get(), lent.binding->buffer(), cl::CL_TRUE, 0,
                                           tflite.bytes, tflite.data, 0, nullptr, nullptr),
                  "clEnqueueWriteBuffer", lent.memory().what());
        cl::counters().bytes_up += tflite.bytes;
      }
      convert(lent);
    }
    release();
    cl::check(api.clFinish(queue_.get()), "clFinish", "the queue of bound memory");
    is_dirty_ = false;
  }

 private:
  struct Lent {
    int tensor;
    std::shared_ptr<Binding> binding;
    bool is_input, is_output;
    bool is_mapped = false, is_acquired = false;

    const Imported& memory() const { return *binding->memory; }
  };

  Lent* find(int tensor) {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const Lent& lent) { return lent.tensor == tensor; });
    return found == all_.end() ? nullptr : &*found;
  }

  void convert(const Lent& lent) {
    const Binding& binding = *lent.binding;
    if (binding.pixels == nullptr) return;
    binding.pixels->convert(queue_, binding.memory->object(), binding.scaling.scale,
                            binding.scaling.offset);
  }

  void release() {
    for (Lent& lent : all_) {
      if (std::exchange(lent.is_acquired, false)) lent.memory().release(queue_);
    }
  }

  TfLiteContext& tflite_;
  const std::shared_ptr<cl::Context> device_;
  const cl::QueueHandle& queue_;
  std::vector<Lent> all_;
  cl::EventHandle begun_;
  bool is_dirty_ = false;  // the queue has commands that nobody has waited for
};

}  // namespace

std::shared_ptr<Bindings::Graph> Bindings::only_graph() {
  std::shared_ptr<Graph> only;
  for (const auto& [context, known] : graphs_) {
    const std::shared_ptr<Graph> graph = known.lock();
    if (graph == nullptr) continue;
    if (only != nullptr) {
      throw Error(
          "the delegate serves several interpreters; memory can be bound to the tensors of its "
          "only "
          "one: create a delegate for each interpreter");
    }
    only = graph;
  }
  if (only == nullptr) {
    throw Error(
        "no tensor can be bound: no interpreter has partitions on the device; give the delegate to "
        "an interpreter and allocate its tensors first");
  }
  return only;
}

Bindings::Tensor& Bindings::find(Graph& graph, int tensor) {
  const auto found = graph.tensors.find(tensor);
  if (found != graph.tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [index, known] : graph.tensors)
    names.push_back(std::to_string(index) + " '" + known.name + "'");
  throw Error(
      "tensor " + std::to_string(tensor) +
      " cannot be bound: it is no input or output of a partition on the device, or nodes on "
      "the CPU use it, too; tensors that can be bound: " +
      (names.empty() ? "none" : join(names)));
}

std::shared_ptr<Bindings::Binding> Bindings::make(Graph& graph, const Tensor& tensor,
                                                  std::shared_ptr<const Imported> memory,
                                                  const Scaling& scaling) {
  auto binding = std::make_shared<Binding>(Binding{std::move(memory), scaling, nullptr});
  if (!binding->memory->is_image()) return binding;
  const runtime::Pixels::Form form = *form_of(tensor.type, tensor.dims);
  // Frames take turns: what the frame before was converted with serves this one, too.
  for (const auto& [index, other] : graph.bound) {
    if (&graph.tensors.at(index) == &tensor && other->pixels != nullptr &&
        other->pixels->form() == form)
      binding->pixels = other->pixels;
  }
  if (binding->pixels == nullptr)
    binding->pixels = std::make_shared<runtime::Pixels>(*context_, *store_, form, tensor.is_read);
  return binding;
}

void Bindings::bind(int tensor, std::shared_ptr<const Imported> memory, const Scaling& scaling) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Graph> graph = only_graph();
  const Tensor& known = find(*graph, tensor);
  const std::string name = quoted(tensor, known.name);
  if (memory->context() != context_) {
    throw Error(memory->what() +
                " was imported for a delegate of another device or OpenGL context");
  }
  if (memory->is_image()) {
    check_image(name, known.type, known.dims, *memory);
    if (known.is_read && known.is_written) {
      throw Error(name +
                  " is between two partitions, where an image of 8 bits would lose digits; "
                  "bind a buffer");
    }
    if (!std::isfinite(scaling.scale) || !std::isfinite(scaling.offset) || scaling.scale == 0) {
      throw Error("scale is " + std::to_string(scaling.scale) + " and offset " +
                  std::to_string(scaling.offset) +
                  "; both must be finite, and scale must not be 0");
    }
  } else {
    check_buffer(name, known.bytes, *memory);
  }
  std::shared_ptr<Binding> made = make(*graph, known, std::move(memory), scaling);
  if (!queue_) queue_ = context_->create_queue();
  graph->bound[tensor].swap(made);
  is_used_ = true;
}

void Bindings::unbind(int tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Graph> graph = only_graph();
  find(*graph, tensor);
  graph->bound.erase(tensor);
}

std::shared_ptr<void> Bindings::enter(TfLiteContext& context, bool is_main) {
  if (!is_main) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = graphs_.begin(); it != graphs_.end();)
    it = it->second.expired() ? graphs_.erase(it) : std::next(it);
  std::weak_ptr<Graph>& known = graphs_[&context];
  std::shared_ptr<Graph> graph = known.lock();
  if (graph == nullptr) known = graph = std::make_shared<Graph>();
  return graph;
}

void Bindings::announce(TfLiteContext& context, int tensor, std::size_t /*bytes*/, bool is_input) {
  const TfLiteTensor& tflite = context.tensors[tensor];
  Tensor now{tflite.name != nullptr ? tflite.name : "", tflite.type, to_vector(tflite.dims),
             tflite.bytes};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = graphs_.find(&context);
  const std::shared_ptr<Graph> graph = found == graphs_.end() ? nullptr : found->second.lock();
  if (graph == nullptr) return;
  Tensor& known = graph->tensors[tensor];
  now.is_read = known.is_read || is_input;
  now.is_written = known.is_written || !is_input;
  known = std::move(now);
}

std::unique_ptr<Loan> Bindings::borrow(TfLiteContext& context,
                                       const std::shared_ptr<cl::Context>& device,
                                       const std::vector<int>& inputs,
                                       const std::vector<int>& outputs) {
  if (!is_used_) return nullptr;
  std::unique_ptr<BoundLoan> loan;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = graphs_.find(&context);
    const std::shared_ptr<Graph> graph = found == graphs_.end() ? nullptr : found->second.lock();
    if (graph == nullptr || graph->bound.empty()) return nullptr;
    loan = std::make_unique<BoundLoan>(context, device, queue_);
    for (const auto* tensors : {&inputs, &outputs}) {
      for (const int tensor : *tensors) {
        const auto bound = graph->bound.find(tensor);
        if (bound != graph->bound.end()) loan->add(tensor, tensors == &inputs, bound->second);
      }
    }
  }
  if (loan->is_empty()) return nullptr;
  loan->begin();
  return loan;
}

}  // namespace clgpu::delegate
