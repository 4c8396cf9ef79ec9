// What was recorded of a model's last inferences.
#include <pybind11/stl.h>

#include <optional>

#include "python/native_delegate.hpp"
#include "runtime/peaks.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

using runtime::Command;

py::dict to_dict(const delegate::NodeReport& node) {
  py::dict entry;
  entry["node"] = node.index;
  entry["op"] = node.op;
  entry["family"] = node.family;
  entry["candidate"] = node.candidate;
  entry["partition"] = node.partition;
  entry["flops"] = node.work.flops;
  entry["bytes_read"] = node.work.bytes_read;
  entry["bytes_written"] = node.work.bytes_written;
  return entry;
}

const char* operation(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kUpload:
      return "UPLOAD";
    case Command::Kind::kDownload:
      return "DOWNLOAD";
    case Command::Kind::kSwapOut:
      return "SWAP_OUT";
    case Command::Kind::kSwapIn:
      return "SWAP_IN";
    default:
      return command.op.c_str();
  }
}

// The part of a row that is the same in all inferences.
py::dict to_dict(const Command& command, int partition) {
  py::dict row;
  row["partition"] = partition;
  row["node"] = command.node;
  row["op"] = operation(command);
  row["family"] = command.family;
  row["candidate"] = command.candidate;
  row["kernel"] = command.kernel;
  row["kind"] = runtime::name_of(command.kind);
  row["tensor"] = text(command.tensor);
  const bool launch = command.kind == Command::Kind::kLaunch;
  row["global"] = launch ? py::cast(command.global) : py::list();
  row["local"] = launch ? py::cast(command.local) : py::list();
  return row;
}

py::object moment(const runtime::CommandTimes& times, std::int64_t nanoseconds) {
  return times.is_known ? py::object(py::int_(nanoseconds)) : py::object(py::none());
}

}  // namespace

py::dict to_dict(const runtime::Peaks& peaks) {
  py::dict entry;
  entry["fma_flops"] = peaks.fma_flops;
  entry["mma_f16_flops"] = peaks.mma_f16_flops;
  entry["mma_tf32_flops"] = peaks.mma_tf32_flops;
  entry["copy_bytes"] = peaks.copy_bytes;
  entry["launch_seconds"] = peaks.launch_seconds;
  entry["round_trip_seconds"] = peaks.round_trip_seconds;
  entry["upload_bytes"] = peaks.upload_bytes;
  entry["download_bytes"] = peaks.download_bytes;
  entry["transfer_seconds"] = peaks.transfer_seconds;
  return entry;
}

py::dict profile(NativeDelegate& self, bool with_peaks) {
  delegate::State& state = self.state();
  delegate::Profile data;
  std::optional<runtime::Peaks> peaks;
  if (state.options.profile) {
    const py::gil_scoped_release release;
    data = state.profile();
    if (with_peaks && !data.inferences.empty()) {
      try {
        peaks = runtime::peaks_of(*state.context, *state.store);
      } catch (const Error& error) {
        data.notes.push_back("the rates of the device could not be measured: " +
                             std::string(error.what()));
      }
    }
  }
  py::dict result;
  result["device"] = text(state.device().name);
  result["platform"] = text(state.device().platform);
  result["precision"] = passes::name_of(state.options.precision);
  result["enabled"] = state.options.profile;
  result["peaks"] = peaks ? py::object(to_dict(*peaks)) : py::object(py::none());
  py::list nodes, launches, host, notes;
  for (const delegate::NodeReport& node : data.nodes) nodes.append(to_dict(node));
  std::map<const Command*, py::dict> rows;
  std::set<std::uint64_t> numbers;
  for (const delegate::ProfiledInference& inference : data.inferences) {
    numbers.insert(inference.number);
    py::dict span;
    span["inference"] = inference.number;
    span["partition"] = inference.partition;
    span["name"] = "partition " + std::to_string(inference.partition);
    span["start"] = inference.host.start;
    span["end"] = inference.host.end;
    host.append(span);
    for (const delegate::ProfiledCommand& command : inference.commands) {
      py::dict& fixed = rows[command.command];
      if (fixed.empty()) fixed = to_dict(*command.command, inference.partition);
      py::dict row = fixed.attr("copy")();
      row["inference"] = inference.number;
      row["bytes"] = command.bytes;
      row["flops"] = command.flops;
      row["queued"] = moment(command.times, command.times.queued);
      row["submitted"] = moment(command.times, command.times.submitted);
      row["start"] = moment(command.times, command.times.start);
      row["end"] = moment(command.times, command.times.end);
      row["host_start"] = command.times.host.start;
      row["host_end"] = command.times.host.end;
      launches.append(row);
    }
  }
  for (const std::string& note : data.notes) notes.append(text(note));
  result["inferences"] = numbers.size();
  result["nodes"] = nodes;
  result["launches"] = launches;
  result["host"] = host;
  result["notes"] = notes;
  return result;
}

}  // namespace clgpu::python
