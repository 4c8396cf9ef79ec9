// The records of a model's last inferences.
#include <set>
#include <utility>

#include "delegate/tell/inspection.hpp"
#include "delegate/tell/telling.hpp"

namespace clgpu::delegate {
namespace {

using runtime::Command;

void write(Writer& to, const NodeReport& node) {
  write_object(to, [&] {
    field(to, "node", node.index);
    field(to, "op", node.op);
    field(to, "family", node.family);
    field(to, "candidate", node.candidate);
    field(to, "tensor_cores", node.tensor_cores);
    field(to, "partition", node.partition);
    field(to, "flops", node.work.flops);
    field(to, "bytes_read", node.work.bytes_read);
    field(to, "bytes_written", node.work.bytes_written);
  });
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

std::vector<std::size_t> sizes(const Command& command, const std::array<std::size_t, 3>& of) {
  if (command.kind != Command::Kind::kLaunch) return {};
  return {of.begin(), of.end()};
}

void write_row(Writer& to, const ProfiledInference& inference, const ProfiledCommand& row) {
  const Command& command = *row.command;
  const runtime::CommandTimes& times = row.times;
  const auto moment = [&](std::int64_t nanoseconds) {
    return times.is_known ? std::optional<std::int64_t>(nanoseconds) : std::nullopt;
  };
  write_object(to, [&] {
    field(to, "partition", inference.partition);
    field(to, "node", command.node);
    field(to, "op", operation(command));
    field(to, "family", command.family);
    field(to, "candidate", command.candidate);
    field(to, "tensor_cores", command.tensor_cores);
    field(to, "kernel", command.kernel);
    field(to, "kind", runtime::name_of(command.kind));
    field(to, "tensor", command.tensor);
    field(to, "global", sizes(command, command.global));
    field(to, "local", sizes(command, command.local));
    field(to, "inference", inference.number);
    field(to, "bytes", row.bytes);
    field(to, "flops", row.flops);
    field(to, "queued", moment(times.queued));
    field(to, "submitted", moment(times.submitted));
    field(to, "start", moment(times.start));
    field(to, "end", moment(times.end));
    field(to, "host_start", times.host.start);
    field(to, "host_end", times.host.end);
  });
}

void write_span(Writer& to, const ProfiledInference& inference) {
  write_object(to, [&] {
    field(to, "inference", inference.number);
    field(to, "partition", inference.partition);
    field(to, "name", "partition " + std::to_string(inference.partition));
    field(to, "start", inference.host.start);
    field(to, "end", inference.host.end);
  });
}

}  // namespace

RecordedProfile recorded_profile(const Target& target, const Ledger& ledger, bool with_peaks) {
  RecordedProfile result{target.device().name,
                         target.device().platform,
                         passes::name_of(target.options.precision),
                         target.options.profile,
                         {},
                         {}};
  if (!result.enabled) return result;
  result.profile = profile_of(ledger);
  if (!with_peaks || result.profile.inferences.empty()) return result;
  try {
    result.peaks = runtime::peaks_of(*target.context, *target.store);
  } catch (const Error& error) {
    result.profile.notes.push_back("the rates of the device could not be measured: " +
                                   std::string(error.what()));
  }
  return result;
}

void write(Writer& to, const RecordedProfile& recorded) {
  const Profile& profile = recorded.profile;
  std::set<std::uint64_t> numbers;
  for (const ProfiledInference& inference : profile.inferences) numbers.insert(inference.number);
  write_object(to, [&] {
    field(to, "device", recorded.device);
    field(to, "platform", recorded.platform);
    field(to, "precision", recorded.precision);
    field(to, "enabled", recorded.enabled);
    field(to, "peaks", recorded.peaks);
    field(to, "inferences", numbers.size());
    write_list(to, "nodes", profile.nodes, [&](const auto& node) { write(to, node); });
    to.key("launches");
    to.begin_list();
    for (const ProfiledInference& inference : profile.inferences) {
      for (const ProfiledCommand& row : inference.commands) write_row(to, inference, row);
    }
    to.end_list();
    write_list(to, "host", profile.inferences, [&](const auto& each) { write_span(to, each); });
    field(to, "notes", profile.notes);
  });
}

}  // namespace clgpu::delegate
