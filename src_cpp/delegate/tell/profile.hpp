// The recordings of a model's last inferences: the data of Delegate.profile().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "delegate/tell/report.hpp"
#include "runtime/run/recorder.hpp"

namespace clgpu::delegate {

/// A command of one inference. The operations and bytes of a node are shared among its launches by
/// the time they take, so that all of them run at the node's rate.
struct ProfiledCommand {
  const runtime::Command* command = nullptr;
  runtime::CommandTimes times;
  double flops = 0;
  std::int64_t bytes = 0;  ///< copied; for launches, at least read and written
};

struct ProfiledInference {
  std::uint64_t number = 0;
  int partition = 0;
  runtime::Span host;
  std::vector<ProfiledCommand> commands;
};

struct Profile {
  std::vector<NodeReport> nodes;                                    ///< those that have kernels
  std::vector<ProfiledInference> inferences;                        ///< by number, then partition
  std::vector<std::string> notes;                                   ///< why times are unknown
  std::vector<std::shared_ptr<const runtime::Recorder>> recorders;  ///< own the commands
};

}  // namespace clgpu::delegate
