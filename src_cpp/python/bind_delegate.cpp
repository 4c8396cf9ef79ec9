// The delegate object, its reports and its counters.
#include <pybind11/stl.h>

#include <optional>

#include "delegate/claim/mixed.hpp"
#include "delegate/tell/inspection.hpp"
#include "delegate/tell/telling.hpp"
#include "ops/family.hpp"
#include "plan/roads.hpp"
#include "python/native_delegate.hpp"
#include "python/to_python.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

py::dict to_dict(const cl::Counters& counters) {
  py::dict entry;
  entry["launches"] = counters.launches;
  entry["bytes_up"] = counters.bytes_up;
  entry["bytes_down"] = counters.bytes_down;
  entry["objects_created"] = counters.objects_created;
  entry["programs_built"] = counters.programs_built;
  entry["programs_loaded"] = counters.programs_loaded;
  return entry;
}

py::dict stats(const NativeDelegate& self) {
  const delegate::Stats stats = self.state().ledger.stats();
  py::dict result = to_dict(stats.total);
  result["invokes"] = stats.invokes;
  const cl::Usage& usage = self.state().target.context->usage();
  result["device_bytes"] = usage.now();
  result["peak_device_bytes"] = usage.peak();
  result["last_invoke"] = to_dict(stats.last_invoke);
  result["load"] = to_dict(stats.load);
  py::list tensors;
  const std::vector<std::vector<runtime::RoadTaken>> roads = delegate::roads(self.state().ledger);
  for (std::size_t partition = 0; partition < roads.size(); ++partition) {
    for (const runtime::RoadTaken& taken : roads[partition]) {
      py::dict entry;
      entry["partition"] = partition;
      entry["name"] = text(taken.name);
      entry["direction"] = taken.is_input ? "input" : "output";
      entry["bytes"] = taken.bytes;
      entry["road"] = taken.is_lent ? "lent" : plan::name_of(taken.road);
      entry["reason"] = taken.reason;
      entry["pinned"] = taken.is_pinned;
      tensors.append(entry);
    }
  }
  result["tensors"] = tensors;
  py::list chains;
  for (const runtime::ChainsTaken& taken : delegate::chains(self.state().ledger)) {
    py::dict entry;
    entry["partition"] = chains.size();
    entry["kernels"] = taken.kernels;
    entry["launches"] = taken.launches;
    entry["early"] = taken.early;
    entry["divided"] = taken.divided;
    entry["slower"] = taken.slower;
    entry["reason"] = taken.reason;
    chains.append(entry);
  }
  result["chains"] = chains;
  py::list bundles;
  for (const runtime::BundlesTaken& taken : delegate::bundles(self.state().ledger)) {
    py::dict entry;
    entry["partition"] = bundles.size();
    entry["kernels"] = taken.kernels;
    entry["launches"] = taken.launches;
    entry["reason"] = taken.reason;
    bundles.append(entry);
  }
  result["bundles"] = bundles;
  py::list lists;
  for (const runtime::ListTaken& taken : delegate::command_lists(self.state().ledger)) {
    py::dict entry;
    entry["partition"] = lists.size();
    entry["extension"] = taken.extension;
    entry["launches"] = taken.launches;
    entry["reason"] = text(taken.reason);
    lists.append(entry);
  }
  result["command_lists"] = lists;
  py::list reuse;
  const auto reused = [&] {
    const WithoutPython released;
    return delegate::reused(self.state().ledger);
  }();
  for (std::size_t partition = 0; partition < reused.size(); ++partition) {
    if (!reused[partition]) continue;
    py::dict entry;
    entry["partition"] = partition;
    entry["launches"] = reused[partition]->launches;
    entry["inferences"] = reused[partition]->so_far.inferences;
    entry["computed"] = reused[partition]->so_far.computed;
    reuse.append(entry);
  }
  result["reuse"] = reuse;
  return result;
}

py::object explain(const NativeDelegate& self) {
  return to_python(delegate::explain(self.state().target, self.state().report()));
}

