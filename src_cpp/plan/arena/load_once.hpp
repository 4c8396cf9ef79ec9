// Sharing of equal load-time launches: the bands of a convolution pack the same weights, so one
// launch is sufficient.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

class LoadOnce {
 public:
  /// Removes the load-time steps of a node that an earlier node has in the same form, and makes
  /// the node's other steps read the earlier result. `writes`: steps of this node that write each
  /// of its scratch buffers, by buffer; a buffer that is not in it is none. `others`: the node's
  /// steps of every inference.
  void share(std::vector<Step>& steps, std::vector<Step>& others, const std::map<int, int>& writes,
             const std::vector<Buffer>& buffers);

 private:
  std::map<std::string, std::vector<int>>
      known_;  // description of a launch -> buffers that it has written
};

}  // namespace clgpu::plan
