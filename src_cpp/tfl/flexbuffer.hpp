// Reading the maps that custom operations and composites store as FlexBuffers, checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/refusal.hpp"

namespace clgpu::tfl {

/// A value of a map. Vectors of numbers are read whole, as int64 if all of their elements are
/// integers or bools, else as double. std::monostate is null, or a value of another kind (a map, a
/// blob, a vector of texts), which no operation here has.
using FlexValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                               std::vector<std::int64_t>, std::vector<double>>;

/// A map from names to values, copied out of its bytes.
class FlexMap {
 public:
  /// Refuses bytes that are no map, or that point outside of themselves. No byte outside of
  /// `bytes` is read, whatever they contain. `what` names them in the refusal ("the options").
  static OrRefusal<FlexMap> read(const std::uint8_t* data, std::size_t bytes,
                                 const std::string& what);

  /// Null if there is no such name.
  const FlexValue* find(const std::string& name) const;
  /// The value has the name and is not null.
  bool has(const std::string& name) const;
  /// A number or bool as the type; nullopt if there is none with the name, or it is no number.
  /// Floats are truncated towards zero, and limited to the range of int64.
  std::optional<std::int64_t> integer(const std::string& name) const;
  std::optional<double> number(const std::string& name) const;

  /// All of them, in the order of the bytes, which writers sort by name.
  const std::vector<std::pair<std::string, FlexValue>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, FlexValue>> entries_;
};

}  // namespace clgpu::tfl
