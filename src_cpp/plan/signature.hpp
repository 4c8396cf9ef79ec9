// What identifies a choice among candidates, for measurements to be kept under.
#pragma once

#include <string>
#include <vector>

#include "kernel/launch.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// SHA-256, hexadecimal, over everything a measurement depends on but the device: the family, every
/// candidate's name and launches (the assembled kernel texts, macros, arguments, sizes), and which
/// inputs of the node are known at load time. Equal layers share it; a changed kernel, shape, type
/// or list of candidates makes another.
std::string signature(const std::string& family, const std::vector<kernel::Candidate>& candidates,
                      const std::vector<bool>& static_inputs);

/// SHA-256, hexadecimal, over what a candidate is, whatever it computes: family, name, and of each
/// launch the kernel's text, entry and macros.
std::string engine_signature(const std::string& family, const kernel::Candidate& candidate);

/// SHA-256, hexadecimal, over the candidates that a plan has chosen together, for the choices that
/// have a signature.
std::string combination(const Plan& plan);

}  // namespace clgpu::plan
