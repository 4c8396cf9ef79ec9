// Launches of load time that do the same: bands of one convolution pack its weights alike, and one
// packing serves them all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

class LoadOnce {
 public:
  /// Drops from the steps of one node, those of load time, what an earlier node's have computed,
  /// and lets the others read that. `writes`: steps of this node that write each of its scratch
  /// buffers, by buffer; a buffer that is not in it is none. `others`: the node's steps of every
  /// inference.
  void share(std::vector<Step>& steps, std::vector<Step>& others, const std::map<int, int>& writes,
             const std::vector<Buffer>& buffers);

 private:
  std::map<std::string, std::vector<int>> known_;  // what a launch does -> buffers it has written
};

}  // namespace clgpu::plan
