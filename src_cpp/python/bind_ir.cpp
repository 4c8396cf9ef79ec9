// The text of graphs: of a prepared model and, for tests, the result of passes on a text. Neither
// needs a device or an interpreter.
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>

#include "base/join.hpp"
#include "delegate/tell/inspection.hpp"
#include "ir/text.hpp"
#include "ops/family.hpp"
#include "passes/pass.hpp"
#include "passes/reuse_rows.hpp"
#include "passes/split_weights.hpp"
#include "passes/stream_rows.hpp"
#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
const T& chosen(const Choices<T>& choices, const std::string& what, const std::string& name) {
  for (const auto& [allowed, value] : choices)
    if (allowed == name) return value;
  throw OptionError(what + " is '" + name + "'; allowed: " +
                    join(choices, ", ", [](const auto& choice) { return choice.first; }));
}

// The options of a pass, from keywords.
struct Settings {
  passes::PipelineOptions options;
  passes::Concats concats = passes::Concats::kCopy;
  std::int64_t limit = 0;
  std::int64_t most = INT64_MAX;
  int band = 0;
  float tolerance = 0;
  DeviceInfo device;
};

using Set = std::function<void(Settings&, const py::object&)>;

template <class T>
Set sets(T DeviceInfo::* member) {
  return [member](Settings& s, const py::object& value) { s.device.*member = value.cast<T>(); };
}

template <class T>
Set sets(T passes::PipelineOptions::* member) {
  return [member](Settings& s, const py::object& value) { s.options.*member = value.cast<T>(); };
}

const Choices<Set>& settings() {
  using passes::Concats, passes::DynamicRange, passes::Experts, passes::Precision, passes::Pooling,
      passes::Separable;
  static const auto word = [](const py::object& value) { return value.cast<std::string>(); };
  static const Choices<Set> list = {
      {"precision",
       [](Settings& s, const py::object& value) {
         s.options.precision = chosen<Precision>({{"fp32", Precision::kFp32},
                                                  {"fp16", Precision::kFp16},
                                                  {"tf32", Precision::kTf32},
                                                  {"mixed", Precision::kMixed}},
                                                 "precision", word(value));
       }},
      {"plan",
       [](Settings& s, const py::object& value) {
         const auto plan = passes::read_precision_plan(word(value));
         if (!plan) throw OptionError("plan is '" + word(value) + "'; allowed: model=DIGEST,...");
         s.options.plan = std::make_shared<const passes::PrecisionPlan>(*plan);
       }},
      {"half_io", sets(&passes::PipelineOptions::half_io)},
      {"half_weights", sets(&passes::PipelineOptions::half_weights)},
      {"half_carried", sets(&passes::PipelineOptions::half_carried)},
      {"half_sums", sets(&passes::PipelineOptions::half_sums)},
      {"separable",
       [](Settings& s, const py::object& value) {
         s.options.separable = chosen<Separable>({{"never", Separable::kNever},
                                                  {"where_pays", Separable::kWherePays},
                                                  {"as_pairs", Separable::kPairs},
                                                  {"as_blocks", Separable::kBlocks}},
                                                 "separable", word(value));
       }},
      {"pooling",
       [](Settings& s, const py::object& value) {
         s.options.pooling = chosen<Pooling>({{"never", Pooling::kNever},
                                              {"where_pays", Pooling::kWherePays},
                                              {"always", Pooling::kAlways}},
                                             "pooling", word(value));
       }},
      {"products", sets(&passes::PipelineOptions::products)},
      {"norms", sets(&passes::PipelineOptions::norms)},
      {"gates", sets(&passes::PipelineOptions::gates)},
      {"blocks", sets(&passes::PipelineOptions::blocks)},
      {"borders", sets(&passes::PipelineOptions::borders)},
      {"chains", sets(&passes::PipelineOptions::chains)},
      {"dynamic_range",
       [](Settings& s, const py::object& value) {
         s.options.dynamic_range = chosen<DynamicRange>(
             {{"dequantize", DynamicRange::kDequantize}, {"hybrid", DynamicRange::kHybrid}},
             "dynamic_range", word(value));
       }},
      {"experts",
       [](Settings& s, const py::object& value) {
         s.options.experts = chosen<Experts>(
             {{"dense", Experts::kDense}, {"sparse", Experts::kSparse}}, "experts", word(value));
       }},
      {"concatenations",
       [](Settings& s, const py::object& value) {
         s.concats = chosen<Concats>({{"copy_all", Concats::kCopyAll},
                                      {"copy", Concats::kCopy},
                                      {"split", Concats::kSplit}},
                                     "concatenations", word(value));
       }},
      {"limit", [](Settings& s, const py::object& value) { s.limit = value.cast<std::int64_t>(); }},
      {"most", [](Settings& s, const py::object& value) { s.most = value.cast<std::int64_t>(); }},
      {"band", [](Settings& s, const py::object& value) { s.band = value.cast<int>(); }},
      {"tolerance",
       [](Settings& s, const py::object& value) { s.tolerance = value.cast<float>(); }},
      // Properties of the device.
      {"device",
       [](Settings& s, const py::object& value) {
         s.device.type = chosen<DeviceType>({{"gpu", DeviceType::kGpu},
                                             {"accelerator", DeviceType::kAccelerator},
                                             {"cpu", DeviceType::kCpu},
                                             {"other", DeviceType::kOther}},
                                            "device", word(value));
       }},
      {"gpu",
       [](Settings& s, const py::object& value) {
         Choices<GpuFamily> families;
         for (int i = 0; i <= static_cast<int>(GpuFamily::kVideoCore); ++i)
           families.emplace_back(name_of(static_cast<GpuFamily>(i)), static_cast<GpuFamily>(i));
         s.device.gpu.family = chosen(families, "gpu", word(value));
       }},
      {"compute_units", sets(&DeviceInfo::compute_units)},
      {"max_work_group_size", sets(&DeviceInfo::max_work_group_size)},
      {"local_bytes", sets(&DeviceInfo::local_bytes)},
      {"mma_f16", sets(&DeviceInfo::mma_f16)},
      {"mma_tf32", sets(&DeviceInfo::mma_tf32)},
      {"mma_s8", sets(&DeviceInfo::mma_s8)},
      {"wgmma", sets(&DeviceInfo::wgmma)},
  };
  return list;
}

