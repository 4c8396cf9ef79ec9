// Measures the candidates of layers and stores the fastest.
#pragma once

#include <vector>

#include "delegate/building/builder.hpp"
#include "delegate/building/engine_records.hpp"
#include "delegate/building/tuning.hpp"
#include "delegate/target.hpp"
#include "delegate/tell/ledger.hpp"

namespace clgpu::delegate {

class LayerTuning {
 public:
  LayerTuning(const Target& target, EngineRecords& engines) : target_(target), engines_(engines) {}

  /// Measures the layers of a partition that have no measurements; the partition's executor is
  /// released before. Returns false and does nothing if all layers have measurements.
  bool measure_new(Built& built) const;

  /// Measures the layers of the report's partitions, the most expensive first, and stores the
  /// fastest candidates for later interpreters. No further candidate is tried after `budget`
  /// seconds. With `again`, also measures layers that have measurements. Throws OptionError with
  /// tuning="off", Error if none of the partitions exists any more, and the exceptions of
  /// `progress`.
  std::vector<TunedLayer> measure(const Ledger& ledger, double budget, bool again,
                                  const OnProgress& progress) const;

  /// Records that the engines of the report's partitions, which won alone, are slower together than
  /// those without tuning: plans built from now on do not use them.
  void leave_winners(const Ledger& ledger) const;

 private:
  /// A layer to be measured: the first of equal nodes.
  struct Tunable {
    TunedLayer layer;
    std::shared_ptr<const ir::Graph> graph;
    std::size_t position;  ///< of the node in the graph
    plan::Choice choice;
    double cost = 0;  ///< seconds per inference of all equal nodes, before tuning
    bool pending = true;
  };

  Tunable tunable_of(const std::shared_ptr<const ir::Graph>& graph, const plan::Choice& choice,
                     bool again) const;
  void collect(const Live::Held& partition, bool again, std::vector<Tunable>& tunables) const;
  void measure(std::vector<Tunable>& tunables, double budget, const OnProgress& progress) const;

  const Target& target_;
  EngineRecords& engines_;
};

}  // namespace clgpu::delegate
