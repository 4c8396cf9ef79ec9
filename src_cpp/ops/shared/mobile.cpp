#include "ops/shared/mobile.hpp"

#include <algorithm>

namespace clgpu::ops {

std::int64_t items_to_fill(const DeviceInfo& device) {
  // A compute unit of Adreno is as large as several of other vendors.
  return std::int64_t{device.is(GpuFamily::kAdreno) ? 1024 : 256} * device.compute_units;
}

bool has_local_memory(const DeviceInfo& device) {
  return !device.is_cpu() && !device.is(GpuFamily::kMali) && !device.is(GpuFamily::kVideoCore);
}

std::int64_t group_within(const DeviceInfo& device, std::int64_t wanted) {
  const auto most = static_cast<std::int64_t>(
      std::min(device.max_work_group_size, device.max_work_item_sizes[0]));
  std::int64_t size = 1;
  while (2 * size <= std::min(wanted, most)) size *= 2;
  return size;
}

void set_mobile_range(kernel::Launch& launch, std::int64_t x, std::int64_t y, std::int64_t z,
                      const DeviceInfo& device) {
  // Work-items next to each other along x read neighbouring channels, those along y the same
  // filters.
  constexpr std::int64_t kItems = 64, kAcross = 16;
  const std::int64_t all = group_within(device, kItems);
  std::int64_t across = 1;
  while (across < std::min(kAcross, all) && across < x) across *= 2;
  launch.range({uz(x), uz(y), uz(z)}, {uz(across), uz(all / across), 1});
}

bool reads_as_image(std::int64_t elements, DType type, const DeviceInfo& device) {
  const bool has_texels = type == DType::kF32 || type == DType::kF16;
  return device.prefers_images() && has_texels && elements % 4 == 0 &&
         static_cast<std::uint64_t>(elements / 4) <= device.image_buffer_texels;
}

bool reads_as_image(const ir::Tensor& tensor, const DeviceInfo& device) {
  return reads_as_image(tensor.shape.elements(), tensor.storage, device);
}

}  // namespace clgpu::ops
