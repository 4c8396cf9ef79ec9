// The text of a kernel that computes several launches side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/bodies.hpp"

namespace clgpu::kernel {

/// Launches with work-groups of one size that do not depend on each other.
/// One launch computes all of them: each of its work-groups is that of one member, so nothing is
/// shared, and nobody waits.
struct Bundle {
  std::vector<Member> members;
  std::size_t local_bytes = 0;  ///< of a work-group
  int buffers = 0;

  std::size_t items() const { return group_items(*members.front().launch); }
  std::size_t groups() const;
};

/// Whether a launch can be a member of a bundle with another one, as far as their kernels decide.
bool may_be_bundled(const Launch& a, const Launch& b);

/// Name of the kernel of a bundle. Its parameters are the bundle's buffers.
inline constexpr const char* kBundleEntry = "bundle";

/// Text of the kernel; its members' macros are in it.
std::string bundle_text(const Bundle& bundle);

}  // namespace clgpu::kernel
