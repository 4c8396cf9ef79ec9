// The report on a model as soon as its nodes are claimed.
#pragma once

#include <memory>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/partition.hpp"
#include "delegate/claim/model.hpp"
#include "delegate/target.hpp"
#include "delegate/tell/report.hpp"

namespace clgpu::delegate {

/// The result for each node as far as the model determines it; Partition::publish adds what was
/// built. Options with names that the model does not contain get a note.
Report first_report(const Target& target, const Model& model, const TfLiteContext& context,
                    const std::vector<std::unique_ptr<Partition>>& partitions);

}  // namespace clgpu::delegate
