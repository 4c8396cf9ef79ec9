// The delegate object, its report and its counters.
#include <pybind11/stl.h>

#include <optional>

#include "delegate/delegate.hpp"
#include "ops/family.hpp"
#include "plan/roads.hpp"
#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

using delegate::Delegate;

// Owns one delegate for Python; see Delegate for what outlives it.
class NativeDelegate {
 public:
  explicit NativeDelegate(const std::map<std::string, std::string>& options)
      : delegate_(new Delegate(options)), state_(delegate_->state()) {}
  ~NativeDelegate() { Delegate::release(delegate_); }
  NativeDelegate(const NativeDelegate&) = delete;
  NativeDelegate& operator=(const NativeDelegate&) = delete;

  std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(delegate_->tflite()); }
  const delegate::State& state() const { return *state_; }
  delegate::State& state() { return *state_; }

 private:
  Delegate* delegate_;
  std::shared_ptr<delegate::State> state_;
};

py::dict explain(const NativeDelegate& self) {
  const delegate::Report report = self.state().report();
  py::dict result;
  result["device"] = text(self.state().device().name);
  result["platform"] = text(self.state().device().platform);
  result["precision"] = passes::name_of(self.state().options.precision);
  py::list nodes;
  for (const delegate::NodeReport& node : report.nodes) {
    py::dict entry;
    entry["index"] = node.index;
    entry["op"] = node.op;
    entry["claimed"] = node.claimed;
    entry["reason"] = text(node.reason);
    entry["partition"] =
        node.partition < 0 ? py::object(py::none()) : py::object(py::int_(node.partition));
    entry["family"] = node.family;
    entry["candidate"] = node.candidate;
    entry["chosen"] = node.chosen;
    entry["candidates"] = node.candidates;
    py::dict refused;
    for (const auto& [name, why] : node.refused) refused[py::str(name)] = text(why);
    entry["refused"] = refused;
    entry["inputs"] = node.inputs;
    entry["outputs"] = node.outputs;
    nodes.append(entry);
  }
  result["nodes"] = nodes;
  py::list partitions;
  for (const delegate::PartitionReport& partition : report.partitions) {
    py::dict entry;
    entry["nodes"] = partition.nodes;
    entry["launches"] = partition.launches;
    entry["load_launches"] = partition.load_launches;
    entry["arena_bytes"] = partition.arena_bytes;
    entry["naive_bytes"] = partition.naive_bytes;
    entry["weights_bytes"] = partition.weights_bytes;
    entry["bound_bytes"] = partition.bound_bytes;
    entry["load_peak_bytes"] = partition.load_peak_bytes;
    entry["peak_bytes"] = partition.peak_bytes;
    entry["layout"] = partition.layout;
    entry["bytes_up"] = partition.bytes_up;
    entry["bytes_down"] = partition.bytes_down;
    py::list moves;
    for (const delegate::PartitionReport::Move& move : partition.moves) {
      py::dict row;
      row["kind"] = move.out ? "out" : "in";
      row["tensor"] = text(move.tensor);
      row["bytes"] = move.bytes;
      row["start"] = move.start;
      row["finish"] = move.finish;
      moves.append(row);
    }
    entry["moves"] = moves;
    partitions.append(entry);
  }
  result["partitions"] = partitions;
  const delegate::MemoryTotals totals =
      delegate::memory_totals(report.partitions, self.state().options.plan.share_memory);
  result["arena_bytes"] = totals.arena_bytes;
  result["weights_bytes"] = totals.weights_bytes;
  result["peak_bytes"] = totals.peak_bytes;
  py::list notes;
  for (const std::string& note : report.notes) notes.append(text(note));
  result["notes"] = notes;
  return result;
}

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
  const delegate::Stats stats = self.state().stats();
  py::dict result = to_dict(stats.total);
  result["invokes"] = stats.invokes;
  const cl::Usage& usage = self.state().context->usage();
  result["device_bytes"] = usage.now();
  result["peak_device_bytes"] = usage.peak();
  result["last_invoke"] = to_dict(stats.last_invoke);
  result["load"] = to_dict(stats.load);
  py::list tensors;
  const std::vector<std::vector<runtime::RoadTaken>> roads = self.state().roads();
  for (std::size_t partition = 0; partition < roads.size(); ++partition) {
    for (const runtime::RoadTaken& taken : roads[partition]) {
      py::dict entry;
      entry["partition"] = partition;
      entry["name"] = text(taken.name);
      entry["direction"] = taken.is_input ? "input" : "output";
      entry["bytes"] = taken.bytes;
      entry["road"] = plan::name_of(taken.road);
      entry["reason"] = taken.reason;
      tensors.append(entry);
    }
  }
  result["tensors"] = tensors;
  return result;
}