using Run = std::function<void(ir::Graph&, const Settings&)>;

// The passes of the pipeline, and those that rely on shapes.
Choices<Run> all_passes() {
  Choices<Run> list;
  for (const passes::Pass& pass : passes::pipeline()) {
    list.emplace_back(pass.name, [run = pass.run](ir::Graph& graph, const Settings& s) {
      run(graph, s.options, s.device);
    });
  }
  list.emplace_back("infer_shapes",
                    [](ir::Graph& graph, const Settings&) { passes::infer_shapes(graph); });
  list.emplace_back("split_samples", [](ir::Graph& graph, const Settings&) {
    constexpr int kMost = 16;
    passes::split_samples(graph, kMost, 0);
  });
  list.emplace_back("remove_concatenations", [](ir::Graph& graph, const Settings& s) {
    passes::remove_concatenations(graph, s.concats, s.most);
  });
  list.emplace_back("split_weights", [](ir::Graph& graph, const Settings& s) {
    passes::split_weights(graph, s.limit);
  });
  list.emplace_back("stream_rows", [](ir::Graph& graph, const Settings& s) {
    if (s.band < 1)
      throw OptionError("band is " + std::to_string(s.band) + "; allowed: 1 and more");
    std::vector<std::vector<int>> regions;
    for (const passes::RowRegion& region : passes::row_regions(graph))
      regions.push_back(region.nodes);
    passes::stream_rows(graph, regions, s.band, s.most);
  });
  list.emplace_back("reuse_rows", [](ir::Graph& graph, const Settings& s) {
    passes::reuse_rows(graph, {s.tolerance, s.band}, s.device);
  });
  return list;
}

std::vector<std::string> ir_passes() {
  std::vector<std::string> names;
  for (const auto& [name, run] : all_passes()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// Passes rely on operands that the import of a node has checked.
void check_operands(const ir::Node& node) {
  const ops::Family& family = ops::family_of(node);
  for (const auto* operations : {&family.builtins, &family.customs}) {
    for (const ops::Operation& operation : *operations) {
      if (operation.name != node.op) continue;
      const auto given =
          std::count_if(node.inputs.begin(), node.inputs.end(), [](int id) { return id >= 0; });
      if (given < operation.inputs || node.outputs.empty()) {
        throw OptionError(node.op + " (node " + std::to_string(node.tflite_index) + ") has " +
                          std::to_string(given) +
                          " inputs; allowed: " + std::to_string(operation.inputs) + " and more");
      }
    }
  }
}

std::string ir_after(const std::string& text, const std::vector<std::string>& names,
                     const py::kwargs& keywords) {
  Settings given;
  for (const auto& [key, value] : keywords) {
    chosen(settings(), "a keyword", key.cast<std::string>())(
        given, py::reinterpret_borrow<py::object>(value));
  }
  const Choices<Run> known = all_passes();
  std::vector<Run> runs;
  for (const std::string& name : names) runs.push_back(chosen(known, "a pass", name));
  ir::Graph graph = ir::read_text(text, ops::all_kinds());
  for (const ir::Node& node : graph.nodes) check_operands(node);
  for (const Run& run : runs) run(graph, given);
  return ir::write_text(graph);
}

std::vector<std::string> ir_of(const NativeDelegate& self, const std::string& when, bool complete) {
  const auto stage = chosen<std::shared_ptr<const ir::Graph> delegate::Live::Held::*>(
      {{"before", &delegate::Live::Held::original}, {"after", &delegate::Live::Held::graph}},
      "when", when);
  ir::TextOptions options;
  options.complete = complete;
  std::vector<std::string> texts;
  for (const delegate::Live::Held& held : delegate::graphs(self.state().ledger)) {
    const std::shared_ptr<const ir::Graph>& graph = held.*stage;
    texts.push_back(graph == nullptr ? "" : ir::write_text(*graph, options));
  }
  return texts;
}

}  // namespace

py::list ir_texts(const NativeDelegate& self, const std::string& when, bool complete) {
  return py::cast(ir_of(self, when, complete));
}

void bind_ir(py::module_& module) {
  module.def("ir_passes", &ir_passes, "Names of the passes that ir_after() runs.");
  module.def("ir_after", &ir_after, py::arg("text"), py::arg("passes"),
             "The text of a graph after passes (src_cpp/ir/text.hpp). Keywords: options of "
             "passes and facts of the device. Shapes and attributes are not checked as those of a "
             "model are.");
}

}  // namespace clgpu::python
