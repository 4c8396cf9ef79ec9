// Decisions to leave supported nodes on the CPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/partition.hpp"
#include "delegate/claim/model.hpp"

namespace clgpu::delegate {

/// PlacementReport::source while the cost model decides.
constexpr const char* kCostModel = "cost model";

/// Leaves nodes of a partition on the CPU. Nodes that compute constants may serve other partitions,
/// so they follow their readers (settle_constants), unless the partition has no other nodes.
void leave(Model& model, const std::vector<int>& nodes, const Refusal& refusal);

/// Begins the session's report on the option 'placement', and leaves the nodes of a verdict. If a
/// verdict is required and none fits, the cost model decides, and a note says so.
void begin_placement(TfLiteContext& context, State& state, Session& session, Model& model,
                     bool is_main);

/// Leaves the partitions that the cost model expects to be slower on the device; returns whether
/// there were any. Builds nothing.
bool leave_losers(Session& session, Model& model,
                  const std::vector<std::unique_ptr<Partition>>& partitions);

/// Completes the session's report, and puts it and its note into the model's.
void end_placement(Session& session, Report& report);

}  // namespace clgpu::delegate
