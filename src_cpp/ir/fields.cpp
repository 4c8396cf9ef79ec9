#include "ir/fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <utility>

#include "base/join.hpp"

namespace clgpu::ir {
namespace {

const char* name_of(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kList:
      return "a list, [ITEM, ...]";
    case Value::Kind::kRecord:
      return "fields, {NAME=VALUE, ...}";
    case Value::Kind::kNode:
      return "a node, <%1 = FAMILY(%0)>";
    case Value::Kind::kScalar:
      break;
  }
  return "a number or a word";
}

std::string shown(const Value& value) {
  return value.kind == Value::Kind::kScalar ? "'" + value.text + "'" : name_of(value.kind);
}

[[noreturn]] void refuse(const Value& value, const std::string& expected) {
  throw TextError(value.place, "expected " + expected + ", found " + shown(value));
}

Value scalar(std::string text) {
  Value value;
  value.text = std::move(text);
  return value;
}

void expect(const Value& value, Value::Kind kind) {
  if (value.kind != kind) refuse(value, name_of(kind));
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : list) {
    if (c == ',') words.push_back(std::exchange(word, {}));
    if (c != ',' && c != ' ' && c != '\n') word += c;
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

std::optional<float> parsed(const std::string& text) {
  if (text == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<float>::infinity();
  if (text == "-inf") return -std::numeric_limits<float>::infinity();
  if (text.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  // Read as double, which can also represent the smallest floats: some libraries report these as an
  // error.
  double number = 0;
  if (!(in >> number) || in.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  // A number that is rounded to the largest float exceeds it by less than half of its last place.
  constexpr double kMost = std::numeric_limits<float>::max();
  constexpr double kHalfPlace = 0x1p103;
  if (std::fabs(number) >= kMost + kHalfPlace) return std::nullopt;
  if (std::fabs(number) > kMost) number = std::copysign(kMost, number);
  return static_cast<float>(number);
}

// The record that is visited, and the position in it.
struct Visited {
  Visited(const Visitor::Record& visited, const Value* read)
      : record(visited), names(split(visited.names)), value(read) {}
  std::vector<std::string> words() const {
    if (record.words == nullptr || next == 0) return {};
    return split(record.words(names.at(next - 1)));
  }
  Visitor::Record record;
  std::vector<std::string> names;
  const Value* value;    // when reading
  std::size_t next = 0;  // member
};

// Turns the visited members into a value.
class ToValue : public Visitor {
 public:
  explicit ToValue(bool keeps_defaults) : keeps_defaults_(keeps_defaults) {}

  Value value() { return std::move(done_); }

  void begin(const Record& record) override {
    records_.emplace_back(record, nullptr);
    Value value;
    value.kind = Value::Kind::kRecord;
    open_.push_back(std::move(value));
  }
  bool next() override {
    Visited& record = records_.back();
    open_.back().names.push_back(record.names.at(record.next++));
    return true;
  }
  void end() override {
    if (!keeps_defaults_ || records_.size() > 1) {
      ToValue visitor(true);
      records_.back().record.visit_default(visitor);
      drop_defaults(open_.back(), visitor.value());
    }
    records_.pop_back();
    close();
  }

  void visit(bool& value) override { add(scalar(value ? "true" : "false")); }
  void visit(int& value) override { add(scalar(word_of(value, words()))); }
  void visit(std::int64_t& value) override { add(scalar(word_of(value, words()))); }
  void visit(float& value) override { add(scalar(text_of(value))); }
  void visit(Node& value) override {
    Value made;
    made.kind = Value::Kind::kNode;
    if (value.kind != nullptr) made.node = std::make_shared<const Node>(value);
    add(std::move(made));
  }
  bool optional(bool is_there) override {
    if (!is_there) add(scalar("none"));
    return is_there;
  }
  std::size_t begin_list(std::size_t size) override {
    Value value;
    value.kind = Value::Kind::kList;
    open_.push_back(std::move(value));
    return size;
  }
  void end_list() override { close(); }

 private:
  std::vector<std::string> words() const {
    return records_.empty() ? std::vector<std::string>{} : records_.back().words();
  }
  void add(Value value) {
    if (open_.empty()) {
      done_ = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
  }
  void close() {
    Value value = std::move(open_.back());
    open_.pop_back();
    add(std::move(value));
  }
  static void drop_defaults(Value& record, const Value& usual) {
    Value kept;
    for (std::size_t i = 0; i < record.items.size(); ++i) {
      if (record.items[i] == usual.items.at(i)) continue;
      kept.items.push_back(std::move(record.items[i]));
      kept.names.push_back(std::move(record.names[i]));
    }
    record.items = std::move(kept.items);
    record.names = std::move(kept.names);
  }

  const bool keeps_defaults_;  // of the outermost record
  std::vector<Visited> records_;
  std::vector<Value> open_;  // records and lists that are being filled
  Value done_;
};

// Sets the visited members from a value.
class FromValue : public Visitor {
 public:
  explicit FromValue(const Value& value) : value_(&value) {}

  void begin(const Record& record) override {
    expect(*value_, Value::Kind::kRecord);
    records_.emplace_back(record, value_);
    expect_names(*value_, records_.back().names);
  }
  bool next() override {
    Visited& record = records_.back();
    const std::string& name = record.names.at(record.next++);
    const auto found = std::find(record.value->names.begin(), record.value->names.end(), name);
    if (found == record.value->names.end()) return false;
    value_ = &record.value->items[uz(found - record.value->names.begin())];
    return true;
  }
  void end() override {
    value_ = records_.back().value;
    records_.pop_back();
    to_next_item();
  }

  void visit(bool& value) override {
    if (value_->kind != Value::Kind::kScalar || (value_->text != "true" && value_->text != "false"))
      refuse(*value_, "true or false");
    value = value_->text == "true";
    to_next_item();
  }
  void visit(int& value) override {
    value = static_cast<int>(integer(INT32_MIN, INT32_MAX));
    to_next_item();
  }
  void visit(std::int64_t& value) override {
    value = integer(INT64_MIN, INT64_MAX);
    to_next_item();
  }
  void visit(float& value) override {
    value = number_of(*value_);
    to_next_item();
  }
  void visit(Node& value) override {
    expect(*value_, Value::Kind::kNode);
    value = *value_->node;
    to_next_item();
  }
  bool optional(bool) override {
    const bool is_there = value_->kind != Value::Kind::kScalar || value_->text != "none";
    if (!is_there) to_next_item();
    return is_there;
  }
  std::size_t begin_list(std::size_t) override {
    expect(*value_, Value::Kind::kList);
    lists_.push_back({value_, 0, records_.size()});
    if (!value_->items.empty()) value_ = value_->items.data();
    return lists_.back().list->items.size();
  }
  void end_list() override {
    value_ = lists_.back().list;
    lists_.pop_back();
    to_next_item();
  }

 private:
  struct Listed {
    const Value* list;
    std::size_t item;
    std::size_t depth;  // records that were open when it began
  };
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const std::vector<std::string> words = records_.back().words();
    if (words.empty()) return integer_of(*value_, least, most);
    return integer_of(*value_, 0, static_cast<std::int64_t>(words.size()) - 1, words);
  }
  // After an item of a list.
  void to_next_item() {
    if (lists_.empty() || lists_.back().depth != records_.size()) return;
    Listed& list = lists_.back();
    if (++list.item < list.list->items.size()) value_ = &list.list->items[list.item];
  }

  const Value* value_;  // that is visited next
  std::vector<Visited> records_;
  std::vector<Listed> lists_;
};

}  // namespace

std::optional<Value> value_of(const AttrsType& type, const Attrs& attrs) {
  if (!type.is(attrs)) return std::nullopt;
  ToValue visitor(false);
  type.visit(const_cast<Attrs&>(attrs), visitor);  // which only reads them
  return visitor.value();
}

AttrsPtr attrs_of(const AttrsType& type, const Value& record) {
  const std::shared_ptr<Attrs> attrs(type.make());
  FromValue visitor(record);
  type.visit(*attrs, visitor);
  return attrs;
}

bool Value::operator==(const Value& other) const {
  return kind == other.kind && text == other.text && names == other.names && node == other.node &&
         items == other.items;
}

std::string text_of(float number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  constexpr float kManyDigits = 1e6F;  // whose exponent is shorter
  if (number != 0 && std::fabs(number) < kManyDigits && number == std::trunc(number))
    return std::to_string(static_cast<std::int64_t>(number));
  std::ostringstream out;
  out.imbue(std::locale::classic());
  for (int digits = 1; digits < std::numeric_limits<float>::max_digits10; ++digits) {
    out.str({});
    out.precision(digits);
    out << number;
    if (parsed(out.str()) == number) return out.str();
  }
  out.str({});
  out.precision(std::numeric_limits<float>::max_digits10);
  out << number;
  return out.str();
}

std::int64_t integer_of(const Value& value, std::int64_t least, std::int64_t most,
                        const std::vector<std::string>& words) {
  if (value.kind == Value::Kind::kScalar) {
    const auto word = std::find(words.begin(), words.end(), value.text);
    if (!value.text.empty() && word != words.end()) return word - words.begin();
    std::int64_t number = 0;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, problem] = std::from_chars(value.text.data(), end, number);
    if (problem == std::errc{} && stop == end && number >= least && number <= most) return number;
  }
  std::vector<std::string> allowed;
  for (const std::string& word : words)
    if (!word.empty()) allowed.push_back(word);
  refuse(value, "an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                    (allowed.empty() ? "" : " or one of " + join(allowed)));
}

float number_of(const Value& value) {
  const auto number =
      value.kind == Value::Kind::kScalar ? parsed(value.text) : std::optional<float>();
  if (!number) refuse(value, "a number, inf, -inf or nan");
  return *number;
}

std::string word_of(std::int64_t number, const std::vector<std::string>& words) {
  if (number >= 0 && number < static_cast<std::int64_t>(words.size()) && !words[uz(number)].empty())
    return words[uz(number)];
  return std::to_string(number);
}

void expect_names(const Value& record, const std::vector<std::string>& allowed) {
  for (std::size_t i = 0; i < record.names.size(); ++i) {
    const std::string& name = record.names[i];
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      throw TextError(record.items[i].place,
                      "there is no field '" + name + "'; allowed: " + join(allowed));
    }
    if (std::find(record.names.begin(), record.names.begin() + static_cast<std::ptrdiff_t>(i),
                  name) != record.names.begin() + static_cast<std::ptrdiff_t>(i))
      throw TextError(record.items[i].place, "the field '" + name + "' is given twice");
  }
}

}  // namespace clgpu::ir
