// How the inputs and outputs of a plan travel between the runtime's tensors and the device.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// "host_pointer", "mapped", "copy".
const char* name_of(Road road);

/// Sets the road of every transfer. On CPUs, where only the alignment of the runtime's memory can
/// be wrong, buffers of the road kHostPointer are placed outside of the arena. `is_static`: by
/// buffer, whether its contents never change after loading.
void choose_roads(Plan& plan, const DeviceInfo& device, const PlanOptions& options,
                  const std::vector<bool>& is_static);

/// To be called when buffers have been merged: an input that is written over, or a buffer of
/// several inputs and outputs, cannot be the runtime's memory.
void settle_roads(Plan& plan, const DeviceInfo& device);

/// For each input, then each output: whether a buffer of the application may take the place of the
/// plan's, because no other tensor uses its memory.
std::vector<bool> bindable(const Plan& plan);

/// Why host memory at `data` cannot be a buffer of `bytes` bytes that the device works on in place;
/// empty when it can.
std::string host_pointer_problem(const DeviceInfo& device, const void* data, std::int64_t bytes);

/// The bytes of the cache lines that a buffer at the beginning of one touches.
std::int64_t whole_lines(std::int64_t bytes);

/// The road if kHostPointer is impossible, with the same result: a CPU gains nothing from mapping,
/// other devices save the copy in the driver.
Road second_best(const DeviceInfo& device);

}  // namespace clgpu::plan
