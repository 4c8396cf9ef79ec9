// What verification has found out about a partition.
#pragma once

#include <cstdint>
#include <string>

namespace clgpu::delegate {

/// How a partition is computed: each level is slower than the one before, and safer.
enum class Level {
  kAsAsked,
  kExactSums,  ///< no engine that adds halves or rounds factors to TF32
  kFp32,       ///< no half storage either
  kCpu,        ///< by the CPU's kernels
};

/// "as asked", "exact sums", "fp32", "cpu".
const char* name_of(Level level);

struct Judgement {
  /// What the last comparison came to.
  enum class Outcome {
    kPending,    ///< nothing has been compared yet
    kUnchecked,  ///< the CPU's kernels cannot compute the partition
    kRight,
    kRounding,  ///< beyond the bound, but no node alone is wrong: integer kernels round differently
    kReplaced,  ///< wrong, and computed again in a safer way
  };

  Outcome outcome = Outcome::kPending;
  std::int64_t checked = 0;  ///< inferences compared, those of a kept verdict not included
  Level level = Level::kAsAsked;
  double relative_l2 = 0, max_abs = 0;  ///< of the last comparison, the worst output's
  double bound_l2 = 0;                  ///< of relative_l2; 0 before the first comparison
  std::string engine;  ///< those left out for wrong numbers: "family/candidate", by commas
  std::string reason;  ///< why the level is not as asked, or nothing was compared
  std::string source;  ///< "checked now", "kept", or empty while nothing has been compared
};

/// "pending", "not checked", "right", "rounding", "replaced".
const char* name_of(Judgement::Outcome outcome);

}  // namespace clgpu::delegate
