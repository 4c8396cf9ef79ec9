#include "plan/arena/load_once.hpp"

#include <cstring>

#include "plan/operands.hpp"

namespace clgpu::plan {
namespace {

using kernel::Operand;

// Everything that determines the contents of the buffers that a launch writes.
std::string key_of(const Step& step, const std::vector<Buffer>& buffers) {
  const kernel::Launch& launch = step.launch;
  std::string key = launch.file + '\n' + launch.entry + '\n' + launch.build_flags + '\n';
  for (const auto& [name, value] : launch.macros) key += name + '=' + value + '\n';
  std::size_t next = 0;
  for (const kernel::Arg& arg : launch.args) {
    if (const auto* operand = std::get_if<Operand>(&arg)) {
      const auto buffer = static_cast<std::size_t>(step.buffers[next++]);
      key += operand->writes ? "w" + std::to_string(buffers[buffer].bytes)
                             : "r" + std::to_string(buffer);
    } else if (const auto* number = std::get_if<std::int32_t>(&arg)) {
      key += "i" + std::to_string(*number);
    } else if (const auto* real = std::get_if<float>(&arg)) {
      std::int32_t bits = 0;
      std::memcpy(&bits, real, sizeof bits);
      key += "f" + std::to_string(bits);
    } else {
      key += "l" + std::to_string(std::get<kernel::LocalMemory>(arg).bytes);
    }
    key += ' ';
  }
  for (const auto* range : {&launch.global, &launch.local}) {
    for (const std::size_t n : *range) key += std::to_string(n) + ' ';
  }
  return key;
}

}  // namespace

void LoadOnce::share(std::vector<Step>& steps, std::vector<Step>& others,
                     const std::map<int, int>& writes, const std::vector<Buffer>& buffers) {
  std::map<int, int> same;  // buffer of this node -> of an earlier one
  const auto rename = [&](Step& step) {
    for (int& buffer : step.buffers) {
      if (const auto found = same.find(buffer); found != same.end()) buffer = found->second;
    }
  };
  std::vector<Step> kept;
  for (Step& step : steps) {
    rename(step);
    std::vector<int> written;
    bool alone = true;  // scratch buffers, written by this launch alone
    for_operands(step, [&](int buffer, const Operand& operand) {
      if (!operand.writes) return;
      const auto found = writes.find(buffer);
      alone = alone && !operand.reads && found != writes.end() && found->second == 1;
      written.push_back(buffer);
    });
    if (!alone) {
      kept.push_back(std::move(step));
      continue;
    }
    const auto [entry, is_new] = known_.try_emplace(key_of(step, buffers), written);
    if (is_new) {
      kept.push_back(std::move(step));
    } else {
      for (std::size_t i = 0; i < written.size(); ++i) same[written[i]] = entry->second[i];
    }
  }
  steps = std::move(kept);
  for (Step& step : others) rename(step);
}

}  // namespace clgpu::plan
