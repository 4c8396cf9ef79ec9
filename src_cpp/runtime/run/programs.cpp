#include "runtime/run/programs.hpp"

#include <set>
#include <tuple>

namespace clgpu::runtime {

std::string build_options(const kernel::Launch& launch) {
  const bool names_standard = launch.build_flags.find("-cl-std=") != std::string::npos;
  std::string options = names_standard ? "" : "-cl-std=CL1.2";
  for (const auto& [name, value] : launch.macros) {
    options += " -D";
    options += name;
    options += '=';
    options += value;
  }
  if (!launch.build_flags.empty()) options += " " + launch.build_flags;
  return options;
}

bool ProgramUse::operator<(const ProgramUse& other) const {
  return std::tie(file, entry, options) < std::tie(other.file, other.entry, other.options);
}

std::vector<ProgramUse> programs(const plan::Plan& plan) {
  std::set<ProgramUse> uses;
  for (const std::vector<plan::Step>* steps : {&plan.load, &plan.run}) {
    for (const plan::Step& step : *steps) {
      if (step.launch.runs_graphs) continue;
      uses.insert({step.launch.file, step.launch.entry, build_options(step.launch)});
    }
  }
  return {uses.begin(), uses.end()};
}

}  // namespace clgpu::runtime
