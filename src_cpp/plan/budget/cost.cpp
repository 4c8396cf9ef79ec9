#include "plan/budget/cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/index.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::plan {
namespace {

// By kind of node.
struct Efficiency {
  double product, window, other;
  double of(Kind kind) const {
    return kind == Kind::kProduct ? product : kind == Kind::kWindow ? window : other;
  }
};

// All these were measured on the networks of bench/networks: stock XNNPACK on a Zen 5 and a
// Sapphire Rapids server with 1, 4 and 16 threads, Intel's OpenCL and PoCL on 2 cores, and the
// OpenCL of an NVIDIA H200. With them most estimates are within a third of the measured times.

// Fractions of the peak rate of float multiply-adds.
constexpr Efficiency kCpuEfficiency{0.82, 0.22, 0.075};
constexpr Efficiency kCpuDeviceEfficiency{0.45, 0.12, 0.05};
constexpr Efficiency kGpuEfficiency{0.35, 0.1, 0.05};
// The fraction that remains with tensor cores and other instructions that wait for their operands.
constexpr double kWaiting = 0.5;

// ... and with half sums, which are added to floats after every block.
constexpr double kBlocks = 0.9;

// Speed of the products of the CPU's kernels relative to floats, by Arithmetic.
constexpr std::array<double, kArithmetics> kCpuProducts{1, 1, 1, 2, 0.01, 0.06, 1};
// Seconds that the runtime spends on every node; with threads, it also wakes them.
constexpr double kCpuNode = 1e-6, kCpuThreads = 2e-6;
// A number of threads gives this power of it as speed-up.
constexpr double kCpuScaling = 0.75;
// Bytes of weights that stay in the host's caches from one inference to the next, and bytes that a
// node may use and still find in the cache of a core.
constexpr double kSharedCacheBytes = 16 << 20, kCoreCacheBytes = 1 << 20;
// Seconds that a launch takes in addition to an empty kernel of one group: a CPU device distributes
// the groups to its threads and waits for them, a GPU fetches arguments and first operands.
constexpr double kCpuDeviceLaunch = 7e-6, kGpuLaunch = 1.3e-6;
// Work-items that a compute unit of a GPU needs to be busy.
constexpr double kBusyItems = 256;

bool is_int8(DType type) { return type == DType::kI8 || type == DType::kU8; }

double host_bytes(const ir::Tensor& tensor) {
  const DType type = is_float(tensor.dtype) ? DType::kF32 : tensor.dtype;
  return static_cast<double>(tensor.shape.elements()) * static_cast<double>(size_of(type));
}

double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

Load load_of(const ir::Graph& graph, const Plan& plan, const DeviceInfo& device, int cpu_nodes) {
  Load load;
  load.cpu_nodes = cpu_nodes;
  load.weight_bytes = static_cast<double>(plan.weights_bytes);
  std::map<int, NodeLoad> launched;  // by node
  for (const Step& step : plan.run) {
    NodeLoad& node = launched[step.node];
    ++node.launches;
    double items = 1, groups = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      items *= static_cast<double>(step.launch.global[axis]);
      groups *= static_cast<double>(step.launch.global[axis] / step.launch.local[axis]);
    }
    node.items = std::max(node.items, items);
    node.groups = std::max(node.groups, groups);
  }
  std::map<int, bool> seen;
  for (const Choice& choice : plan.choices) {
    const auto found = launched.find(choice.node);
    if (found == launched.end()) continue;  // a constant: computed at load time
    const ir::Node& source = graph.nodes.at(uz(choice.position));
    NodeLoad node;
    if (!seen[choice.node]) node = found->second;  // bands of a node share its index
    seen[choice.node] = true;
    node.items = found->second.items;
    node.groups = found->second.groups;
    node.node = choice.node;
    node.family = choice.family;
    const ops::Family& family = ops::family_of(source);
    node.kind = family.work_kind;
    node.flops = choice.work.flops;
    node.device_bytes = static_cast<double>(choice.work.bytes_read + choice.work.bytes_written);
    bool int8 = false, int16 = false, half = false;
    for (const auto* ids : {&source.inputs, &source.outputs}) {
      for (const int id : *ids) {
        if (id < 0) continue;
        const ir::Tensor& tensor = graph.tensor(id);
        node.cpu_bytes += host_bytes(tensor);
        int8 = int8 || is_int8(tensor.dtype);
        int16 = int16 || tensor.dtype == DType::kI16;
        half = half || (tensor.storage == DType::kF16 && !tensor.is_constant());
      }
    }
    const bool first_int8 = !source.inputs.empty() && source.inputs[0] >= 0 &&
                            is_int8(graph.tensor(source.inputs[0]).storage);
    if (int16) {
      node.cpu_arithmetic = Arithmetic::kInt16;
    } else if (ops::is_grouped(graph, source)) {
      node.cpu_arithmetic = Arithmetic::kGroups;
    } else if (int8) {
      node.cpu_arithmetic = Arithmetic::kInt8;
    }
    node.cpu_bytes *= family.stock_passes;
    if (first_int8) {
      node.device_arithmetic = Arithmetic::kInt8;
    } else if (choice.adds_halves) {
      node.device_arithmetic = Arithmetic::kHalfSums;
    } else if (half && device.mma_f16) {
      node.device_arithmetic = Arithmetic::kHalf;
    } else if (ir::allows_tf32(graph, source) && device.mma_tf32) {
      node.device_arithmetic = Arithmetic::kTf32;
    }
    load.nodes.push_back(std::move(node));
  }
  const auto transfer = [&](const std::vector<Transfer>& transfers, double& bytes) {
    for (const Transfer& t : transfers) {
      if (t.road == Road::kHostPointer) continue;
      ++load.transfers;
      bytes += static_cast<double>(t.bytes);
    }
  };
  transfer(plan.uploads, load.up_bytes);
  transfer(plan.downloads, load.down_bytes);
  for (const Move& move : plan.moves) load.moved_bytes += static_cast<double>(move.bytes);
  return load;
}

