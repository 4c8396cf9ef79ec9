// The data for the verification of a partition.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "delegate/judgement.hpp"
#include "delegate/verify/difference.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

/// The result of comparing the outputs of a partition.
struct Finding {
  Difference worst;
  double bound_l2 = 0;   ///< of its relative L2 error
  std::string problem;   ///< empty: none
  bool lenient = false;  ///< the stock kernels may differ by as much
};

/// The result of running each node alone.
struct Suspects {
  struct Engine {
    std::string engine, name, why;  ///< as EngineRecords::distrust
  };
  std::vector<Engine> engines;  ///< wrong, while another engine of the same node is right
  std::string hopeless;         ///< a node without a right engine
};

struct Trust {
  Judgement verdict;
  std::string signature;        ///< of the options and the current shapes: the key of a verdict
  std::int64_t inferences = 0;  ///< with these shapes
  bool possible = true;         ///< the CPU's kernels can compute the partition
  bool is_lasting = true;       ///< the verdict depends on numbers only, not on transient errors

  bool on_cpu() const { return verdict.level == Level::kCpu; }
};

}  // namespace clgpu::delegate
