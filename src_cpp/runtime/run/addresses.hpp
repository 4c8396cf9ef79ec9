// Addresses of buffers in a device's memory, which kernels get as integers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {

/// NVIDIA's driver takes a quarter of a microsecond for each buffer among a kernel's arguments, in
/// each launch, and nothing for an integer. Its buffers stay where they are until they are
/// released, and kernels may read and write all of them; sub-buffers do not (see
/// plan/lasting.hpp). OpenCL does not promise that, so it is tried.
class Addresses {
 public:
  /// Where they are not `wanted` they do not work. Adds the programs of the trial to `used`. Throws
  /// cl::OpenCLError if memory is short.
  Addresses(cl::Context& context, store::Store& store, cl::Context::Programs& used, bool wanted);

  /// For tests: other devices than NVIDIA's try it, too, from now on, and get them as pointers of
  /// shared virtual memory.
  static void try_on_all(bool on_all);

  /// For tests: arguments that were set to addresses so far, by all.
  static std::uint64_t arguments_set();

  /// Whether kernels of the device read what lies at an address.
  bool work() const { return way_ != Way::kNone; }

  /// Creates a kernel as cl::Context::create_kernel does, with addresses as the arguments with
  /// these numbers where they work, and where the program can be made so and has ended no process:
  /// then `arguments` is left as it is. Otherwise it becomes empty, and all are buffers. Throws as
  /// create_kernel.
  cl::KernelHandle create_kernel(cl::ProgramSource source, const std::string& entry,
                                 const std::string& variant, store::Store& store,
                                 cl::Context::Programs& used,
                                 std::optional<cl::FirstLaunch>* first_launch,
                                 std::vector<int>& arguments) const;

  /// Asks the device where these buffers lie, and forgets all others: another buffer may get the
  /// object of one that was released. Throws cl::OpenCLError.
  void learn(const std::vector<cl::cl_mem>& buffers);

  /// Sets an argument of a kernel that create_kernel() has made with these `arguments`: to the
  /// address of a buffer, which was learnt, or to the buffer. Throws cl::OpenCLError; `what` is for
  /// its message.
  void set(const cl::KernelHandle& kernel, const std::vector<int>& arguments, std::size_t argument,
           cl::cl_mem buffer, const std::string& what) const;

 private:
  enum class Way {
    kNone,
    kIntegers,  ///< of programs that are made for them
    kPointers,  ///< clSetKernelArgSVMPointer, of OpenCL 2.0
  };
  bool reads_back(store::Store& store, cl::Context::Programs& used);

  cl::Context& context_;
  cl::QueueHandle queue_;
  cl::KernelHandle note_;
  Way way_ = Way::kNone;
  cl::cl_int(CLGPU_CL_CALL* set_pointer_)(cl::cl_kernel, cl::cl_uint, const void*) = nullptr;
  std::map<cl::cl_mem, cl::cl_ulong> known_;
};

}  // namespace clgpu::runtime
