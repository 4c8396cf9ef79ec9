#include "plan/fit.hpp"

#include <algorithm>

#include "passes/pass.hpp"
#include "passes/split_weights.hpp"
#include "passes/stream_rows.hpp"

namespace clgpu::plan {

Fitted fit(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
           const Broken& broken) {
  // Families size their scratch memory by what the device has.
  DeviceInfo limited = device;
  if (options.memory_budget > 0) {
    limited.global_bytes =
        std::min(limited.global_bytes, static_cast<std::uint64_t>(options.memory_budget));
  }
  if (options.max_object > 0) {
    limited.max_object_bytes =
        std::min(limited.max_object_bytes, static_cast<std::uint64_t>(options.max_object));
  }
  Fitted fitted{graph, {}};
  // Shaped passes go here: they may rely on dimensions.
  // Packed, weights take some more.
  passes::split_weights(fitted.graph, static_cast<std::int64_t>(limited.max_object_bytes / 2));
  if (options.row_band > 0) {
    std::vector<std::vector<int>> regions;
    for (passes::RowRegion& region : passes::row_regions(fitted.graph))
      regions.push_back(std::move(region.nodes));
    passes::stream_rows(fitted.graph, regions, options.row_band,
                        static_cast<std::int64_t>(limited.max_object_bytes));
  }
  ir::verify(fitted.graph);
  fitted.plan = make_plan(fitted.graph, limited, options, broken);
  if (options.memory_budget > 0 && fitted.plan.peak_bytes > options.memory_budget) {
    PlanOptions moving = options;
    moving.swap = moving.stream_weights = true;
    // Two layers' weights at a time, and what they compute with.
    passes::split_weights(fitted.graph, options.memory_budget / 4);
    fitted.plan = make_plan(fitted.graph, limited, moving, broken);
  }
  return fitted;
}

}  // namespace clgpu::plan
