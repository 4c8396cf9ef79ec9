// Addresses of buffers in a device's memory, which kernels get as integers.
#pragma once

#include <vector>

#include "cl/context.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {

/// NVIDIA's driver takes a third of a microsecond for each buffer among a kernel's arguments, in
/// each launch, and a tenth of that for an integer. Its buffers stay where they are until they are
/// released, and kernels may read and write all of them. OpenCL does not promise that, so it is
/// tried.
class Addresses {
 public:
  /// Where they are not `wanted` they do not work. Throws cl::BuildError and cl::OpenCLError.
  Addresses(cl::Context& context, store::Store& store, bool wanted);

  /// For tests: other devices than NVIDIA's try it, too, from now on, wanted or not.
  static void try_on_all(bool on_all);

  /// Whether kernels of the device read what lies at an address.
  bool work() const { return work_; }

  /// Where they lie, in their order. Throws cl::OpenCLError.
  std::vector<cl::cl_ulong> of(const std::vector<cl::cl_mem>& buffers) const;

 private:
  bool reads_back(store::Store& store) const;

  cl::Context& context_;
  cl::QueueHandle queue_;
  cl::KernelHandle note_;
  bool work_ = false;
};

}  // namespace clgpu::runtime
