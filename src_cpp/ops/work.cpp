#include "ops/work.hpp"

#include <algorithm>

namespace clgpu::ops {

Work work_of(const NodeContext& node) {
  Work work;
  if (node.node().kind->is_view) return work;
  const std::vector<int>& inputs = node.node().inputs;
  for (int i = 0; i < node.input_count(); ++i) {
    const auto slot = inputs.begin() + i;
    const bool is_repeated = std::find(inputs.begin(), slot, *slot) != slot;
    if (node.has_input(i) && !is_repeated) work.bytes_read += node.input(i).storage_bytes();
  }
  // A node with an epilogue has one result; another output is computed between its parts.
  const int results = node.node().kind->has_epilogue ? 1 : node.output_count();
  std::int64_t elements = 0;
  for (int i = 0; i < results; ++i) {
    work.bytes_written += node.output(i).storage_bytes();
    elements += node.output(i).shape.elements();
  }
  const Family& family = family_of(node.node());
  work.flops = family.flops != nullptr ? family.flops(node) : static_cast<double>(elements);
  return work;
}

double no_flops(const NodeContext&) { return 0; }

}  // namespace clgpu::ops
