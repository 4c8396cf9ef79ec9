// The macros that a kernel file demands, as documented in the heads of the file and its includes.
#pragma once

#include <string>
#include <vector>

namespace clgpu::kernel {

struct DemandedMacro {
  std::string name;
  std::string file;       ///< file whose head demands it, below kernels/
  std::string text;       ///< its description in the head: allowed values, then the meaning
  std::string condition;  ///< demanded only if this macro has `value`; empty: always
  std::string value;      ///< empty: any but 0
};

/// What a kernel file and its includes demand, in the order of the assembled text. A file does not
/// demand a macro that the text defines before it includes the file. Files that are included under
/// a condition are ignored, and so are files with a replaced text (override_source), which may come
/// from another version. Throws InternalError for an unknown path.
std::vector<DemandedMacro> demanded_macros(const std::string& file);

/// Throws Error if build options, "... -DNAME=VALUE ...", lack a macro that a kernel file demands.
/// In conditions, drivers would silently take it for 0.
void check_macros(const std::string& file, const std::string& options);

}  // namespace clgpu::kernel
