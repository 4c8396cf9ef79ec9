// Decides whether nodes go to the device: the cost model, and verdicts of measurements.
#include <pybind11/stl.h>

#include "delegate/building/estimate.hpp"
#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

py::dict to_dict(const plan::NodeLoad& node) {
  py::dict entry;
  entry["node"] = node.node;
  entry["family"] = node.family;
  entry["kind"] = static_cast<int>(node.kind);
  entry["flops"] = node.flops;
  entry["device_bytes"] = node.device_bytes;
  entry["cpu_bytes"] = node.cpu_bytes;
  entry["launches"] = node.launches;
  entry["items"] = node.items;
  entry["groups"] = node.groups;
  entry["device_arithmetic"] = static_cast<int>(node.device_arithmetic);
  entry["cpu_arithmetic"] = static_cast<int>(node.cpu_arithmetic);
  return entry;
}

py::dict to_dict(const plan::NodeLoad& node, const plan::NodeCost& cost) {
  static const char* const kKinds[] = {"product", "window", "other"};
  py::dict entry = to_dict(node);
  entry["kind"] = kKinds[static_cast<int>(node.kind)];
  entry["device_seconds"] = cost.device_seconds;
  entry["cpu_seconds"] = cost.cpu_seconds;
  return entry;
}

py::dict to_dict(const plan::Load& load) {
  py::dict entry;
  entry["transfers"] = load.transfers;
  entry["up_bytes"] = load.up_bytes;
  entry["down_bytes"] = load.down_bytes;
  entry["moved_bytes"] = load.moved_bytes;
  entry["weight_bytes"] = load.weight_bytes;
  entry["cpu_nodes"] = load.cpu_nodes;
  return entry;
}

template <class T>
T number(const py::dict& from, const char* key, T otherwise) {
  return from.contains(key) ? from[key].cast<T>() : otherwise;
}

plan::NodeLoad node_load(const py::dict& from) {
  plan::NodeLoad node;
  node.kind = static_cast<plan::Kind>(number(from, "kind", 0));
  node.device_arithmetic = static_cast<plan::Arithmetic>(number(from, "device_arithmetic", 0));
  node.cpu_arithmetic = static_cast<plan::Arithmetic>(number(from, "cpu_arithmetic", 0));
  node.flops = number(from, "flops", 0.0);
  node.device_bytes = number(from, "device_bytes", 0.0);
  node.cpu_bytes = number(from, "cpu_bytes", 0.0);
  node.launches = number(from, "launches", 1);
  node.items = number(from, "items", 1e9);
  node.groups = number(from, "groups", 1e6);
  return node;
}

// Seconds on the device and on the CPU, for invented figures.
std::pair<double, double> cost_of(const py::dict& load, const py::dict& device,
                                  const py::dict& cpu) {
  plan::Load asked;
  if (load.contains("nodes")) {
    for (const py::handle node : load["nodes"])
      asked.nodes.push_back(node_load(node.cast<py::dict>()));
  }
  asked.cpu_nodes = number(load, "cpu_nodes", static_cast<int>(asked.nodes.size()));
  asked.transfers = number(load, "transfers", 0);
  asked.up_bytes = number(load, "up_bytes", 0.0);
  asked.down_bytes = number(load, "down_bytes", 0.0);
  asked.moved_bytes = number(load, "moved_bytes", 0.0);
  asked.weight_bytes = number(load, "weight_bytes", 0.0);
  plan::DeviceRates rates;
  rates.is_cpu = number(device, "is_cpu", false);
  rates.units = number(device, "units", 1);
  rates.flops = number(device, "flops", rates.flops);
  rates.bytes = number(device, "bytes", 0.0);
  rates.up_bytes = number(device, "up_bytes", 0.0);
  rates.down_bytes = number(device, "down_bytes", 0.0);
  rates.launch_seconds = number(device, "launch_seconds", 0.0);
  rates.round_trip_seconds = number(device, "round_trip_seconds", 0.0);
  rates.transfer_seconds = number(device, "transfer_seconds", 0.0);
  const plan::CpuRates host{number(cpu, "threads", 1), number(cpu, "flops", 0.0),
                            number(cpu, "cache_bytes", 0.0), number(cpu, "memory_bytes", 0.0)};
  const plan::Cost cost = plan::cost_of(asked, rates, host);
  return {cost.device_seconds, cost.cpu_seconds};
}

}  // namespace

void set_verdict(NativeDelegate& self, const py::object& verdict, const std::string& note) {
  if (verdict.is_none()) {
    self.state().verdicts.set(std::nullopt, note);
    return;
  }
  const auto from = verdict.cast<py::dict>();
  delegate::Verdict result;
  result.ops = from["ops"].cast<std::vector<std::string>>();
  result.left = from["left"].cast<std::vector<int>>();
  result.cpu = from["cpu"].cast<bool>();
  result.choice = from["choice"].cast<std::string>();
  result.reason = from["reason"].cast<std::string>();
  result.source = from["source"].cast<std::string>();
  result.runtime = from["runtime"].cast<std::string>();
  result.threads = from["threads"].cast<int>();
  result.candidates = from["candidates"].cast<std::vector<std::pair<std::string, double>>>();
  self.state().verdicts.set(std::move(result), note);
}

py::list estimates(const NativeDelegate& self, int threads) {
  std::vector<std::pair<plan::Load, plan::Cost>> costs;
  {
    const WithoutPython released;
    costs = delegate::estimates(self.state().target, self.state().ledger, threads);
  }
  py::list result;
  for (const auto& [load, cost] : costs) {
    py::dict entry = to_dict(load);
    entry["device_seconds"] = cost.device_seconds;
    entry["cpu_seconds"] = cost.cpu_seconds;
    py::list nodes;
    for (std::size_t i = 0; i < load.nodes.size(); ++i)
      nodes.append(to_dict(load.nodes[i], cost.nodes[i]));
    entry["nodes"] = nodes;
    result.append(entry);
  }
  return result;
}

py::list loads(const NativeDelegate& self) {
  py::list result;
  for (const plan::Load& load : delegate::loads(self.state().target, self.state().ledger)) {
    py::dict entry = to_dict(load);
    py::list nodes;
    for (const plan::NodeLoad& node : load.nodes) nodes.append(to_dict(node));
    entry["nodes"] = nodes;
    result.append(entry);
  }
  return result;
}

void bind_placement(py::module_& module) {
  module.def("placement_cost", &cost_of, py::arg("load"), py::arg("device"), py::arg("cpu"),
             "Seconds that the cost model expects for a device and for the CPU.");
}

}  // namespace clgpu::python
