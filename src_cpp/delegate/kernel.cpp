// The TfLiteRegistration of a partition: init, free, prepare, invoke.
#include "cl/fork.hpp"
#include "delegate/delegate.hpp"
#include "delegate/guard.hpp"

namespace clgpu::delegate {
namespace {

// What init returns. Older runtimes dereference a failure marker, so init always returns one of
// these and prepare tells what went wrong.
struct Kernel {
  std::unique_ptr<Partition> partition;
  std::string error;
};

auto reporter(TfLiteContext* context) {
  return [context](const char* what) { context->ReportError(context, "clgpu_delegate: %s", what); };
}

void* init(TfLiteContext* context, const char* buffer, std::size_t /*length*/) {
  auto* kernel = new (std::nothrow) Kernel;
  if (kernel == nullptr) return nullptr;
  guarded(
      0, [&](const char* what) { kernel->error = what; },
      [&] {
        const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
        const TfLiteIntArray& nodes = *params.nodes_to_replace;
        kernel->partition =
            Delegate::of(params.delegate).take(*context, {nodes.data, nodes.data + nodes.size});
        return 0;
      });
  return kernel;
}

void free(TfLiteContext* /*context*/, void* kernel) {
  if (cl::is_forked_child()) return;  // the partition is left to the parent
  guarded(
      0, [](const char*) {},
      [&] {
        delete static_cast<Kernel*>(kernel);
        return 0;
      });
}

Partition& partition_of(const TfLiteNode* node) {
  cl::refuse_forked_child();
  auto* kernel = static_cast<Kernel*>(node->user_data);
  if (kernel == nullptr) throw Error("out of host memory");
  if (kernel->partition == nullptr)
    throw Error(kernel->error.empty() ? "out of host memory" : kernel->error);
  return *kernel->partition;
}

TfLiteStatus prepare(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context), [&] {
    partition_of(node).prepare(*context);
    return kTfLiteOk;
  });
}

TfLiteStatus invoke(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context), [&] {
    partition_of(node).invoke(*context);
    return kTfLiteOk;
  });
}

}  // namespace

TfLiteRegistration kernel_registration() {
  TfLiteRegistration registration{};
  registration.init = init;
  registration.free = free;
  registration.prepare = prepare;
  registration.invoke = invoke;
  registration.builtin_code = kTfLiteBuiltinDelegate;
  registration.custom_name = "clgpu_delegate";
  registration.version = 1;
  return registration;
}

}  // namespace clgpu::delegate
