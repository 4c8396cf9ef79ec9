#include "delegate/shadow.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>

#include "tfl/node_view.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::delegate {
namespace {

constexpr std::int32_t kPersistentRo = 5;  // computed once: of TfLiteAllocationType
constexpr std::size_t kAlignment = 64;     // of the runtimes' arenas
constexpr std::size_t kHeadroom = 64;      // tensors that one call may add
constexpr std::size_t kSlack = 64;         // XNNPACK's kernels read beyond the end
void* const kInitFailed = reinterpret_cast<void*>(-1);

TfLiteIntArray* new_array(const int* values, std::size_t count) {
  auto* array =
      static_cast<TfLiteIntArray*>(std::malloc(sizeof(TfLiteIntArray) + count * sizeof(int)));
  if (array == nullptr) throw Error("out of host memory");
  array->size = static_cast<int>(count);
  if (count > 0) std::memcpy(array->data, values, count * sizeof(int));
  return array;
}

TfLiteIntArray* new_array(const std::vector<int>& values) {
  return new_array(values.data(), values.size());
}

TfLiteIntArray* copy_of(const TfLiteIntArray* array) {
  return array == nullptr ? nullptr : new_array(array->data, static_cast<std::size_t>(array->size));
}

// What free() takes and a kernel may realloc().
void* new_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + kSlack + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, whole);
  if (memory == nullptr) throw Error("out of host memory");
  std::memset(memory, 0, whole);
  return memory;
}

std::size_t size_of_type(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
    case kTfLiteUInt32:
      return 4;
    case kTfLiteInt64:
    case kTfLiteUInt64:
    case kTfLiteFloat64:
    case kTfLiteComplex64:
      return 8;
    case kTfLiteFloat16:
    case kTfLiteBFloat16:
    case kTfLiteInt16:
    case kTfLiteUInt16:
      return 2;
    case kTfLiteInt8:
    case kTfLiteUInt8:
    case kTfLiteBool:
      return 1;
    default:
      return 0;
  }
}

std::vector<int> to_vector(const TfLiteIntArray* array) {
  return array == nullptr ? std::vector<int>{}
                          : std::vector<int>(array->data, array->data + array->size);
}

bool takes_weights(const std::string& op) {
  static const char* const kOps[] = {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV",
                                     "FULLY_CONNECTED", "BATCH_MATMUL"};
  return std::any_of(std::begin(kOps), std::end(kOps), [&](const char* o) { return op == o; });
}

// What a constant of 8-bit integers stands for.
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
      inputs(to_vector(tflite.inputs)),
      outputs(to_vector(tflite.outputs)),
      intermediates(to_vector(tflite.intermediates)),
      builtin_data(tflite.builtin_data),
      custom_data(tflite.custom_initial_data),
      custom_bytes(tflite.custom_initial_data_size) {
  // The runtime's struct ends where our reserve begins.
  std::memcpy(&registration, &by, offsetof(TfLiteRegistration, inplace_operator) + 8);
}

struct Shadow::Impl {
  // Kernels hand back a pointer to the context alone: it comes first, and a static_cast leads back.
  struct Sandbox : TfLiteContext {
    Impl* owner = nullptr;
  };
  struct Instance {
    CpuNode recipe;
    TfLiteNode node{};
    bool prepared = false;
    bool alive = false;
  };

  Sandbox sandbox{};
  std::vector<TfLiteTensor> tensors;
  std::vector<bool> ours;  // by tensor: its memory is to be freed
  std::vector<Instance> instances;
  std::set<int> boundary;            // read, but written by no node here
  std::map<int, std::size_t> until;  // tensor -> last instance that uses it
  std::vector<std::vector<float>> weights;
  std::string error;  // what kernels have reported

  static Impl& of(TfLiteContext* context) { return *static_cast<Sandbox*>(context)->owner; }

