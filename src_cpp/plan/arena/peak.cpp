#include "plan/arena/peak.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"

namespace clgpu::plan {

std::vector<LoadStep> load_schedule(const Plan& plan) {
  struct Uses {
    std::size_t first, last;
  };
  std::map<int, Uses> uses;
  for (std::size_t i = 0; i < plan.load.size(); ++i) {
    for (const int buffer : plan.load[i].buffers)
      uses.try_emplace(buffer, Uses{i, i}).first->second.last = i;
  }
  std::vector<LoadStep> schedule(plan.load.size());
  for (const auto& [buffer, use] : uses) {
    schedule[use.first].allocate.push_back(buffer);
    const Buffer& planned = plan.buffers[uz(buffer)];
    if (planned.place == Buffer::Place::kLoad) schedule[use.last].free.push_back(buffer);
  }
  return schedule;
}

std::int64_t load_peak(const Plan& plan) {
  const auto bytes = [&](const std::vector<int>& buffers) {
    std::int64_t sum = 0;
    for (const int buffer : buffers) sum += plan.buffers[uz(buffer)].bytes;
    return sum;
  };
  std::int64_t now = 0, peak = 0;
  for (const LoadStep& step : load_schedule(plan)) {
    now += bytes(step.allocate);
    peak = std::max(peak, now);
    now -= bytes(step.free);
  }
  return peak;
}

}  // namespace clgpu::plan
