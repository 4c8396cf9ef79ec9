// Devices: clgpu_delegate.devices().
#include <pybind11/stl.h>

#include "base/quirks.hpp"
#include "cl/device.hpp"
#include "cl/fork.hpp"
#include "python/to_python.hpp"
#include "runtime/measure/host_peaks.hpp"
#include "runtime/measure/peaks.hpp"
#include "runtime/measure/probe.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

const char* name_of(DeviceType type) {
  switch (type) {
    case DeviceType::kGpu:
      return "gpu";
    case DeviceType::kAccelerator:
      return "accelerator";
    case DeviceType::kCpu:
      return "cpu";
    default:
      return "other";
  }
}

const char* name_of(Dot8 dot8) {
  switch (dot8) {
    case Dot8::kKhronos:
      return "khronos";
    case Dot8::kArm:
      return "arm";
    case Dot8::kNvidia:
      return "nvidia";
    default:
      return "none";
  }
}

py::list devices() {
  py::list list;
  int index = 0;
  for (const cl::Device& device : cl::devices()) {
    const DeviceInfo& info = device.info;
    py::dict entry;
    entry["index"] = index++;
    entry["name"] = text(info.name);
    entry["vendor"] = text(info.vendor);
    entry["platform"] = text(info.platform);
    entry["type"] = name_of(info.type);
    entry["driver_version"] = text(info.driver_version);
    entry["opencl_version"] = text(info.opencl_version);
    entry["compute_units"] = info.compute_units;
    entry["lanes"] = info.lanes;
    entry["vector_width"] = info.vector_width;
    entry["global_bytes"] = info.global_bytes;
    entry["max_object_bytes"] = info.max_object_bytes;
    entry["local_bytes"] = info.local_bytes;
    entry["gpu"] = name_of(info.gpu.family);
    entry["gpu_generation"] = info.gpu.generation;
    entry["image_buffer_texels"] = info.image_buffer_texels;
    entry["has_half"] = info.has_half;
    entry["unified_memory"] = info.unified_memory;
    entry["library"] = info.library;
    py::list found;
    for (const Quirk& quirk : quirks()) {
      if (has_quirk(info, quirk)) found.append(quirk.name);
    }
    entry["quirks"] = py::tuple(found);
    list.append(entry);
  }
  return list;
}

py::list quirk_table() {
  py::list rows;
  for (const Quirk& quirk : quirks()) {
    py::dict row;
    row["name"] = quirk.name;
    row["devices"] = quirk.devices;
    row["drivers"] = quirk.drivers;
    row["change"] = quirk.change;
    row["why"] = quirk.why;
    row["source"] = quirk.source;
    rows.append(row);
  }
  return rows;
}

py::object measure_peaks(const std::string& device, double seconds) {
  return to_python([&] {
    const WithoutPython released;
    return runtime::measure_peaks(*cl::Context::of(cl::find_device(device)), seconds);
  }());
}

std::map<std::string, double> measure_host_peaks() {
  const WithoutPython released;
  const runtime::HostPeaks peaks = runtime::measure_host_peaks();
  return {{"fma_flops", peaks.fma_flops},
          {"cache_bytes", peaks.cache_bytes},
          {"memory_bytes", peaks.memory_bytes}};
}

py::dict probe_device(const std::string& device) {
  const runtime::ProbedDevice probed = [&] {
    const WithoutPython released;
    const auto store = store::Store::off();
    return runtime::probe(*cl::Context::of(cl::find_device(device)), *store);
  }();
  py::dict facts;
  facts["half_arithmetic"] = probed.info.half_arithmetic;
  facts["mma_f16"] = probed.info.mma_f16;
  facts["mma_tf32"] = probed.info.mma_tf32;
  facts["mma_s8"] = probed.info.mma_s8;
  facts["wgmma"] = probed.info.wgmma;
  facts["dot8"] = name_of(probed.info.dot8);
  facts["notes"] = probed.notes;
  return facts;
}

}  // namespace

void bind_devices(py::module_& module) {
  module.def("devices", &devices,
             "Every OpenCL device found, GPUs first, as dictionaries. Raises DeviceError when "
             "there is none.");
  module.def("quirk_table", &quirk_table, "The rows of the table of drivers' quirks.");
  module.def("is_forked_child", &cl::is_forked_child,
             "Whether this process was forked after OpenCL was used: it cannot use OpenCL.");
  module.def("refuse_forked_child", &cl::refuse_forked_child,
             "Raises DeviceError, with what to do instead, in such a process.");
  module.def("add_library", &cl::add_library, py::arg("path"),
             "Registers an OpenCL library to be tried after the system's loader.");
  module.def("measure_peaks", &measure_peaks, py::arg("device"), py::arg("seconds"),
             "Peak rates of a device: operations and bytes per second, seconds per launch.");
  module.def("measure_host_peaks", &measure_host_peaks,
             "Peak rates of a core of the host: operations and bytes per second.");
  module.def(
      "probe_device", &probe_device, py::arg("device"),
      "Abilities of a device that its description does not list, found by probes, and notes on "
      "those that gave wrong numbers.");
}

}  // namespace clgpu::python
