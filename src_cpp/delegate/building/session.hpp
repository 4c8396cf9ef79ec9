// One graph of one interpreter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "delegate/building/carried_sets.hpp"
#include "delegate/building/holdings.hpp"
#include "delegate/building/specialization.hpp"
#include "delegate/tell/report.hpp"
#include "runtime/run/pool.hpp"
#include "runtime/run/recorder.hpp"

namespace clgpu::delegate {

/// The data that the partitions of the graph share.
struct Session {
  std::uint64_t report = 0;  ///< number of its report
  /// Inferences after which nodes of the CPU may have other shapes than reported: two, because
  /// those after the last partition get theirs when it has ended.
  int untold = 0;
  cl::Counters invoke;                  ///< of the current inference
  runtime::Pace pace;                   ///< with Options::profile
  std::shared_ptr<runtime::Pool> pool;  ///< of their arenas: they never run at the same time
  bool is_main = false;                 ///< the model's main graph
  int graph = -1;                       ///< index in the model; -1 if the runtime does not tell
  std::shared_ptr<Carriers> carriers;   ///< of the interpreter; null if it carries nothing
  std::shared_ptr<Holdings> holdings;   ///< of the interpreter
  // Bytes of device memory, by partition.
  std::map<int, std::int64_t> held;   ///< peaks of those that are built
  std::map<int, std::int64_t> share;  ///< parts of the budget, if building in order did not fit
  KnownValues known;                  ///< of its tensors, for the current shapes
  MixedReport mixed;                  ///< with precision="mixed"; else empty
  std::set<int> model_outputs;        ///< as Model::model_outputs
  PlacementReport placement;
  std::string placement_note;
};

}  // namespace clgpu::delegate
