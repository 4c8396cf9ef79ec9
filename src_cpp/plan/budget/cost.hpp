// The expected cost of a partition on its device and on the CPU, for placement="auto".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/family.hpp"
#include "plan/budget/fit.hpp"

namespace clgpu::plan {

using Kind = ops::WorkKind;

/// Factors of products. kHalf is that of tensor cores, kHalfSums that of half sums without them.
/// kInt16 and kGroups are only for the CPU: the runtimes have simple loops for int16, and for
/// grouped convolutions.
enum class Arithmetic : int { kFloat, kTf32, kHalf, kInt8, kInt16, kGroups, kHalfSums };
constexpr std::size_t kArithmetics = 7;

/// The work of one node in an inference.
struct NodeLoad {
  int node = -1;  ///< index in the model
  std::string family;
  Kind kind = Kind::kOther;
  Arithmetic device_arithmetic = Arithmetic::kFloat, cpu_arithmetic = Arithmetic::kFloat;
  double flops = 0;
  double device_bytes = 0, cpu_bytes = 0;  ///< read and written, weights included
  int launches = 0;
  double items = 0, groups = 0;  ///< work-items and work-groups of its largest launch
};

/// The work of one partition in an inference.
struct Load {
  std::vector<NodeLoad> nodes;
  int cpu_nodes = 0;                    ///< that the runtime would run instead
  int transfers = 0;                    ///< copies between host and device
  double up_bytes = 0, down_bytes = 0;  ///< ... and their bytes
  double moved_bytes = 0;               ///< during an inference, in both directions
  double weight_bytes = 0;              ///< on the device
};

/// Rates of a device per second, each measured alone.
struct DeviceRates {
  bool is_cpu = false;
  int units = 1;
  std::array<double, kArithmetics> flops{};  ///< by Arithmetic; 0: the same as for floats
  double bytes = 0;
  double up_bytes = 0, down_bytes = 0;
  double launch_seconds = 0, round_trip_seconds = 0, transfer_seconds = 0;
};

/// Of one core of the host.
struct CpuRates {
  int threads = 1;  ///< that the runtime may use and the machine has
  double flops = 0;
  double cache_bytes = 0, memory_bytes = 0;
};

struct NodeCost {
  double device_seconds = 0, cpu_seconds = 0;
};

struct Cost {
  double device_seconds = 0, cpu_seconds = 0;
  std::vector<NodeCost> nodes;  ///< in the order of the load
};

/// Of a plan; `cpu_nodes` counts the model's nodes that it replaces.
Load load_of(const ir::Graph& graph, const Plan& plan, const DeviceInfo& device, int cpu_nodes);

Cost cost_of(const Load& load, const DeviceRates& device, const CpuRates& cpu);

}  // namespace clgpu::plan
