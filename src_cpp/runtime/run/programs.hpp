// The programs that a plan's launches need, as they are passed to a driver.
#pragma once

#include <string>
#include <vector>

#include "kernel/launch.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// "-cl-std=CL1.2 -DSRC_T=float -DWG=64 ...": part of a program's identity.
std::string build_options(const kernel::Launch& launch);

struct ProgramUse {
  std::string file, entry, options;
  bool operator<(const ProgramUse& other) const;
};

/// Of all launches of a plan, at load time and of an inference; each once, sorted.
std::vector<ProgramUse> programs(const plan::Plan& plan);

}  // namespace clgpu::runtime
