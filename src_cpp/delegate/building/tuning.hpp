// The result of tuning a model, as data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/measure/tuner.hpp"

namespace clgpu::delegate {

/// Nodes with one signature: the same layer, once or several times.
struct TunedLayer {
  enum class Outcome {
    kMeasured,  ///< in this run
    kKept,      ///< measured before
    kLeft,      ///< the budget was spent
  };
  std::vector<int> nodes;  ///< indices in the model
  std::string op, family, signature;
  std::vector<std::vector<int>> outputs;  ///< shapes
  std::string standard;                   ///< the default candidate
  std::string winner;                     ///< equals `standard` if nothing was measured
  Outcome outcome = Outcome::kLeft;
  std::vector<runtime::Trial> trials;
};

struct TuningProgress {
  int layer, layers;  ///< index of this layer, and the number of layers to measure
  const TunedLayer& subject;
  const std::string& candidate;
};
/// Told of each candidate before it is built; what it throws ends the tuning.
using OnProgress = std::function<void(const TuningProgress&)>;

/// What the store keeps of a contest: JSON with the winner and the time of each candidate. In
/// whole nanoseconds: how a real number is written depends on the process's locale.
std::string to_record(const runtime::Contest& contest);
/// The contest of a record; without a winner when it is none.
runtime::Contest from_record(const std::string& record);

}  // namespace clgpu::delegate
