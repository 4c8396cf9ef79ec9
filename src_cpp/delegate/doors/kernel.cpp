// The TfLiteRegistration of a partition: init, free, prepare, invoke.
#include "cl/fork.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/failure.hpp"
#include "delegate/guard.hpp"

namespace clgpu::delegate {
namespace {

// init returns a partition. Older runtimes dereference a failure marker, so on failure init returns
// this object instead, and prepare reports the error.
char no_partition;

auto reporter(TfLiteContext* context) {
  return [context](const char* what) { context->ReportError(context, "clgpu_delegate: %s", what); };
}

void* init(TfLiteContext* context, const char* buffer, std::size_t /*length*/) {
  return guarded(
      static_cast<void*>(&no_partition), [](const char*) {},
      [&]() -> void* {
        const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
        auto partition = Delegate::of(params.delegate).take(*context, *params.nodes_to_replace);
        if (partition == nullptr) return &no_partition;
        // Buffers may be created before the first call of prepare.
        guarded(
            0, [](const char*) {},
            [&] {
              partition->announce(*context);
              return 0;
            });
        return partition.release();
      });
}

void free(TfLiteContext* /*context*/, void* kernel) {
  if (cl::is_forked_child()) return;  // the parent process owns the partition
  if (kernel == &no_partition) return;
  guarded(
      0, [](const char*) {},
      [&] {
        delete static_cast<Stages*>(kernel);
        return 0;
      });
}

Stages& partition_of(const TfLiteNode* node) {
  cl::refuse_forked_child();
  if (node->user_data == &no_partition)
    throw InternalError("the runtime asks for a partition that it did not preview");
  return *static_cast<Stages*>(node->user_data);
}

TfLiteStatus prepare(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context), [&] {
    Stages& partition = partition_of(node);
    recording_failure(partition.ledger(), [&] { partition.prepare(*context); });
    return kTfLiteOk;
  });
}

TfLiteStatus invoke(TfLiteContext* context, TfLiteNode* node) {
  return guarded(kTfLiteError, reporter(context), [&] {
    Stages& partition = partition_of(node);
    recording_failure(partition.ledger(), [&] { partition.invoke(*context); });
    return kTfLiteOk;
  });
}

// Printed by profilers behind the name of the partition.
const char* profiling_string(const TfLiteContext* /*context*/, const TfLiteNode* node) {
  if (node->user_data == nullptr || node->user_data == &no_partition) return nullptr;
  return static_cast<const Stages*>(node->user_data)->contents().c_str();
}

}  // namespace

TfLiteRegistration kernel_registration() {
  TfLiteRegistration registration{};
  registration.init = init;
  registration.free = free;
  registration.prepare = prepare;
  registration.invoke = invoke;
  registration.profiling_string = profiling_string;
  registration.builtin_code = kTfLiteBuiltinDelegate;
  registration.custom_name = "clgpu_delegate";
  registration.version = 1;
  return registration;
}

}  // namespace clgpu::delegate