py::object profile(NativeDelegate& self, bool with_peaks) {
  return to_python([&] {
    const WithoutPython released;
    return delegate::recorded_profile(self.state().target, self.state().ledger, with_peaks);
  }());
}

py::list memory_map(const NativeDelegate& self) {
  py::list partitions;
  for (const delegate::PartitionMemory& partition : delegate::memory_map(self.state().ledger)) {
    py::list objects;
    for (const delegate::MemoryObject& object : partition.objects) {
      py::list blocks;
      for (const delegate::MemoryBlock& block : object.blocks) {
        py::dict row;
        row["tensor"] = text(block.tensor);
        row["offset"] = block.offset;
        row["bytes"] = block.bytes;
        row["first"] = block.first;
        row["last"] = block.last;
        row["kind"] = block.kind;
        blocks.append(row);
      }
      py::dict entry;
      entry["kind"] = object.kind;
      entry["bytes"] = object.bytes;
      entry["blocks"] = blocks;
      objects.append(entry);
    }
    py::dict entry;
    entry["launches"] = partition.launches;
    entry["layout"] = partition.layout;
    entry["objects"] = objects;
    partitions.append(entry);
  }
  return partitions;
}

double device_time(const NativeDelegate& self, int runs, const std::optional<int>& node) {
  if (runs < 1) throw OptionError("runs is " + std::to_string(runs) + "; allowed: 1 and more");
  const WithoutPython released;
  return delegate::device_time(self.state().ledger, runs, node.value_or(-1));
}

py::list launch_times(const NativeDelegate& self, int rounds) {
  if (rounds < 1)
    throw OptionError("rounds is " + std::to_string(rounds) + "; allowed: 1 and more");
  std::vector<delegate::LaunchTime> times;
  {
    const WithoutPython released;
    times = delegate::launch_times(self.state().ledger, rounds);
  }
  py::list rows;
  for (const delegate::LaunchTime& time : times) {
    rows.append(py::make_tuple(time.node, time.op, time.candidate, text(time.entry), time.seconds,
                               time.bytes));
  }
  return rows;
}

py::dict to_dict(const delegate::TunedLayer& layer) {
  static const char* const kOutcomes[] = {"measured", "kept", "left"};
  py::dict entry;
  entry["nodes"] = layer.nodes;
  entry["op"] = layer.op;
  entry["family"] = layer.family;
  entry["outputs"] = layer.outputs;
  entry["default"] = layer.standard;
  entry["winner"] = layer.winner;
  entry["outcome"] = kOutcomes[static_cast<int>(layer.outcome)];
  py::dict seconds, problems;
  for (const runtime::Trial& trial : layer.trials) {
    if (trial.problem.empty()) {
      seconds[py::str(trial.candidate)] = trial.seconds;
    } else {
      problems[py::str(trial.candidate)] = text(trial.problem);
    }
  }
  entry["seconds"] = seconds;
  entry["problems"] = problems;
  return entry;
}

// `progress(layer, layers, entry, candidate)` may raise, and so may a pending signal.
py::list tune(NativeDelegate& self, double budget, bool again, const py::object& progress) {
  const auto on_progress = [&](const delegate::TuningProgress& step) {
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none())
      progress(step.layer, step.layers, to_dict(step.subject), step.candidate);
  };
  std::vector<delegate::TunedLayer> layers;
  {
    const WithoutPython released;
    const delegate::State& state = self.state();
    layers = state.tuning.measure(state.ledger, budget, again, on_progress);
  }
  py::list entries;
  for (const delegate::TunedLayer& layer : layers) entries.append(to_dict(layer));
  return entries;
}

py::list option_table() {
  py::list table;
  for (const delegate::OptionInfo& option : delegate::option_table()) {
    py::dict entry;
    entry["key"] = option.key;
    entry["default"] = option.default_value;
    entry["kind"] = option.type.kind;
    entry["words"] = option.type.words;
    entry["least"] = option.type.least;
    entry["most"] = option.type.most;
    entry["allowed"] = option.type.allowed;
    entry["help"] = option.help;
    entry["more"] = option.more;
    table.append(entry);
  }
  return table;
}

