// Measures and compares the candidates of a node on the device.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {

/// One candidate of a node, measured.
struct Trial {
  std::string candidate;
  double seconds = 0;   ///< median of one run on the device; 0 if there is a problem
  std::string problem;  ///< why the candidate is out of the contest
  bool broken = false;  ///< it does not build or launch, or computes wrong numbers
};

struct Contest {
  std::vector<Trial> trials;  ///< in the order of the candidates
  std::string winner;         ///< empty if time ran out before all were measured
};

class Tuner {
 public:
  using Clock = std::chrono::steady_clock;

  /// `tolerance`: the largest allowed L2 norm of the difference, relative to that of the reference.
  /// After `deadline`, no further candidate is built. `before_trial` is called with each candidate;
  /// an exception of it ends the tuning.
  Tuner(std::shared_ptr<cl::Context> context, std::shared_ptr<store::Store> store,
        DeviceInfo device, double tolerance, Clock::time_point deadline,
        std::function<void(const std::string& candidate)> before_trial)
      : context_(std::move(context)),
        store_(std::move(store)),
        device_(std::move(device)),
        tolerance_(tolerance),
        deadline_(deadline),
        before_trial_(std::move(before_trial)) {}

  /// Measures the candidates of `choice`, whose node is at `position`. All compute on the same
  /// random inputs, with the model's own weights, and are compared with the simplest one. They take
  /// turns, so that a change of the device's clock affects all; much slower ones are dropped. The
  /// default wins unless another is faster by more than the noise.
  Contest measure(const ir::Graph& graph, std::size_t position, const plan::Choice& choice,
                  const plan::Broken& broken) const;

 private:
  std::shared_ptr<cl::Context> context_;
  std::shared_ptr<store::Store> store_;
  DeviceInfo device_;  ///< with what a probe has found
  double tolerance_;
  Clock::time_point deadline_;
  std::function<void(const std::string&)> before_trial_;
};

}  // namespace clgpu::runtime
