// The macros that a kernel file demands, as the heads of the files it is made of tell.
#pragma once

#include <string>
#include <vector>

namespace clgpu::kernel {

struct DemandedMacro {
  std::string name;
  std::string file;       ///< whose head demands it, below kernels/
  std::string text;       ///< what the head says of it: allowed values, then the meaning
  std::string condition;  ///< demanded only where this macro has `value`; empty: always
  std::string value;      ///< empty: any but 0
};

/// What a kernel file and its includes demand, in the order of the assembled text. A macro that the
/// text itself defines before it includes a file is not demanded by that file, nor does a file
/// demand anything that is included under a condition, or whose text is replaced (override_source):
/// the replacement may be of another time. Throws InternalError for an unknown path.
std::vector<DemandedMacro> demanded_macros(const std::string& file);

/// Throws Error if build options, "... -DNAME=VALUE ...", lack a macro that a kernel file demands.
/// Drivers would take it for 0 in conditions, without a word.
void check_macros(const std::string& file, const std::string& options);

}  // namespace clgpu::kernel
