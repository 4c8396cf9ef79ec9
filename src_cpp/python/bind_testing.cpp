// Doors for tests: the memory layout, half conversion.
#include <pybind11/stl.h>

#include "base/half.hpp"
#include "cl/context.hpp"
#include "cl/libraries.hpp"
#include "delegate/trust.hpp"
#include "plan/memory.hpp"
#include "plan/roads.hpp"
#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;

void bind_testing(py::module_& module) {
  module.def("kernel_names", cl::kernel_names,
             "Names of the kernel functions that this process has made kernels of.");
  module.def(
      "pretend_android",
      [] {
        cl::pretend_android();
        return cl::android().libraries;
      },
      "Makes devices() search as on Android; returns the names it tries.");
  module.def("fail_verification", &delegate::always_fail, py::arg("fail"),
             "Makes every comparison of verification fail until called with False.");
  module.def(
      "lay_out",
      [](const std::vector<std::tuple<std::int64_t, int, int>>& blocks, std::int64_t max_bytes,
         std::int64_t alignment, bool offsets) {
        std::vector<plan::Block> list;
        for (const auto& [bytes, first, last] : blocks) list.push_back({bytes, first, last});
        const plan::Layout layout = plan::lay_out(list, {max_bytes, alignment, offsets});
        py::dict result;
        result["objects"] = layout.objects;
        result["offsets"] = layout.offsets;
        result["bytes"] = layout.bytes;
        result["strategy"] = layout.strategy;
        result["bound"] = plan::lower_bound(list);
        return result;
      },
      py::arg("blocks"), py::arg("max_bytes") = INT64_MAX, py::arg("alignment") = 1,
      py::arg("offsets") = true,
      "Object and offset of each block (bytes, first, last), and the bytes of each object.");
  module.def(
      "host_pointer_problem",
      [](bool is_cpu, std::size_t base_align, std::uintptr_t address, std::int64_t bytes) {
        DeviceInfo device;
        device.type = is_cpu ? DeviceType::kCpu : DeviceType::kGpu;
        device.base_align_bytes = base_align;
        return plan::host_pointer_problem(device, reinterpret_cast<const void*>(address), bytes);
      },
      py::arg("is_cpu"), py::arg("base_align"), py::arg("address"), py::arg("bytes"),
      "Why a device cannot work on host memory in place; empty when it can.");
  module.def(
      "classify_gpu",
      [](const std::string& vendor, const std::string& name, const std::string& version) {
        const Gpu gpu = classify_gpu(vendor, name, version);
        return std::make_pair(name_of(gpu.family), gpu.generation);
      },
      py::arg("vendor"), py::arg("name"), py::arg("version"),
      "Family and generation of a GPU, by what its driver says.");
  module.def("float_to_half", &float_to_half, py::arg("value"), "Bits of the nearest half.");
  module.def("half_to_float", &half_to_float, py::arg("bits"),
             "Value of a half given by its bits.");
}

}  // namespace clgpu::python
