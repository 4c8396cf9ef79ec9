// What became of a model's nodes: the data behind Delegate.explain().
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace clgpu::delegate {

struct NodeReport {
  int index = 0;
  std::string op;
  bool claimed = false;
  std::string reason;     ///< why it is claimed, or why it stays on the CPU
  int partition = -1;     ///< index into Report::partitions
  std::string family;     ///< whose kernels compute it; empty for views, folded and fused nodes
  std::string candidate;  ///< chosen kernel; empty for views, folded and fused nodes
  std::string chosen;     ///< why that one: "default", "forced"; empty without a kernel
  std::vector<std::string> candidates;                       ///< those that work, best guess first
  std::vector<std::pair<std::string, std::string>> refused;  ///< those that do not, and why
  std::vector<std::vector<int>> inputs, outputs;             ///< shapes
};

struct PartitionReport {
  std::vector<int> nodes;
  int launches = 0;       ///< per inference
  int load_launches = 0;  ///< once, at load time
  std::int64_t arena_bytes = 0, weights_bytes = 0, naive_bytes = 0;
  std::int64_t bytes_up = 0, bytes_down = 0;  ///< per inference, moves excluded
  struct Move {
    bool out = false;  ///< to the host, else back, or a weight that waits there
    std::string tensor;
    std::int64_t bytes = 0;
    int start = 0, finish = 0;  ///< launches: may begin behind those before it; that which waits
  };
  std::vector<Move> moves;  ///< per inference
};

/// A kernel launch of an inference, or a move between device and host, and what it takes.
struct LaunchTime {
  int node = 0;  ///< index of the node in the model; of a move, that which waits for it, or -1
  std::string op, candidate, entry;  ///< of a move: SWAP_OUT or SWAP_IN, nothing, and the tensor
  double seconds = 0;
  std::int64_t bytes = 0;  ///< that are moved
};

struct Report {
  std::string device, platform, precision;
  std::vector<NodeReport> nodes;
  std::vector<PartitionReport> partitions;
  std::vector<std::string> notes;  ///< kernels that did not build, and the like
};

}  // namespace clgpu::delegate
