// For tests: the memory layout, half conversion, drivers' answers.
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "base/half.hpp"
#include "base/ptx_addresses.hpp"
#include "base/refusal.hpp"
#include "base/sm_90a.hpp"
#include "cl/context.hpp"
#include "cl/libraries.hpp"
#include "passes/small_tensors.hpp"
#include "plan/arena/memory.hpp"
#include "plan/roads.hpp"
#include "python/bind.hpp"
#include "python/native_delegate.hpp"
#include "runtime/measure/probe.hpp"
#include "runtime/run/addresses.hpp"
#include "runtime/run/allocation.hpp"
#include "runtime/run/chains.hpp"
#include "tfl/flexbuffer.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

// The answer of a driver, byte for byte; nothing if it refuses.
template <class Ask>
std::vector<std::optional<py::bytes>> answers(const std::vector<cl::cl_uint>& questions, Ask ask) {
  std::vector<std::optional<py::bytes>> list;
  for (const cl::cl_uint what : questions) {
    std::size_t size = 0;
    std::string value;
    bool is_told = ask(what, 0, nullptr, &size) == cl::CL_SUCCESS;
    if (is_told && size > 0) {
      value.resize(size);
      is_told = ask(what, size, value.data(), nullptr) == cl::CL_SUCCESS;
    }
    list.push_back(is_told ? std::optional<py::bytes>(py::bytes(value)) : std::nullopt);
  }
  return list;
}

std::vector<std::optional<py::bytes>> device_answers(const std::string& device,
                                                     const std::vector<cl::cl_uint>& questions,
                                                     bool of_platform) {
  const cl::Device& found = cl::find_device(device);
  if (of_platform) {
    return answers(questions, [&](auto... rest) {
      return found.api->clGetPlatformInfo(found.platform, rest...);
    });
  }
  return answers(questions,
                 [&](auto... rest) { return found.api->clGetDeviceInfo(found.id, rest...); });
}

// By their numbers.
std::vector<std::string> refusal_codes() {
  std::vector<std::string> codes;
  while (true) {
    const std::string code = code_of(static_cast<Why>(codes.size()));
    if (code.empty()) return codes;
    codes.push_back(code);
  }
}

std::string refusal_sentence(const std::string& code, const std::string& what,
                             const std::string& detail, const std::string& has,
                             const std::vector<std::string>& supported) {
  const std::vector<std::string> codes = refusal_codes();
  const auto found = std::find(codes.begin(), codes.end(), code);
  if (found == codes.end()) throw OptionError("no refusal has the code " + code);
  return sentence_of({static_cast<Why>(found - codes.begin()), what, detail, has, supported});
}

// A dictionary, or the sentence of the refusal.
py::object flexbuffer_map(const std::string& bytes) {
  const auto map = tfl::FlexMap::read(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                      bytes.size(), "the options");
  if (!map) return py::str(sentence_of(map.refusal()));
  py::dict values;
  for (const auto& [name, value] : map->entries()) {
    // Texts may be any bytes.
    const auto* text = std::get_if<std::string>(&value);
    values[py::bytes(name)] = text != nullptr ? py::object(py::bytes(*text)) : py::cast(value);
  }
  return values;
}

py::list kernel_facts() {
  py::list list;
  for (const auto& [kernel, facts] : cl::kernel_facts()) {
    list.append(py::make_tuple(kernel.first, kernel.second, facts.builds, facts.work_group,
                               facts.local_bytes));
  }
  return list;
}

void pretend_probe(const std::string& device, bool half_arithmetic, bool mma_f16, bool mma_tf32,
                   bool mma_s8, int dot8, bool wgmma) {
  const cl::Device& found = cl::find_device(device);
  runtime::ProbedDevice facts{found.info, {}};
  facts.info.half_arithmetic = half_arithmetic;
  facts.info.mma_f16 = mma_f16;
  facts.info.mma_tf32 = mma_tf32;
  facts.info.mma_s8 = mma_s8;
  facts.info.wgmma = wgmma;
  facts.info.dot8 = static_cast<Dot8>(dot8);
  runtime::pretend_probe(found, facts);
}

}  // namespace

