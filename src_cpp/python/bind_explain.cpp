// What became of each node of a model.
#include <pybind11/stl.h>

#include <algorithm>

#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

py::dict to_dict(const delegate::NodeReport& node) {
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
  entry["input_ids"] = node.input_ids;
  entry["output_ids"] = node.output_ids;
  entry["flops"] = node.work.flops;
  entry["bytes_read"] = node.work.bytes_read;
  entry["bytes_written"] = node.work.bytes_written;
  return entry;
}

py::dict to_dict(const delegate::TensorReport& tensor) {
  py::dict entry;
  entry["id"] = tensor.id;
  entry["name"] = text(tensor.name);
  entry["type"] = tensor.type;
  entry["bytes"] = tensor.bytes;
  entry["constant"] = tensor.constant;
  return entry;
}

// Null where nothing is verified.
py::object verification_of(const delegate::Report& report) {
  py::list partitions;
  std::int64_t checked = 0;
  for (std::size_t i = 0; i < report.partitions.size(); ++i) {
    const auto& verdict = report.partitions[i].verification;
    if (!verdict) continue;
    py::dict entry;
    entry["partition"] = i;
    entry["checked"] = verdict->checked;
    entry["level"] = delegate::name_of(verdict->level);
    entry["relative_l2"] = verdict->relative_l2;
    entry["max_abs"] = verdict->max_abs;
    entry["engine"] = verdict->engine;
    entry["reason"] = text(verdict->reason);
    entry["source"] = verdict->source;
    partitions.append(entry);
    checked = std::max(checked, verdict->checked);
  }
  if (partitions.empty()) return py::none();
  py::dict result;
  result["checked"] = checked;
  result["partitions"] = partitions;
  return result;
}

py::list to_list(const std::vector<delegate::PartitionReport::Border>& borders) {
  py::list rows;
  for (const delegate::PartitionReport::Border& border : borders) {
    py::dict row;
    row["id"] = border.id;
    row["tensor"] = text(border.tensor);
    row["bytes"] = border.bytes;
    row["shape"] = border.shape;
    row["road"] = border.road;
    rows.append(row);
  }
  return rows;
}

py::dict to_dict(const delegate::PartitionReport& partition) {
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
  entry["inputs"] = to_list(partition.inputs);
  entry["outputs"] = to_list(partition.outputs);
  return entry;
}

}  // namespace

py::dict explain(const NativeDelegate& self) {
  const delegate::Report report = self.state().report();
  py::dict result;
  result["device"] = text(self.state().device().name);
  result["platform"] = text(self.state().device().platform);
  result["precision"] = passes::name_of(self.state().options.precision);
  py::list nodes, tensors, partitions;
  for (const delegate::NodeReport& node : report.nodes) nodes.append(to_dict(node));
  for (const delegate::TensorReport& tensor : report.tensors) tensors.append(to_dict(tensor));
  for (const delegate::PartitionReport& partition : report.partitions)
    partitions.append(to_dict(partition));
  result["nodes"] = nodes;
  result["tensors"] = tensors;
  result["partitions"] = partitions;
  result["placement"] = to_dict(report.placement);
  const delegate::MemoryTotals totals =
      delegate::memory_totals(report.partitions, self.state().options.plan.share_memory);
  result["arena_bytes"] = totals.arena_bytes;
  result["weights_bytes"] = totals.weights_bytes;
  result["peak_bytes"] = totals.peak_bytes;
  py::list notes;
  for (const std::string& note : report.notes) notes.append(text(note));
  result["notes"] = notes;
  result["verification"] = verification_of(report);
  return result;
}

}  // namespace clgpu::python