py::list memory_map(const NativeDelegate& self) {
  py::list partitions;
  for (const delegate::PartitionMemory& partition : self.state().memory_map()) {
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
  const py::gil_scoped_release release;
  return self.state().device_time(runs, node.value_or(-1));
}

py::list launch_times(const NativeDelegate& self, int rounds) {
  if (rounds < 1)
    throw OptionError("rounds is " + std::to_string(rounds) + "; allowed: 1 and more");
  std::vector<delegate::LaunchTime> times;
  {
    const py::gil_scoped_release release;
    times = self.state().launch_times(rounds);
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

// `progress(layer, layers, entry, candidate)` may raise, and so may a signal that has come.
py::list tune(NativeDelegate& self, double budget, bool again, const py::object& progress) {
  const auto on_progress = [&](const delegate::TuningProgress& step) {
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none())
      progress(step.layer, step.layers, to_dict(step.subject), step.candidate);
  };
  std::vector<delegate::TunedLayer> layers;
  {
    const py::gil_scoped_release release;
    layers = self.state().tune(budget, again, on_progress);
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
    entry["allowed"] = option.allowed;
    entry["help"] = option.help;
    table.append(entry);
  }
  return table;
}

py::list families() {
  py::list list;
  for (const ops::Family* family : ops::all_families()) {
    py::dict entry;
    py::list names;
    for (const ops::Family::Builtin& builtin : family->builtins) names.append(builtin.name);
    for (const char* custom : family->customs) names.append(custom);
    entry["name"] = family->name;
    entry["ops"] = names;
    entry["core"] = family->core;
    list.append(entry);
  }
  return list;
}

}  // namespace

void bind_delegate(py::module_& module) {
  py::class_<NativeDelegate>(module, "NativeDelegate", "A TFLite delegate; options are strings.")
      .def(py::init<const std::map<std::string, std::string>&>(), py::arg("options"))
      .def_property_readonly("pointer", &NativeDelegate::pointer, "Address of the TfLiteDelegate.")
      .def("explain", &explain, "What became of each node of the model last prepared.")
      .def("stats", &stats,
           "Counters: launches, transfers, objects created; roads of inputs and outputs.")
      .def(
          "reset_peak", [](NativeDelegate& self) { self.state().context->usage().reset_peak(); },
          "Makes the device memory of the moment the peak.")
      .def("memory_map", &memory_map, "Objects and blocks of each partition.")
      .def("device_time", &device_time, py::arg("runs"), py::arg("node"),
           "Seconds per inference with many in flight, without transfers.")
      .def("launch_times", &launch_times, py::arg("rounds"),
           "Node, operation, candidate, kernel and seconds of each launch of an inference.")
      .def("tune", &tune, py::arg("budget"), py::arg("again"), py::arg("progress"),
           "Measures the candidates of the layers of the model last prepared.");
  module.def("option_table", &option_table,
             "Key, default, allowed values and help of every option.");
  module.def("families", &families, "Name, operations and core flag of every op family.");
}

}  // namespace clgpu::python
