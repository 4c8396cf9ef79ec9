// The attributes of a node as values with names, for the graph's text. A family's struct names its
// members once, with CLGPU_FIELDS; everything else is derived from that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "ir/node.hpp"

/// For a struct whose members are exactly the arguments; members of a base come first. For members
/// that hold codes, a function `static const char* words(std::string_view member)` returns the
/// words for the codes from 0 on, as "add, sub, mul", and "" for members that hold numbers.
#define CLGPU_FIELDS(...)                                   \
  static const char* field_names() { return #__VA_ARGS__; } \
  void visit_fields(::clgpu::ir::Visitor& visitor) {        \
    ::clgpu::ir::visit_each(visitor, __VA_ARGS__);          \
  }

namespace clgpu::ir {

/// A place in a text, counted from 1.
struct TextPlace {
  int line = 1, column = 1;
};

/// A text that is not a valid graph: "line 3, column 7: ...".
class TextError : public Error {
 public:
  TextError(TextPlace place, const std::string& problem)
      : Error("line " + std::to_string(place.line) + ", column " + std::to_string(place.column) +
              ": " + problem) {}
};

/// The value of a member.
struct Value {
  enum class Kind {
    kScalar,  ///< text: a number or a word
    kList,    ///< items
    kRecord,  ///< items, and a name for each
    kNode,
  };
  Kind kind = Kind::kScalar;
  std::string text;
  std::vector<Value> items;
  std::vector<std::string> names;
  std::shared_ptr<const Node> node;
  TextPlace place;  ///< where it was read

  bool operator==(const Value& other) const;
};

/// Visits the members of a struct, and reads or sets them.
class Visitor {
 public:
  virtual ~Visitor() = default;

  struct Record {
    const char* names;                       ///< "a, b"
    const char* (*words)(std::string_view);  ///< null: none
    void (*visit_default)(Visitor&);         ///< visits one with the default values of its members
  };
  virtual void begin(const Record& record) = 0;  ///< its members follow
  virtual bool next() = 0;                       ///< one of them; whether its value follows
  virtual void end() = 0;

  // Values.
  virtual void visit(bool& value) = 0;
  virtual void visit(int& value) = 0;
  virtual void visit(std::int64_t& value) = 0;
  virtual void visit(float& value) = 0;
  virtual void visit(Node& value) = 0;
  /// A value or none; true: it follows.
  virtual bool optional(bool is_there) = 0;
  /// A list of this many values; the result: how many follow.
  virtual std::size_t begin_list(std::size_t size) = 0;
  virtual void end_list() = 0;
};

template <class T>
void visit_value(Visitor& visitor, T& value);
template <class T>
void visit_value(Visitor& visitor, std::optional<T>& value) {
  if (!visitor.optional(value.has_value())) return;
  if (!value) value.emplace();
  visit_value(visitor, *value);
}
template <class T>
void visit_value(Visitor& visitor, std::vector<T>& list) {
  const std::size_t size = visitor.begin_list(list.size());
  if (size != list.size()) list.resize(size);
  for (T& item : list) visit_value(visitor, item);
  visitor.end_list();
}

template <class T, class = void>
struct HasWords : std::false_type {};
template <class T>
struct HasWords<T, std::void_t<decltype(T::words(std::string_view{}))>> : std::true_type {};

template <class T>
void visit_record(Visitor& visitor, T& object) {
  Visitor::Record record{T::field_names(), nullptr, [](Visitor& other) {
                           T standard{};
                           visit_record(other, standard);
                         }};
  if constexpr (HasWords<T>::value) record.words = &T::words;
  visitor.begin(record);
  object.visit_fields(visitor);
  visitor.end();
}

template <class T>
void visit_value(Visitor& visitor, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const int before = static_cast<int>(value);
    int code = before;
    visitor.visit(code);
    // Readers leave the member unchanged: other threads may read it, too.
    if (code != before) value = static_cast<T>(code);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Node>) {
    visitor.visit(value);
  } else {
    visit_record(visitor, value);
  }
}

template <class... Members>
void visit_each(Visitor& visitor, Members&... members) {
  ((visitor.next() ? visit_value(visitor, members) : void(0)), ...);
}

/// The attributes of a kind of node: a struct with CLGPU_FIELDS.
struct AttrsType {
  bool (*is)(const Attrs& attrs);
  Attrs* (*make)();
  void (*visit)(Attrs& attrs, Visitor& visitor);
};

/// For OpKind::attrs.
template <class T>
const AttrsType* attrs_type() {
  static constexpr AttrsType type{
      [](const Attrs& attrs) { return typeid(attrs) == typeid(T); },
      []() -> Attrs* { return new T; },
      [](Attrs& attrs, Visitor& visitor) { visit_record(visitor, static_cast<T&>(attrs)); }};
  return &type;
}

/// A record of the members that differ from their default; nothing if the attributes are of another
/// type.
std::optional<Value> value_of(const AttrsType& type, const Attrs& attrs);
/// The reverse. Throws TextError.
AttrsPtr attrs_of(const AttrsType& type, const Value& record);

/// The shortest decimal number that is read as this one; "nan", "inf", "-inf".
std::string text_of(float number);

// A number from a scalar; a word from a list gives its index. They throw TextError.
std::int64_t integer_of(const Value& value, std::int64_t least, std::int64_t most,
                        const std::vector<std::string>& words = {});
float number_of(const Value& value);
/// The word of a number, otherwise its digits.
std::string word_of(std::int64_t number, const std::vector<std::string>& words);

/// Throws TextError if a record has an unknown member, or has one twice.
void expect_names(const Value& record, const std::vector<std::string>& allowed);

}  // namespace clgpu::ir
