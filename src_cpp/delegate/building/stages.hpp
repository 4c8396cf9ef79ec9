// A partition as the runtime sees it: what it asks of its only kernel.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/partition.hpp"

namespace clgpu::delegate {

/// Where sizes follow from values that the partition itself computes, it is divided into stages:
/// each is planned when those before it have run. Most partitions are one stage.
class Stages {
 public:
  /// In the order in which they run. `nodes`: of all of them, in the runtime's order.
  Stages(std::vector<std::unique_ptr<Partition>> stages, std::vector<int> nodes);

  const std::vector<int>& nodes() const { return nodes_; }
  const std::string& contents() const { return contents_; }
  Ledger& ledger() { return stages_.front()->ledger(); }
  /// Whether planning needs values that only an inference has.
  bool awaits() const;

  /// As of Partition. `others`: tensors that nodes outside of the delegate's partitions use.
  void lend_all_but(const std::set<int>& others, const std::shared_ptr<void>& entry);
  template <class OthersOf>
  void keep_memory(const TfLiteContext& context, OthersOf others_of) {
    for (const auto& stage : stages_) {
      if (stage->awaits()) stage->keep_memory_of_all_but(others_of(stage->nodes()), context);
    }
  }
  void announce(TfLiteContext& context);
  void prepare(TfLiteContext& context);
  void invoke(TfLiteContext& context);

 private:
  const std::vector<std::unique_ptr<Partition>> stages_;
  const std::vector<int> nodes_;
  std::string contents_;
};

}  // namespace clgpu::delegate
