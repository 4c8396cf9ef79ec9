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

/// What became of each node, as far as the model tells; Partition::publish adds what was built.
/// Options that name what the model does not have get a note.
Report first_report(const Target& target, const Model& model, const TfLiteContext& context,
                    const std::vector<std::unique_ptr<Partition>>& partitions);

}  // namespace clgpu::delegate
