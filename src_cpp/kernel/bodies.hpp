// Kernels of launches as functions of another kernel.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernel/launch.hpp"

namespace clgpu::kernel {

/// A launch that another kernel computes.
struct Member {
  const Launch* launch = nullptr;
  std::vector<int> buffers;  ///< for each Operand argument: index among the buffers of that kernel
};

/// Whether a launch can be computed by another kernel at all: its arguments are buffers and
/// numbers, only the kernel itself asks for its work-item and waits at barriers, and it is not
/// alone.
bool may_be_member(const Launch& launch);

/// Whether a function of a file, other than its kernels, asks for its work-item or waits at a
/// barrier: as a member it would need the parameters of the kernel.
bool has_cooperating_helper(const std::string& file);

/// The most arrays in local memory that a kernel of a file has.
std::size_t local_arrays(const std::string& file);

/// Bytes of local memory for the arrays of a kernel's file, each at a multiple of a line, of which
/// the driver reports `reported`; -1: it does not tell.
std::int64_t local_bytes_of(const std::string& file, std::size_t reported);

/// Work-groups of a launch.
std::size_t groups_of(const Launch& launch);

/// The functions that members' kernels become: one for all launches with the same file, macros and
/// work-groups.
class Bodies {
 public:
  /// `copied`: the function is inlined in each place that calls it.
  void add(const Launch& launch, bool copied);

  /// Whether launches have the same function.
  static bool same(const Launch& a, const Launch& b) { return key_of(a) == key_of(b); }

  /// Text of the functions, and of what they need. Their barriers are those of a part of the
  /// work-group if `named_barriers` (see common/chain.cl).
  std::string text(bool named_barriers);

  /// A call of the function of a launch. `arguments`: those of its kernel, in their order;
  /// `local_memory` and `barrier` are expressions; `waiting` are those of a chain's state, of what
  /// the function waits for and of its patience, for members of a bundle kNoWaiting.
  std::string call(const Launch& launch, const std::vector<std::string>& arguments,
                   const std::string& groups_0, const std::string& groups_1,
                   const std::string& local_memory, const std::string& barrier,
                   const std::string& waiting) const;
  static constexpr const char* kNoWaiting = "0, 0u, 0u";

 private:
  struct Body {
    const Launch* launch = nullptr;
    std::string function;
    int uses = 0;
    bool copied = false;
  };
  static std::string key_of(const Launch& launch);
  std::map<std::string, Body> bodies_;
};

/// The arguments of a member's function, as OpenCL C: numbers, and b0, b1 and so on for the buffers
/// of the kernel that calls it.
std::vector<std::string> arguments_of(const Member& member);

}  // namespace clgpu::kernel
