// Kernels whose buffers are integers to NVIDIA's driver.
//
// The driver's compiler writes PTX in which `.ptr` marks parameters that are pointers. A program
// that is made of PTX without these marks has the same instructions, and its kernels take 8 bytes
// instead of a cl_mem: the address of a buffer, for which the driver does nothing in a launch.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace clgpu {

/// The PTX of a program in which the kernel `entry` takes the arguments with these numbers, which
/// must ascend, as integers of 8 bytes. Empty if it is no PTX, or if one of them is no pointer to
/// global memory.
inline std::string with_addresses(std::string ptx, const std::string& entry,
                                  const std::vector<int>& arguments) {
  constexpr std::string_view kPointer = ".ptr .global ";
  const std::string head = ".entry " + entry + "(";
  std::size_t at = ptx.find(head);
  if (at == ptx.npos) return {};
  at += head.size();
  int number = 0;
  for (const int wanted : arguments) {
    const auto end_of = [&] { return std::min(ptx.find_first_of(",)", at), ptx.size()); };
    for (; number < wanted; ++number) {
      at = end_of();
      if (at == ptx.size() || ptx[at] == ')') return {};  // there are fewer
      ++at;
    }
    const std::size_t end = end_of();
    const std::size_t mark = ptx.find(kPointer, at);
    if (mark == ptx.npos || mark >= end) return {};
    const std::size_t last = ptx.find_last_not_of(" \t\n", end - 1);
    ptx.erase(mark, ptx.find_last_of(" \t", last) + 1 - mark);  // the name stays
  }
  return ptx;
}

}  // namespace clgpu
