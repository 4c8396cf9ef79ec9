// Compares a partition's results with those of the CPU's kernels, and finds the faulty engine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "abi/tflite_abi.hpp"
#include "delegate/options.hpp"
#include "delegate/verify/difference.hpp"
#include "delegate/verify/shadow.hpp"
#include "delegate/verify/trust.hpp"
#include "ir/graph.hpp"
#include "plan/plan.hpp"
#include "runtime/measure/alone.hpp"

namespace clgpu::delegate {

/// Runs the node at a position of a graph by one candidate, given its inputs: see
/// runtime::run_alone.
using RunAlone = std::function<runtime::Alone(const ir::Graph&, std::size_t position,
                                              const std::string& candidate, Level level,
                                              const runtime::InputOf& input)>;

/// For a partition that was computed on the device, with this graph at this level, and by the CPU's
/// kernels: `cpu.shadow` has their results.
class Comparison {
 public:
  /// `mixed`: with the option precision="mixed", its plan; null: there is none. `model_outputs`:
  /// TFLite's ids; the bound of a plan is theirs. `model`: the graph before all passes, with the
  /// integers that the model has itself.
  Comparison(const Options& options, Level level, const passes::PrecisionPlan* mixed,
             const std::set<int>& model_outputs, const ir::Graph& model, const ir::Graph& graph,
             const Standby& cpu)
      : options_(options),
        precision_(options.precision == passes::Precision::kMixed && mixed == nullptr
                       ? passes::Precision::kFp32
                       : options.precision),
        level_(level),
        named_(mixed == nullptr ? std::nullopt : bound_of(*mixed, model_outputs, graph)),
        model_(model),
        graph_(graph),
        cpu_(cpu) {}

  /// The largest relative L2 error of a graph's outputs with a plan. The results of a partition
  /// that nodes on the CPU read may have larger errors than the model's outputs.
  static std::optional<double> bound_of(const passes::PrecisionPlan& mixed,
                                        const std::set<int>& model_outputs, const ir::Graph& graph);

  /// Compares the outputs in the runtime's tensors.
  Finding compare(const TfLiteContext& context) const;

  /// Runs each node of a plan alone with right inputs. The shadow has the values of all tensors.
  Suspects find_suspects(const plan::Plan& plan, const RunAlone& run_alone) const;

 private:
  Tolerance tolerance(bool of_node) const;
  bool is_tie(int tensor, const void* got, double slack) const;
  std::optional<Suspects::Engine> judge_alone(std::size_t position, const std::string& candidate,
                                              const RunAlone& run_alone) const;
  void judge(const plan::Choice& choice, std::size_t position, const RunAlone& run_alone,
             Suspects& suspects) const;

  const Options& options_;
  const passes::Precision precision_;
  const Level level_;
  const std::optional<double> named_;
  const ir::Graph& model_;
  const ir::Graph& graph_;
  const Standby& cpu_;
};

}  // namespace clgpu::delegate
