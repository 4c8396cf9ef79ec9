// Lists as text: "a, b, c".
#pragma once

#include <string>

namespace clgpu {

/// Adds an item to a list that is written with this separator.
inline void append_item(std::string& list, const std::string& item, const char* separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

/// `text_of(item)` of each item.
template <class Items, class TextOf>
std::string join(const Items& items, const char* separator, TextOf text_of) {
  std::string list;
  for (const auto& item : items) append_item(list, text_of(item), separator);
  return list;
}

/// The items themselves, which are strings.
template <class Items>
std::string join(const Items& items, const char* separator = ", ") {
  return join(items, separator, [](const auto& item) { return item; });
}

}  // namespace clgpu
