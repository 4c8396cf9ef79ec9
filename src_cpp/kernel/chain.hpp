// The text of a kernel whose stages are launches: see kernels/common/chain.cl.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/bodies.hpp"

namespace clgpu::kernel {

/// A launch as a stage of a chain.
struct Stage : Member {
  /// It reads or overwrites memory that a stage since the last wait writes or reads.
  bool waits = false;
  /// It waits within its function, at OPERANDS_READY, after it has read what no stage writes. Only
  /// with `nvidia`, where parts of a work-group may wait in different places.
  bool waits_within = false;
  /// Work-items of different work-groups do not cooperate, so any work-item of the chain takes any
  /// of them. Otherwise a work-group of the stage is computed by as many neighbours within one of
  /// the chain's.
  bool is_free = false;
  int slots = 1;                ///< of its work-groups, those that one of the chain takes at once
  std::size_t local_bytes = 0;  ///< of a slot
  /// It changes what outlives an inference, and is left out once a work-group has given up: then
  /// its operands may be wrong, and the launches are repeated. Where it is not free, its kernel
  /// asks (Launch::asks_to_keep).
  bool is_lasting = false;
  /// The chain's work-group that takes the first of its own: stages that do not wait for each other
  /// begin at different ones.
  std::size_t start = 0;
};

/// Stages of one kernel, with the size of its launch.
struct Chain {
  std::vector<Stage> stages;
  std::size_t groups = 1;       ///< work-groups, all on the device at once
  std::size_t items = 1;        ///< work-items of a work-group
  std::size_t local_bytes = 0;  ///< of a work-group
  int buffers = 0;
  bool nvidia = false;  ///< PTX
};

/// Name of the kernel of a chain. Its parameters are the chain's buffers, then a buffer of three
/// zeros, and the number of times that a work-group looks at it before it gives up.
inline constexpr const char* kChainEntry = "chain";

/// Text of the kernel; its stages' macros are in it.
std::string chain_text(const Chain& chain);

}  // namespace clgpu::kernel
