// What the kernels of composites can do.
#pragma once

namespace clgpu::ops {

/// The most elements of a head of queries and keys: a work-group keeps a query in local memory.
constexpr int kMostHeadDepth = 2048;

}  // namespace clgpu::ops
