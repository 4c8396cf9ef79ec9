#include "tfl/flexbuffer.hpp"

#include <cmath>
#include <cstring>

namespace clgpu::tfl {
namespace {

// Types of the format: the upper six bits of a type's byte; the lower two give the width of what an
// offset points to, as a power of two.
enum FlexType : int {
  kNull = 0,
  kInt = 1,
  kUInt = 2,
  kFloat = 3,
  kKey = 4,
  kString = 5,
  kIndirectInt = 6,
  kIndirectUInt = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kVector = 10,
  kVectorInt = 11,
  kVectorUInt = 12,
  kVectorFloat = 13,
  kFirstTuple = 16,  // of two, three and four; each as int, uint, float
  kLastTuple = 24,
  kBool = 26,
  kVectorBool = 36,
};

/// Longer ones are damaged: operations have a few parameters.
constexpr std::uint64_t kMostEntries = 4096;

/// Thrown below, caught in FlexMap::read: what is wrong.
struct Damaged {};

/// A value in the bytes: an inline number, or an offset back to where the value lies.
struct Slot {
  std::size_t at;
  std::size_t width;  ///< bytes of the slot
  int type;
  std::size_t child_width;  ///< bytes of the elements of what it points to
};

class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  Slot root() const {
    if (bytes_ < 3) throw Damaged{};
    const std::size_t width = data_[bytes_ - 1];
    if (width != 1 && width != 2 && width != 4 && width != 8) throw Damaged{};
    if (bytes_ < 2 + width) throw Damaged{};
    return slot(bytes_ - 2 - width, width, data_[bytes_ - 2]);
  }

  std::vector<std::pair<std::string, FlexValue>> map(const Slot& slot) const {
    if (slot.type != kMap) throw Damaged{};
    const std::size_t width = slot.child_width;
    const std::size_t values = target(slot.at, slot.width);
    // In front of the values: the keys' position, the width of their offsets, and the count.
    const std::size_t head = before(values, 3 * width);
    const std::size_t keys = target(head, width);
    const std::uint64_t key_width = unsigned_at(head + width, width);
    if (key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8) throw Damaged{};
    const auto key_bytes = static_cast<std::size_t>(key_width);
    const std::size_t count = count_at(values, width);
    if (count_at(keys, key_bytes) != count) throw Damaged{};
    std::vector<std::pair<std::string, FlexValue>> entries;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = text(target(keys + i * key_bytes, key_bytes));
      entries.emplace_back(name, value(element(values, width, count, i)));
    }
    return entries;
  }

 private:
  Slot slot(std::size_t at, std::size_t width, std::uint8_t packed) const {
    check(at, width);
    return {at, width, packed >> 2, std::size_t{1} << (packed & 3U)};
  }

  void check(std::size_t at, std::size_t count) const {
    if (at > bytes_ || count > bytes_ - at) throw Damaged{};
  }
  std::size_t before(std::size_t at, std::size_t count) const {
    if (at < count) throw Damaged{};
    return at - count;
  }

  template <class T>
  T as(std::size_t at) const {
    check(at, sizeof(T));
    T value;
    std::memcpy(&value, data_ + at, sizeof value);
    return value;
  }
  std::uint64_t unsigned_at(std::size_t at, std::size_t width) const {
    switch (width) {
      case 1:
        return as<std::uint8_t>(at);
      case 2:
        return as<std::uint16_t>(at);
      case 4:
        return as<std::uint32_t>(at);
      default:
        return as<std::uint64_t>(at);
    }
  }
  std::int64_t signed_at(std::size_t at, std::size_t width) const {
    switch (width) {
      case 1:
        return as<std::int8_t>(at);
      case 2:
        return as<std::int16_t>(at);
      case 4:
        return as<std::int32_t>(at);
      default:
        return as<std::int64_t>(at);
    }
  }
  double real_at(std::size_t at, std::size_t width) const {
    if (width == 4) return as<float>(at);
    if (width == 8) return as<double>(at);
    throw Damaged{};  // no writer stores half
  }

  /// Where an offset leads.
  std::size_t target(std::size_t at, std::size_t width) const {
    const std::uint64_t offset = unsigned_at(at, width);
    if (offset > at) throw Damaged{};
    return at - static_cast<std::size_t>(offset);
  }

  /// Elements of a vector, which its size precedes.
  std::size_t count_at(std::size_t first, std::size_t width) const {
    const std::uint64_t count = unsigned_at(before(first, width), width);
    if (count > kMostEntries) throw Damaged{};
    check(first, static_cast<std::size_t>(count) * width);
    return static_cast<std::size_t>(count);
  }

  /// Of a vector with a byte of type for each element, behind all of them.
  Slot element(std::size_t first, std::size_t width, std::size_t count, std::size_t i) const {
    return slot(first + i * width, width, as<std::uint8_t>(first + count * width + i));
  }

