#include "ops/work.hpp"

namespace clgpu::ops {

Work work_of(const NodeContext& node) {
  Work work;
  if (node.node().kind->is_view) return work;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i)) work.bytes_read += node.input(i).storage_bytes();
  }
  std::int64_t elements = 0;
  for (int i = 0; i < node.output_count(); ++i) {
    work.bytes_written += node.output(i).storage_bytes();
    elements += node.output(i).shape.elements();
  }
  const Family& family = family_of(node.node());
  work.flops = family.flops != nullptr ? family.flops(node) : static_cast<double>(elements);
  return work;
}

}  // namespace clgpu::ops