void bind_testing(py::module_& module) {
  module.def("kernel_names", cl::kernel_names,
             "Names of the kernel functions that this process has made kernels of.");
  module.def("record_kernels", cl::record_kernels,
             "From now on kernel_facts() lists every kernel that this process makes.");
  module.def("refusal_codes", &refusal_codes, "The codes that a refusal in explain() may have.");
  module.def("refusal_sentence", &refusal_sentence, py::arg("code"), py::arg("what") = "",
             py::arg("detail") = "", py::arg("has") = "",
             py::arg("supported") = std::vector<std::string>{},
             "The sentence that explain() gives for a refusal.");
  module.def("flexbuffer_map", &flexbuffer_map, py::arg("bytes"),
             "What a FlexBuffers map holds, by names as bytes; the sentence of the refusal if the "
             "bytes are none.");
  module.def("kernel_facts", &kernel_facts,
             "Name, build options, whether it builds, largest work-group and bytes of local memory "
             "of each kernel that was recorded.");
  module.def(
      "device_answers", &device_answers, py::arg("device"), py::arg("questions"),
      py::arg("of_platform") = false,
      "A driver's answers to clGetDeviceInfo or clGetPlatformInfo, as bytes; None if it gives an "
      "error.");
  module.def(
      "stop_pretending",
      [](const std::string& device) { runtime::stop_pretending(cl::find_device(device)); },
      py::arg("device"), "Ends what pretend_probe has begun.");
  module.def("pretend_probe", &pretend_probe, py::arg("device"), py::kw_only(),
             py::arg("half_arithmetic"), py::arg("mma_f16"), py::arg("mma_tf32"), py::arg("mma_s8"),
             py::arg("dot8"), py::arg("wgmma") = false,
             "Sets the results of a device's probes from now on.");
  module.def("try_addresses", &runtime::Addresses::try_on_all, py::arg("on_all"),
             "Whether kernels get buffers by their addresses on all devices where that works, not "
             "only on NVIDIA's; in delegates made from now on.");
  module.def("addresses_set", &runtime::Addresses::arguments_set,
             "Arguments of kernels that were set to addresses so far, in this process.");
  module.def("with_addresses", &with_addresses, py::arg("ptx"), py::arg("entry"),
             py::arg("arguments"),
             "PTX of a program whose kernel takes pointers as integers; empty if it is no such "
             "PTX.");
  module.def("sm_90a_of", &sm_90a_of, py::arg("ptx"),
             "PTX of a program for sm_90 as PTX for sm_90a; empty if it is no such PTX.");
  module.def(
      "allocate",
      [](const NativeDelegate& delegate, std::size_t bytes) {
        void* const data = runtime::Allocation::allocate(delegate.state().target.context, bytes);
        return reinterpret_cast<std::uintptr_t>(data);
      },
      py::arg("delegate"), py::arg("bytes"), "The address that clgpu_delegate_allocate() returns.");
  module.def(
      "deallocate",
      [](std::uintptr_t address) {
        return runtime::Allocation::deallocate(reinterpret_cast<const void*>(address));
      },
      py::arg("address"), "Whether there was such memory, which is freed.");
  module.def("set_chain_patience", &runtime::set_chain_patience, py::arg("looks"),
             "How often a work-group of a chain looks for the others before it gives up, in chains "
             "built from now on.");
  module.def("set_longest_chain", &runtime::set_longest_chain, py::arg("seconds"),
             "How long the kernel of a chain may take, of chains built from now on.");
  module.def(
      "pretend_seconds",
      [](double launch, double stage) { runtime::pretend_seconds({launch, stage}); },
      py::arg("launch"), py::arg("stage"),
      "How long each launch is said to take, and each stage of a chain; 0: it is measured.");
  module.def(
      "judge_chains",
      [](bool measures, std::optional<std::set<int>> slower) {
        runtime::set_chain_judgement({measures, std::move(slower)});
      },
      py::arg("measures"), py::arg("slower") = py::none(),
      "Whether chains are measured on all devices, and the first launches of those that are said "
      "to be slower than their launches, as no other is; None: they are timed.");
  module.def("pretend_no_small_tensors", &passes::pretend_no_small_tensors, py::arg("is_on"),
             "Whether small tensors, too, are stored as a precision says.");
  module.def("pretend_chain_groups", &runtime::pretend_chain_groups, py::arg("groups"),
             "Sets how many work-groups that wait for each other a device is said to run at once; "
             "0: a probe tells.");
  module.def(
      "android_libraries", [] { return cl::android().libraries; },
      "The names of the OpenCL libraries that are tried on Android, in order.");
  module.def(
      "devices_as_on_android",
      [] {
        std::vector<std::string> libraries;
        for (const cl::Device& device : cl::devices_as_on(cl::android()))
          libraries.push_back(device.info.library);
        return libraries;
      },
      "The libraries of the devices that a search as on Android finds.");
  module.def(
      "forget_programs",
      [](const std::string& device) {
        cl::Context::of(cl::find_device(device))->forget_programs();
      },
      py::arg("device"), "Releases the compiled programs of a device that are not in use.");
  module.def(
      "lay_out",
      [](const std::vector<std::tuple<std::int64_t, int, int>>& blocks, std::int64_t max_bytes,
         std::int64_t alignment, bool offsets, int size_classes) {
        std::vector<plan::Block> list;
        for (const auto& [bytes, first, last] : blocks) list.push_back({bytes, first, last});
        const plan::Layout layout =
            plan::lay_out(list, {max_bytes, alignment, offsets, size_classes});
        py::dict result;
        result["objects"] = layout.objects;
        result["offsets"] = layout.offsets;
        result["spans"] = layout.spans;
        result["bytes"] = layout.bytes;
        result["strategy"] = layout.strategy;
        result["bound"] = plan::lower_bound(list);
        return result;
      },
      py::arg("blocks"), py::arg("max_bytes") = INT64_MAX, py::arg("alignment") = 1,
      py::arg("offsets") = true, py::arg("size_classes") = 0,
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
      "Why a device cannot work on host memory in place; empty if it can.");
  module.def(
      "classify_gpu",
      [](const std::string& vendor, const std::string& name, const std::string& version) {
        const Gpu gpu = classify_gpu(vendor, name, version);
        return std::make_pair(name_of(gpu.family), gpu.generation);
      },
      py::arg("vendor"), py::arg("name"), py::arg("version"),
      "Family and generation of a GPU, from the names that its driver reports.");
  module.def("float_to_half", &float_to_half, py::arg("value"), "Bits of the nearest half.");
  module.def("half_to_float", &half_to_float, py::arg("bits"),
             "Value of a half given by its bits.");
}

}  // namespace clgpu::python
