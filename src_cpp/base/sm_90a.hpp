// Programs with instructions of NVIDIA's architecture sm_90a: kernels/common/wgmma.cl.
//
// NVIDIA's compiler of OpenCL C writes PTX for sm_90, also with -cl-nv-arch sm_90a, and the
// assembler takes these instructions for sm_90a only. So they are comments in the PTX that the
// compiler writes, and a program is made once more of that PTX, with the comments as instructions.
#pragma once

#include <string>
#include <string_view>

namespace clgpu {

/// Build flag of such programs: a macro that no kernel reads.
constexpr const char* kSm90aFlag = "-DSM_90A=1";

/// The major number of the compute capability of devices that run them.
constexpr unsigned kSm90aCapability = 9;

/// The PTX of a program for sm_90 as PTX for sm_90a; empty if it is no such PTX.
inline std::string sm_90a_of(std::string ptx) {
  constexpr std::string_view kTarget = ".target sm_90", kComment = "//sm_90a ";
  const std::size_t target = ptx.find(kTarget);
  if (target == ptx.npos || ptx.find(kComment) == ptx.npos) return {};
  const std::size_t end = target + kTarget.size();
  if (end == ptx.size() || ptx[end] != 'a') ptx.insert(end, "a");
  for (std::size_t at = 0; (at = ptx.find(kComment, at)) != ptx.npos;)
    ptx.erase(at, kComment.size());
  return ptx;
}

}  // namespace clgpu
