#include "cl/plausible.hpp"

#include <algorithm>

namespace clgpu::cl {
namespace {

constexpr std::uint64_t kKib = 1024, kMib = 1024 * kKib, kGib = 1024 * kMib;

template <class T>
void within(T& value, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  const auto wide = value < T{} ? 0 : static_cast<std::uint64_t>(value);
  if (wide < least || wide > most) value = static_cast<T>(otherwise);
}

}  // namespace

void make_plausible(DeviceInfo& info) {
  // The upper limits are far above those of any device on the market.
  within(info.compute_units, 1, 64 * kKib, 1);
  within(info.max_work_group_size, 1, 64 * kKib, 1);
  for (std::size_t& along : info.max_work_item_sizes)
    within(along, 1, std::uint64_t{1} << 31, info.max_work_group_size);
  within(info.lanes, 1, kKib, 1);
  within(info.vector_width, 1, kKib, 1);
  within(info.local_bytes, 0, kGib, 32 * kKib);
  within(info.global_bytes, kMib, kMib * kGib, 0);
  within(info.max_object_bytes, kKib, kMib * kGib,
         std::max<std::uint64_t>(info.global_bytes / 4, 128 * kMib));
  if (info.global_bytes == 0) info.global_bytes = 4 * info.max_object_bytes;
  info.max_object_bytes = std::min(info.max_object_bytes, info.global_bytes);
  // A sub-buffer cannot begin at a multiple of any other number.
  const std::size_t align = info.base_align_bytes;
  const bool power_of_two = align != 0 && (align & (align - 1)) == 0;
  if (!power_of_two || align > 64 * kKib) info.base_align_bytes = 4 * kKib;
  within(info.image_buffer_texels, 0, kMib * kGib, 64 * kKib);
}

}  // namespace clgpu::cl
