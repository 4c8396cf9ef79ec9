// The delegates in use: a C caller may pass any address.
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "cl/fork.hpp"
#include "delegate/doors/delegate.hpp"
#include "delegate/guard.hpp"

namespace clgpu::delegate {
namespace {

struct Living {
  std::mutex mutex;
  std::map<const TfLiteDelegate*, Delegate*> delegates;
};

// Leaked on purpose: delegates may outlive static objects.
Living& living() {
  static auto* all = new Living;
  return *all;
}

}  // namespace

void Delegate::enlist() {
  const std::lock_guard<std::mutex> lock(living().mutex);
  living().delegates[&tflite_] = this;
}

bool Delegate::release(const TfLiteDelegate* tflite) {
  if (cl::is_forked_child()) return true;  // the parent process owns all of them
  Delegate* delegate = nullptr;
  {
    const std::lock_guard<std::mutex> lock(living().mutex);
    const auto found = living().delegates.find(tflite);
    if (found == living().delegates.end()) return false;
    delegate = found->second;
    living().delegates.erase(found);
  }
  bool seen = false;
  {
    const std::lock_guard<std::mutex> lock(delegate->mutex_);
    seen = delegate->seen_;
    delegate->pending_.clear();
    delegate->state_.reset();
  }
  if (!seen) delete delegate;
  return true;
}

std::shared_ptr<State> Delegate::state_of(const TfLiteDelegate* tflite) {
  cl::refuse_forked_child();
  const std::lock_guard<std::mutex> lock(living().mutex);
  const auto found = living().delegates.find(tflite);
  return found == living().delegates.end() ? nullptr : found->second->state();
}

void destroy(const TfLiteDelegate* tflite) noexcept {
  if (tflite == nullptr) return;
  guarded(
      0, [](const char* what) { log(LogLevel::kError, what); },
      [&] {
        if (!Delegate::release(tflite)) {
          log(LogLevel::kError,
              "the delegate to destroy does not belong to this library, or was destroyed "
              "before");
        }
        return 0;
      });
}

}  // namespace clgpu::delegate