  // Apart from the constructor: what it leaves half done is freed.
  void load(const TfLiteContext& context, std::vector<CpuNode> nodes, bool dequantize) {
    static_cast<TfLiteContext&>(sandbox) = context;
    sandbox.owner = this;
    sandbox.ResizeTensor = resize_tensor;
    sandbox.ResizeTensorExplicit = resize_explicit;
    sandbox.ReportError = report_error;
    sandbox.AddTensors = add_tensors;
    tensors.assign(context.tensors, context.tensors + context.tensors_size);
    ours.resize(tensors.size());
    for (TfLiteTensor& tensor : tensors) {
      tensor.dims = copy_of(tensor.dims);
      tensor.delegate = nullptr;
      tensor.buffer_handle = -1;
      tensor.data_is_stale = false;
      if (tensor.allocation_type == kTfLiteMmapRo) continue;
      tensor.allocation_type = kTfLiteArenaRw;
      tensor.data = nullptr;
    }
    publish_tensors();
    std::set<int> written;
    for (CpuNode& node : nodes) instances.push_back({std::move(node)});
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const CpuNode& recipe = instances[i].recipe;
      for (const int id : recipe.inputs) {
        if (id < 0) continue;
        until[id] = i;
        if (at(id).allocation_type != kTfLiteMmapRo && written.count(id) == 0) boundary.insert(id);
      }
      for (const int id : recipe.outputs) {
        if (id < 0) continue;
        until.emplace(id, i);
        written.insert(id);
      }
      if (dequantize && takes_weights(recipe.op)) widen_weights(recipe);
    }
    for (const int id : boundary) {
      TfLiteTensor& tensor = at(id);
      std::free(tensor.dims);
      tensor.dims = copy_of(context.tensors[id].dims);
      tensor.bytes = context.tensors[id].bytes;
    }
    for (Instance& instance : instances) init(instance);
  }

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (Instance& instance : instances) {
      const TfLiteRegistration& by = instance.recipe.registration;
      if (instance.alive && by.free != nullptr && instance.node.user_data != nullptr)
        by.free(&sandbox, instance.node.user_data);
      for (TfLiteIntArray* array : {instance.node.inputs, instance.node.outputs,
                                    instance.node.intermediates, instance.node.temporaries})
        std::free(array);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      release(static_cast<int>(i));
      std::free(tensors[i].dims);
    }
  }

  TfLiteTensor& at(int id) { return tensors[static_cast<std::size_t>(id)]; }

  // Kernels add tensors while they hold pointers to others.
  void make_room() {
    if (tensors.capacity() - tensors.size() < kHeadroom)
      tensors.reserve(tensors.size() * 2 + kHeadroom);
    publish_tensors();
  }

  void publish_tensors() {
    sandbox.tensors = tensors.data();
    sandbox.tensors_size = tensors.size();
  }

  [[noreturn]] void fail(const Instance& instance, const char* what) const {
    std::string text = error;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    throw ShadowError("the CPU kernel of node " + std::to_string(instance.recipe.index) + " (" +
                      instance.recipe.op + ") " + what + (text.empty() ? "" : ": " + text));
  }

  void widen_weights(const CpuNode& recipe) {
    if (recipe.outputs.empty() || at(recipe.outputs[0]).type != kTfLiteFloat32) return;
    for (const int id : recipe.inputs) {
      if (id < 0) continue;
      TfLiteTensor& tensor = at(id);
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

  void init(Instance& instance) {
    const CpuNode& recipe = instance.recipe;
    const TfLiteRegistration& by = recipe.registration;
    if (by.invoke == nullptr || by.registration_external != nullptr)
      fail(instance, "is of a kind that only the interpreter can run");
    TfLiteNode& node = instance.node;
    node.inputs = new_array(recipe.inputs);
    node.outputs = new_array(recipe.outputs);
    node.intermediates = new_array(recipe.intermediates);
    node.temporaries = new_array({});
    node.builtin_data = recipe.builtin_data;
    node.custom_initial_data = recipe.custom_data;
    node.custom_initial_data_size = recipe.custom_bytes;
    make_room();
    if (by.init != nullptr) {
      const bool custom = recipe.custom_data != nullptr;
      node.user_data = by.init(
          &sandbox, static_cast<const char*>(custom ? recipe.custom_data : node.builtin_data),
          custom ? static_cast<std::size_t>(recipe.custom_bytes) : 0);
      if (node.user_data == kInitFailed) {
        node.user_data = nullptr;
        fail(instance, "cannot be made");
      }
    }
    instance.alive = true;
  }

  void provide(int id) {
    if (id < 0) return;
    TfLiteTensor& tensor = at(id);
    const bool arena = tensor.allocation_type == kTfLiteArenaRw ||
                       tensor.allocation_type == kTfLiteArenaRwPersistent;
    if (!arena || tensor.data != nullptr) return;
    tensor.data = new_memory(tensor.bytes);
    ours[static_cast<std::size_t>(id)] = true;
  }

  void release(int id) {
    TfLiteTensor& tensor = at(id);
    const bool heap =
        tensor.allocation_type == kTfLiteDynamic || tensor.allocation_type == kPersistentRo;
    if (heap || ours[static_cast<std::size_t>(id)]) {
      std::free(tensor.data);
      tensor.data = nullptr;
    }
    ours[static_cast<std::size_t>(id)] = false;
  }

  bool has_dynamic_input(const Instance& instance) {
    const std::vector<int>& inputs = instance.recipe.inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int id) { return id >= 0 && at(id).allocation_type == kTfLiteDynamic; });
  }

  void run_node(Instance& instance) {
    const TfLiteRegistration& by = instance.recipe.registration;
    if (!instance.prepared || has_dynamic_input(instance)) {
      error.clear();
      make_room();
      if (by.prepare != nullptr && by.prepare(&sandbox, &instance.node) != kTfLiteOk)
        fail(instance, "does not take its inputs");
      instance.prepared = true;
    }
    for (const TfLiteIntArray* ids : {instance.node.outputs, instance.node.temporaries}) {
      for (int i = 0; ids != nullptr && i < ids->size; ++i) provide(ids->data[i]);
    }
    error.clear();
    make_room();
    if (by.invoke(&sandbox, &instance.node) != kTfLiteOk) fail(instance, "has failed");
  }

  void run(const TfLiteContext& context, const std::set<int>& wanted, bool keep) {
    sandbox.recommended_num_threads = context.recommended_num_threads;
    for (const int id : boundary) {
      const TfLiteTensor& real = context.tensors[id];
      TfLiteTensor& tensor = at(id);
      if (real.data == nullptr || real.bytes != tensor.bytes)
        throw ShadowError("an input of the partition has no memory on the host");
      tensor.data = real.data;
    }
    for (std::size_t i = 0; i < instances.size(); ++i) {
      Instance& instance = instances[i];
      run_node(instance);
      const TfLiteIntArray* temporaries = instance.node.temporaries;
      for (int t = 0; temporaries != nullptr && t < temporaries->size; ++t) {
        const int id = temporaries->data[t];
        if (id >= 0 && at(id).allocation_type == kTfLiteArenaRw) release(id);
      }
      if (keep) continue;
      for (const auto* ids : {&instance.recipe.inputs, &instance.recipe.outputs}) {
        for (const int id : *ids) {
          if (id >= 0 && until.at(id) == i && wanted.count(id) == 0 &&
              at(id).allocation_type == kTfLiteArenaRw && ours[static_cast<std::size_t>(id)])
            release(id);
        }
      }
    }
  }

  TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims) {
    const std::size_t size = size_of_type(tensor->type);
    if (tensor->allocation_type == kTfLiteMmapRo || size == 0) {
      error = "a tensor of type " + std::string(tfl::type_name(tensor->type)) + " is resized";
      if (dims != tensor->dims) std::free(dims);
      return kTfLiteError;
    }
    const std::size_t bytes =
        std::accumulate(dims->data, dims->data + dims->size, size,
                        [](std::size_t n, int d) { return n * static_cast<std::size_t>(d); });
    const bool grows = tensor->data == nullptr || bytes > tensor->bytes;
    const auto id = static_cast<int>(tensor - tensors.data());
    if (tensor->allocation_type == kTfLiteDynamic || tensor->allocation_type == kPersistentRo) {
      if (grows) {
        std::free(tensor->data);
        tensor->data = new_memory(bytes);
      }
    } else if (grows && ours[static_cast<std::size_t>(id)]) {
      release(id);
      tensor->bytes = bytes;
    }
    tensor->bytes = bytes;
    if (dims != tensor->dims) std::free(tensor->dims);
    tensor->dims = dims;
    return kTfLiteOk;
  }

  // Kernels may have been compiled without exceptions.
  static TfLiteStatus resize_tensor(TfLiteContext* context, TfLiteTensor* tensor,
                                    TfLiteIntArray* dims) {
    try {
      return of(context).resize(tensor, dims);
    } catch (const std::exception&) {
      return kTfLiteError;
    }
  }

  static TfLiteStatus resize_explicit(TfLiteContext* context, TfLiteTensor* tensor, int rank,
                                      const int* shape) {
    return resize_tensor(context, tensor, new_array(shape, static_cast<std::size_t>(rank)));
  }

  static TfLiteStatus add_tensors(TfLiteContext* context, int count, int* first) {
    Impl& self = of(context);
    if (first != nullptr) *first = static_cast<int>(self.tensors.size());
    if (self.tensors.capacity() - self.tensors.size() < static_cast<std::size_t>(count)) {
      self.error = "it adds more tensors than there is room for";
      return kTfLiteError;
    }
    for (int i = 0; i < count; ++i) {
      TfLiteTensor tensor{};
      tensor.buffer_handle = -1;
      self.tensors.push_back(tensor);
      self.ours.push_back(false);
    }
    self.publish_tensors();
    return kTfLiteOk;
  }

  static void report_error(TfLiteContext* context, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    of(context).error += text;
  }
};

Shadow::Shadow(const TfLiteContext& context, std::vector<CpuNode> nodes, bool dequantize)
    : impl_(std::make_unique<Impl>()) {
  impl_->load(context, std::move(nodes), dequantize);
}
Shadow::~Shadow() = default;

void Shadow::run(const TfLiteContext& context, const std::set<int>& wanted, bool keep) {
  impl_->run(context, wanted, keep);
}

const TfLiteTensor& Shadow::tensor(int id) const { return impl_->at(id); }

}  // namespace clgpu::delegate
