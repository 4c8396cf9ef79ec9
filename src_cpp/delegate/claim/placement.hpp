// Which nodes stay on the CPU because they would be slower on the device.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/refusal.hpp"
#include "cl/context.hpp"
#include "plan/budget/cost.hpp"
#include "store/store.hpp"

namespace clgpu::delegate {

/// What was measured for a model: which of its nodes stay on the CPU.
struct Verdict {
  std::vector<std::string> ops;  ///< of the model it is of, in execution order
  std::vector<int> left;         ///< nodes that stay on the CPU
  bool cpu = false;              ///< all of them, those of other subgraphs too
  std::string choice, reason;    ///< its name, and why
  std::string source, runtime;   ///< "measured now" or "kept"; name and version
  int threads = 0;
  std::vector<std::pair<std::string, double>> candidates;  ///< and their milliseconds
};

/// Verdicts on their way to Prepare: the interpreter that asks for the delegate's pointer calls it
/// in the same thread right after. Thread-safe.
class Verdicts {
 public:
  /// For what this thread prepares from now on; `note` tells why there is none.
  void set(std::optional<Verdict> verdict, std::string note);
  std::pair<std::optional<Verdict>, std::string> get() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, std::pair<std::optional<Verdict>, std::string>> by_thread_;
};

/// Rates for plan::cost_of; the first call for a device or a machine measures them. `info`: with
/// what a probe has found.
plan::DeviceRates device_rates(cl::Context& context, const DeviceInfo& info, store::Store& store);
plan::CpuRates cpu_rates(store::Store& store, int threads);

/// "the CPU is expected to take 0.04 ms, the device 0.21 ms".
Refusal refusal_of(const plan::Cost& cost);

/// The runtime's number of threads as the machine can run them.
int usable_threads(int recommended);

}  // namespace clgpu::delegate
