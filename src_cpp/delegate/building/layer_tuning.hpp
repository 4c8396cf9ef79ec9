// Measures the candidates of layers and keeps the winners.
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

  /// Measures what has not been measured before of the layers of a partition, whose executor makes
  /// room. False, and nothing done, where all has been.
  bool measure_new(Built& built) const;

  /// Measures the layers of the partitions of the report, the most expensive first, and keeps the
  /// winners for interpreters to come. No further candidate is tried after `budget` seconds. With
  /// `again`, layers measured before are, too. Throws OptionError with tuning="off", Error when
  /// none of the partitions exists any more, and what `progress` throws.
  std::vector<TunedLayer> measure(const Ledger& ledger, double budget, bool again,
                                  const OnProgress& progress) const;

 private:
  /// A layer to be measured: the first node of those alike.
  struct Tunable {
    TunedLayer layer;
    std::shared_ptr<const ir::Graph> graph;
    std::size_t position;  ///< of the node in the graph
    plan::Choice choice;
    double cost = 0;  ///< seconds per inference of all nodes alike, before tuning
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