  /// Up to its zero byte.
  std::string text(std::size_t at) const {
    check(at, 1);
    const void* end = std::memchr(data_ + at, 0, bytes_ - at);
    if (end == nullptr) throw Damaged{};
    return {reinterpret_cast<const char*>(data_ + at), static_cast<const char*>(end)};
  }

  FlexValue number(int type, std::size_t at, std::size_t width) const {
    if (type == kInt) return signed_at(at, width);
    if (type == kFloat) return real_at(at, width);
    // Nobody stores greater ones; as int64 they would be negative.
    const std::uint64_t value = unsigned_at(at, width);
    if (value > INT64_MAX) throw Damaged{};
    return static_cast<std::int64_t>(value);
  }

  /// Numbers of one type, as it is among int, uint and float.
  FlexValue numbers(int type, std::size_t first, std::size_t width, std::size_t count) const {
    check(first, count * width);
    if (type == kFloat) {
      std::vector<double> values;
      for (std::size_t i = 0; i < count; ++i) values.push_back(real_at(first + i * width, width));
      return values;
    }
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(std::get<std::int64_t>(number(type, first + i * width, width)));
    return values;
  }

  /// A vector whose elements have types of their own: numbers, or a null value.
  FlexValue untyped(std::size_t first, std::size_t width) const {
    const std::size_t count = count_at(first, width);
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    bool any_real = false;
    for (std::size_t i = 0; i < count; ++i) {
      const Slot slot = element(first, width, count, i);
      const bool is_number = slot.type == kInt || slot.type == kUInt || slot.type == kFloat ||
                             slot.type == kBool || (slot.type >= kIndirectInt && slot.type < kMap);
      if (!is_number) return {};
      const FlexValue one = value(slot);
      if (const auto* real = std::get_if<double>(&one)) {
        any_real = true;
        reals.push_back(*real);
        continue;
      }
      const auto* flag = std::get_if<bool>(&one);
      const std::int64_t whole = flag != nullptr ? *flag : std::get<std::int64_t>(one);
      integers.push_back(whole);
      reals.push_back(static_cast<double>(whole));
    }
    if (any_real) return reals;
    return integers;
  }

  FlexValue value(const Slot& slot) const {
    const int type = slot.type;
    const std::size_t width = slot.child_width;
    if (type == kInt || type == kUInt || type == kFloat) return number(type, slot.at, slot.width);
    if (type == kBool) return unsigned_at(slot.at, slot.width) != 0;
    if (type == kNull) return {};
    const std::size_t at = target(slot.at, slot.width);
    if (type >= kIndirectInt && type <= kIndirectFloat)
      return number(type - kIndirectInt + kInt, at, width);
    if (type == kKey) return text(at);
    if (type == kString) {
      const std::uint64_t length = unsigned_at(before(at, width), width);
      check(at, length > bytes_ ? bytes_ + 1 : static_cast<std::size_t>(length));
      return std::string(reinterpret_cast<const char*>(data_ + at),
                         static_cast<std::size_t>(length));
    }
    if (type == kVector) return untyped(at, width);
    if (type >= kVectorInt && type <= kVectorFloat)
      return numbers(type - kVectorInt + kInt, at, width, count_at(at, width));
    if (type == kVectorBool) return numbers(kUInt, at, width, count_at(at, width));
    if (type >= kFirstTuple && type <= kLastTuple) {
      const int of = type - kFirstTuple;
      return numbers(of % 3 + kInt, at, width, static_cast<std::size_t>(of / 3 + 2));
    }
    return {};
  }

  const std::uint8_t* data_;
  std::size_t bytes_;
};

}  // namespace

OrRefusal<FlexMap> FlexMap::read(const std::uint8_t* data, std::size_t bytes,
                                 const std::string& what) {
  FlexMap map;
  try {
    if (data == nullptr) throw Damaged{};
    const Reader reader(data, bytes);
    map.entries_ = reader.map(reader.root());
  } catch (const Damaged&) {
    return Refusal{Why::kMalformed, what, "are not a FlexBuffers map"};
  }
  return map;
}

const FlexValue* FlexMap::find(const std::string& name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool FlexMap::has(const std::string& name) const {
  const FlexValue* value = find(name);
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

std::optional<std::int64_t> FlexMap::integer(const std::string& name) const {
  const FlexValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return *whole;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  const auto* real = std::get_if<double>(value);
  if (real == nullptr || std::isnan(*real)) return std::nullopt;
  if (*real >= 0x1p63) return INT64_MAX;
  if (*real < -0x1p63) return INT64_MIN;
  return static_cast<std::int64_t>(*real);
}

std::optional<double> FlexMap::number(const std::string& name) const {
  const FlexValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto whole = integer(name)) return static_cast<double>(*whole);
  return std::nullopt;
}

}  // namespace clgpu::tfl
