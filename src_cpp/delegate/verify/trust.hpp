// What a partition needs for its results to be verified.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "delegate/judgement.hpp"
#include "delegate/verify/difference.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

/// What comparing the outputs of a partition has shown.
struct Finding {
  Difference worst;
  std::string problem;   ///< empty: none
  bool lenient = false;  ///< stock kernels may be as far apart
};

/// What running each node alone has shown.
struct Suspects {
  struct Engine {
    std::string engine, name, why;  ///< as EngineRecords::distrust
  };
  std::vector<Engine> engines;  ///< wrong where another one of the same node is right
  std::string hopeless;         ///< a node without an engine that is right
};

struct Trust {
  Judgement verdict;
  std::string signature;        ///< as asked, with the shapes of the moment: what a verdict is of
  std::int64_t inferences = 0;  ///< with these shapes
  bool possible = true;         ///< the CPU's kernels can compute the partition
  bool is_lasting = true;       ///< the verdict is of numbers alone, of nothing that may pass

  bool on_cpu() const { return verdict.level == Level::kCpu; }
};

}  // namespace clgpu::delegate
