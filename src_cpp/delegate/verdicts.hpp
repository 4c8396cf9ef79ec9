// Verdicts of placement="measured", which Python passes on.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace clgpu::delegate {

/// The result of a measurement for a model: which nodes stay on the CPU.
struct Verdict {
  std::vector<std::string> ops;  ///< of the measured model, in execution order
  std::vector<int> left;         ///< nodes that stay on the CPU
  bool cpu = false;              ///< all nodes, also of other subgraphs
  std::string choice, reason;    ///< its name, and why
  std::string source, runtime;   ///< "measured now" or "kept"; name and version
  int threads = 0;
  std::vector<std::pair<std::string, double>> candidates;  ///< and their milliseconds
};

/// Verdicts for the next Prepare: after an interpreter has asked for the delegate's pointer, it
/// calls Prepare in the same thread. Thread-safe.
class Verdicts {
 public:
  /// Sets the verdict for graphs that this thread prepares from now on; `note`: why there is none.
  void set(std::optional<Verdict> verdict, std::string note);
  std::pair<std::optional<Verdict>, std::string> get() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, std::pair<std::optional<Verdict>, std::string>> by_thread_;
};

}  // namespace clgpu::delegate