py::list families() {
  py::list list;
  for (const ops::Family* family : ops::all_families()) {
    py::dict entry;
    py::list names;
    for (const auto* operations : {&family->builtins, &family->customs})
      for (const ops::Operation& operation : *operations) names.append(operation.name);
    entry["name"] = family->name;
    entry["ops"] = names;
    entry["core"] = family->core;
    list.append(entry);
  }
  return list;
}

}  // namespace

void bind_delegate(py::module_& module) {
  module.def(
      "make_delegate",
      [](const std::map<std::string, std::string>& options) {
        py::object made = py::cast(NativeDelegate());
        made.cast<NativeDelegate&>().open(options);
        return made;
      },
      py::arg("options"), "A TFLite delegate; options are strings.");
  py::class_<NativeDelegate> native(module, "NativeDelegate",
                                    "A TFLite delegate, from make_delegate().");
  bind_carried(native);
  native
      .def_property_readonly("pointer", &NativeDelegate::pointer, "Address of the TfLiteDelegate.")
      .def("explain", &explain, "The result for each node of the model prepared last.")
      .def("set_verdict", &set_verdict, py::arg("verdict"), py::arg("note"),
           "Sets the placement that placement='measured' uses for the next interpreter of this "
           "thread.")
      .def(
          "keep_plan",
          [](const NativeDelegate& self, const std::string& plan, const std::string& label) {
            return delegate::keep_mixed(self.state(), plan, label);
          },
          py::arg("plan"), py::arg("label"),
          "Stores the plan that precision='mixed' uses for its model; False without a cache.")
      .def(
          "kept_plan",
          [](const NativeDelegate& self, const std::string& model) {
            return delegate::kept_mixed(self.state(), model);
          },
          py::arg("model"),
          "The text of the plan that keep_plan() has stored for the model of this digest, or None.")
      .def("estimates", &estimates, py::arg("threads"),
           "The cost that the cost model expects for each partition of the model prepared last.")
      .def("loads", &loads,
           "The work of each partition of the model prepared last, as placement_cost() takes it.")
      .def("ir", &ir_texts, py::arg("when"), py::arg("complete") = false,
           "Text of each partition's graph, 'before' or 'after' the passes.")
      .def("programs", &programs,
           "File, entry and build options of each program of the model prepared last.")
      .def("stats", &stats,
           "Counters: launches, transfers, objects created; roads of inputs and outputs.")
      .def(
          "reset_peak",
          [](NativeDelegate& self) { self.state().target.context->usage().reset_peak(); },
          "Resets the peak of device memory to the current use.")
      .def("memory_map", &memory_map, "Objects and blocks of each partition.")
      .def("device_time", &device_time, py::arg("runs"), py::arg("node"),
           "Seconds per inference with many in flight, without transfers.")
      .def("launch_times", &launch_times, py::arg("rounds"),
           "Node, operation, candidate, kernel and seconds of each launch of an inference.")
      .def("profile", &profile, py::arg("peaks") = true,
           "The recordings of the last inferences, with the rates of the device.")
      .def(
          "reset_profile",
          [](NativeDelegate& self, int in_a_row) {
            delegate::reset_profile(self.state().ledger, in_a_row);
          },
          py::arg("in_a_row") = runtime::Pace::kFirst,
          "Deletes the recordings, and records the given number of inferences in a row.")
      .def("tune", &tune, py::arg("budget"), py::arg("again"), py::arg("progress"),
           "Measures the candidates of the layers of the model prepared last.")
      .def(
          "leave_winners",
          [](NativeDelegate& self) {
            const WithoutPython released;
            self.state().tuning.leave_winners(self.state().ledger);
          },
          "Records that the tuned candidates of the model prepared last are slower together.");
  module.def("option_table", &option_table,
             "Key, default, allowed values and help of every option.");
  module.def("families", &families, "Name, operations and core flag of every op family.");
}

}  // namespace clgpu::python
