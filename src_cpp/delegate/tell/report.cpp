#include "delegate/tell/report.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace clgpu::delegate {

MemoryTotals memory_totals(const std::vector<PartitionReport>& partitions, bool shared) {
  MemoryTotals totals;
  std::vector<std::int64_t> slots;
  for (const PartitionReport& partition : partitions) {
    const auto in_use = [&] { return totals.arena_bytes + totals.weights_bytes; };
    totals.peak_bytes = std::max(totals.peak_bytes, in_use() + partition.load_peak_bytes);
    std::vector<std::int64_t> objects = partition.objects;
    std::sort(objects.begin(), objects.end(), std::greater<>());
    if (shared) {
      slots.resize(std::max(slots.size(), objects.size()));
      for (std::size_t i = 0; i < objects.size(); ++i) slots[i] = std::max(slots[i], objects[i]);
    } else {
      slots.insert(slots.end(), objects.begin(), objects.end());
    }
    totals.weights_bytes += partition.weights_bytes;
    totals.arena_bytes = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
    totals.peak_bytes = std::max(totals.peak_bytes, in_use());
  }
  return totals;
}

}  // namespace clgpu::delegate
