#include "tfl/flex_map.hpp"

#include <cstring>
#include <optional>

#include "base/half.hpp"

namespace clgpu::tfl {
namespace {

// The upper six bits of a packed type; the lower two are the width of what it refers to.
enum Type : unsigned {
  kInt = 1,
  kUInt = 2,
  kFloat = 3,
  kIndirectInt = 6,
  kIndirectUInt = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kBool = 26
};

struct OutOfRange {};

/// Every access is checked; positions count from the first byte.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint64_t number(std::size_t at, std::size_t width) const {
    check(at, width);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{data_[at + i]} << (8 * i);
    return value;
  }
  std::int64_t signed_number(std::size_t at, std::size_t width) const {
    const auto unused = static_cast<unsigned>(64 - 8 * width);
    return static_cast<std::int64_t>(number(at, width) << unused) >> unused;
  }
  double real(std::size_t at, std::size_t width) const {
    check(at, width);
    if (width == 8) return read<double>(at);
    if (width == 4) return static_cast<double>(read<float>(at));
    if (width == 2) return static_cast<double>(half_to_float(read<std::uint16_t>(at)));
    throw OutOfRange{};
  }
  /// Where the offset at a position leads: backwards.
  std::size_t follow(std::size_t at, std::size_t width) const {
    const std::uint64_t offset = number(at, width);
    if (offset > at) throw OutOfRange{};
    return at - static_cast<std::size_t>(offset);
  }
  /// The position `count` elements before another.
  static std::size_t before(std::size_t at, std::size_t count, std::size_t width) {
    if (count * width > at) throw OutOfRange{};
    return at - count * width;
  }
  std::string text(std::size_t at) const {
    check(at, 1);
    const void* end = std::memchr(data_ + at, 0, size_ - at);
    if (end == nullptr) throw OutOfRange{};
    return {reinterpret_cast<const char*>(data_ + at), static_cast<const char*>(end)};
  }
  void check(std::size_t at, std::size_t count) const {
    if (at > size_ || count > size_ - at) throw OutOfRange{};
  }
  std::size_t size() const { return size_; }

 private:
  template <class T>
  T read(std::size_t at) const {
    T value{};
    std::memcpy(&value, data_ + at, sizeof value);
    return value;
  }

  const std::uint8_t* data_;
  std::size_t size_;
};

std::optional<double> value_of(const Bytes& bytes, std::size_t at, std::size_t width,
                               unsigned packed) {
  const std::size_t own = std::size_t{1} << (packed & 3U);
  switch (packed >> 2U) {
    case kInt:
      return static_cast<double>(bytes.signed_number(at, width));
    case kUInt:
    case kBool:
      return static_cast<double>(bytes.number(at, width));
    case kFloat:
      return bytes.real(at, width);
    case kIndirectInt:
      return static_cast<double>(bytes.signed_number(bytes.follow(at, width), own));
    case kIndirectUInt:
      return static_cast<double>(bytes.number(bytes.follow(at, width), own));
    case kIndirectFloat:
      return bytes.real(bytes.follow(at, width), own);
    default:
      return std::nullopt;
  }
}

std::map<std::string, double> read(const Bytes& bytes) {
  // The last bytes: the root, its packed type, its width.
  const std::size_t end = bytes.size();
  bytes.check(0, 3);
  const auto root_width = static_cast<std::size_t>(bytes.number(end - 1, 1));
  const auto packed = static_cast<unsigned>(bytes.number(end - 2, 1));
  if (packed >> 2U != kMap || root_width == 0 || root_width > 8) throw OutOfRange{};
  const std::size_t root = Bytes::before(end - 2, 1, root_width);
  // In front of a map's values: the offset of the keys, their width, the number of entries. Behind
  // them: a packed type for each.
  const std::size_t width = std::size_t{1} << (packed & 3U);
  const std::size_t values = bytes.follow(root, root_width);
  const std::uint64_t count = bytes.number(Bytes::before(values, 1, width), width);
  const std::uint64_t key_width = bytes.number(Bytes::before(values, 2, width), width);
  const std::size_t keys = bytes.follow(Bytes::before(values, 3, width), width);
  if (count > end || key_width == 0 || key_width > 8) throw OutOfRange{};
  bytes.check(values, static_cast<std::size_t>(count) * width);
  std::map<std::string, double> result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto type = static_cast<unsigned>(
        bytes.number(values + static_cast<std::size_t>(count) * width + i, 1));
    const std::size_t key_at = keys + i * static_cast<std::size_t>(key_width);
    const std::size_t key = bytes.follow(key_at, static_cast<std::size_t>(key_width));
    if (const auto value = value_of(bytes, values + i * width, width, type))
      result[bytes.text(key)] = *value;
  }
  return result;
}

}  // namespace

OrRefusal<std::map<std::string, double>> read_flex_map(const std::uint8_t* data, std::size_t size) {
  if (data == nullptr || size == 0) return std::map<std::string, double>{};
  try {
    return read(Bytes(data, size));
  } catch (const OutOfRange&) {
    return Refusal{Why::kMalformed, "the map of attributes", "is damaged"};
  }
}

}  // namespace clgpu::tfl
