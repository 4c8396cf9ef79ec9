// Work-groups and images of kernels for the GPUs of phones and small boards.
#pragma once

#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// Work-items that keep such a device busy while others of them wait for memory.
std::int64_t items_to_fill(const DeviceInfo& device);

/// Whether local memory is dedicated, and not a part of the caches or of global memory, as it is on
/// CPUs, Mali and VideoCore.
bool has_local_memory(const DeviceInfo& device);

/// The largest power of two up to `wanted` that is a size of work-groups on the device.
std::int64_t group_within(const DeviceInfo& device, std::int64_t wanted);

/// x * y * z work-items, in work-groups of 64 items along x and y, or fewer if the device's limit
/// is lower. The size is rounded up, so kernels must check their bounds.
void set_mobile_range(kernel::Launch& launch, std::int64_t x, std::int64_t y, std::int64_t z,
                      const DeviceInfo& device);

/// Whether quads of the tensor are read as an image (kernels/common/quads.cl): floats, if the
/// device prefers images and supports them in this size.
bool reads_as_image(const ir::Tensor& tensor, const DeviceInfo& device);

/// The same for `elements` elements of a type.
bool reads_as_image(std::int64_t elements, DType type, const DeviceInfo& device);

/// Values of the macros ..._KIND of kernels/common/quads.cl.
inline const char* kind_of(bool image) { return image ? "image" : "buffer"; }

}  // namespace clgpu::ops
