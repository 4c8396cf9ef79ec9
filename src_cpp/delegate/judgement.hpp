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
  std::int64_t checked = 0;  ///< inferences compared, those of a kept verdict not included
  Level level = Level::kAsAsked;
  double relative_l2 = 0, max_abs = 0;  ///< of the last comparison, the worst output's
  std::string engine;  ///< those left out for wrong numbers: "family/candidate", by commas
  std::string reason;  ///< why the level is not as asked, or nothing was compared
  std::string source;  ///< "checked now", "kept", or empty while nothing has been compared
};

}  // namespace clgpu::delegate