Cost cost_of(const Load& load, const DeviceRates& device, const CpuRates& cpu) {
  Cost cost;
  cost.device_seconds = device.round_trip_seconds + load.transfers * device.transfer_seconds +
                        seconds(load.up_bytes, device.up_bytes) +
                        seconds(load.down_bytes, device.down_bytes) +
                        seconds(load.moved_bytes, std::min(device.up_bytes, device.down_bytes));
  const double cores = std::pow(std::max(cpu.threads, 1), kCpuScaling);
  const bool cached = load.weight_bytes < kSharedCacheBytes;
  const auto host_rate = [&](double bytes, double workers) {
    return cached && bytes < kCoreCacheBytes ? cpu.cache_bytes * workers : cpu.memory_bytes;
  };
  const Efficiency& efficiency = device.is_cpu ? kCpuDeviceEfficiency : kGpuEfficiency;
  for (const NodeLoad& node : load.nodes) {
    NodeCost one;
    const bool product = node.kind == Kind::kProduct;
    const double special = device.flops[static_cast<std::size_t>(node.device_arithmetic)];
    const bool special_rate =
        product && node.device_arithmetic != Arithmetic::kFloat && special > 0;
    const double share = node.device_arithmetic == Arithmetic::kHalfSums ? kBlocks : kWaiting;
    double flops = special_rate ? special * share : device.flops[0];
    const double busy =
        device.is_cpu ? node.groups / device.units : node.items / (device.units * kBusyItems);
    flops *= efficiency.of(node.kind) * std::min(1.0, std::max(busy, 1e-6));
    const double device_bytes =
        device.is_cpu ? host_rate(node.device_bytes, device.units) : device.bytes;
    const double launch = device.launch_seconds + (device.is_cpu ? kCpuDeviceLaunch : kGpuLaunch);
    one.device_seconds =
        node.launches * launch +
        std::max(seconds(node.flops, flops), seconds(node.device_bytes, device_bytes));
    const double products = kCpuProducts[static_cast<std::size_t>(node.cpu_arithmetic)];
    const double cpu_flops =
        cpu.flops * cores * kCpuEfficiency.of(node.kind) * (product ? products : 1);
    one.cpu_seconds = std::max(seconds(node.flops, cpu_flops),
                               seconds(node.cpu_bytes, host_rate(node.cpu_bytes, cores)));
    cost.device_seconds += one.device_seconds;
    cost.cpu_seconds += one.cpu_seconds;
    cost.nodes.push_back(one);
  }
  cost.cpu_seconds += load.cpu_nodes * (kCpuNode + (cpu.threads > 1 ? kCpuThreads : 0));
  return cost;
}

}  // namespace clgpu::plan
