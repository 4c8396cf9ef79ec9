#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/join.hpp"
#include "ir/fields.hpp"
#include "ir/text.hpp"
#include "ir/verify.hpp"

namespace clgpu::ir {
namespace {

constexpr int kMostTensors = 1'000'000;
constexpr std::int64_t kMostElements = 1 << 28;  // of a constant
constexpr int kDeepest = 8;                      // depth of nested values, and of nested graphs

constexpr DType kTypes[] = {DType::kF32, DType::kF16,  DType::kI64, DType::kI32,
                            DType::kI16, DType::kI8,   DType::kU8,  DType::kBool,
                            DType::kC64, DType::kBF16, DType::kU16, DType::kU32};

bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == '+' || c == '-';
}

// Names with a number each: "allowed" in an error, and the meaning of the word.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

class Reader {
 public:
  Reader(std::string_view text, const std::vector<const OpKind*>& kinds) : text_(text) {
    for (const OpKind* kind : kinds) kinds_.emplace_back(name_of(*kind), kind);
    for (const DType type : kTypes) types_.emplace_back(name_of(type), type);
    for (const std::string& word : activation_words())
      activations_.emplace_back(word, static_cast<Activation>(activations_.size()));
  }

  /// `depth`: of a graph that a node runs; it ends at a }.
  Graph graph(int depth = 0) {
    depth_ = depth;
    while (true) {
      skip_blanks();
      if (depth > 0 && accept('}')) break;
      if (is_at_end() && depth > 0) refuse("'}' at the end of a graph");
      if (is_at_end()) break;
      if (!accept('\n')) statement();
    }
    for (const auto& [id, place] : mentioned_) {
      if (!is_described(id))
        throw TextError(place, "the tensor " + id_text(id) + " is not described; expected %" +
                                   std::to_string(id) +
                                   ": TYPE[SHAPE] in front, or where a node writes it");
    }
    if (const std::string problem = problem_of(graph_); !problem.empty())
      throw TextError(place(), problem);
    return std::move(graph_);
  }

 private:
  // Characters.

  bool is_at_end() const { return at_ == text_.size(); }
  char next() const { return is_at_end() ? '\n' : text_[at_]; }
  TextPlace place() {
    if (at_ < counted_) counted_ = line_start_ = 0, line_ = 1;
    for (; counted_ < at_; ++counted_) {
      if (text_[counted_] != '\n') continue;
      ++line_;
      line_start_ = counted_ + 1;
    }
    return {line_, static_cast<int>(at_ - line_start_) + 1};
  }
  // Spaces and comments, not the end of a line.
  void skip_blanks() {
    while (!is_at_end() && (next() == ' ' || next() == '\t' || next() == '\r')) ++at_;
    if (!is_at_end() && next() == '#')
      while (!is_at_end() && next() != '\n') ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (is_at_end() || next() != c) return false;
    ++at_;
    return true;
  }
  std::string found() const {
    if (is_at_end()) return "the end of the text";
    if (next() == '\n') return "the end of the line";
    std::size_t end = at_;
    while (end < text_.size() && is_of_word(text_[end])) ++end;
    return "'" + std::string(text_.substr(at_, std::max(end - at_, std::size_t{1}))) + "'";
  }
  [[noreturn]] void refuse(const std::string& expected) {
    throw TextError(place(), "expected " + expected + ", found " + found());
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("'") + c + "'");
  }

  // Words and numbers.

  std::string word(const std::string& expected) {
    skip_blanks();
    std::size_t end = at_;
    while (end < text_.size() && is_of_word(text_[end])) ++end;
    if (end == at_) refuse(expected);
    const std::string result(text_.substr(at_, end - at_));
    at_ = end;
    return result;
  }
  template <class T>
  T choice(const Choices<T>& choices, const std::string& what) {
    skip_blanks();
    const std::size_t start = at_;
    const std::string allowed =
        join(choices, ", ", [](const auto& choice) { return choice.first; });
    const std::string name = word(what + ": " + allowed);
    for (const auto& [allowed_name, value] : choices)
      if (allowed_name == name) return value;
    at_ = start;
    refuse(what + ": " + allowed);
  }
  Value scalar(const std::string& expected = "a number") {
    skip_blanks();
    Value value;
    value.place = place();
    value.text = word(expected);
    return value;
  }
  std::int64_t integer(std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX) {
    return integer_of(scalar("an integer"), least, most);
  }
  int small(int least = INT32_MIN) { return static_cast<int>(integer(least, INT32_MAX)); }

  // "...", with \", \\ and \xNN.
  std::string string() {
    expect('"');
    std::string bytes;
    while (true) {
      if (is_at_end() || next() == '\n') refuse("'\"' at the end of a string");
      const char c = text_[at_++];
      if (c == '"') return bytes;
      if (c != '\\') {
        bytes += c;
      } else if (next() == 'x') {
        ++at_;
        bytes += byte();
      } else if (next() == '"' || next() == '\\') {
        bytes += text_[at_++];
      } else {
        refuse("\\\", \\\\ or \\xNN");
      }
    }
  }
  std::string word_or_string(const std::string& expected) {
    skip_blanks();
    return next() == '"' ? string() : word(expected);
  }
  // Two hexadecimal digits.
  char byte() {
    int value = 0;
    for (int i = 0; i < 2; ++i) {
      const char c = next();
      const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
      if (!digit && !letter) refuse("two digits of 0 to 9 and a to f for each byte");
      value = value * 16 + (digit ? c - '0' : c - 'a' + 10);
      ++at_;
    }
    return static_cast<char>(value);
  }
  // The rest of hex(...).
  std::string bytes() {
    expect('(');
    std::string result;
    while (!accept(')')) result += byte();
    return result;
  }
  template <class Item>
  void list(char end, Item item) {
    if (accept(end)) return;
    do item();
    while (accept(','));
    if (!accept(end)) refuse(std::string("',' or '") + end + "'");
  }

  // Tensors.

  static std::string id_text(int id) { return "%" + std::to_string(id); }
  bool is_described(int id) const { return uz(id) < described_.size() && described_[uz(id)]; }

  // %N, or - if the operand may be absent; for a node within a node it need not exist.
  int id(bool may_lack, bool exists = true) {
    skip_blanks();
    const TextPlace where = place();
    if (may_lack && accept('-')) return -1;
    if (!accept('%')) refuse(may_lack ? "a tensor, %NUMBER, or -" : "a tensor, %NUMBER");
    const int number = static_cast<int>(integer(0, kMostTensors - 1));
    if (exists) mentioned_.emplace(number, where);
    return number;
  }
  Tensor& make_tensor(int id) {
    if (graph_.tensors.size() <= uz(id)) graph_.tensors.resize(uz(id) + 1);
    if (described_.size() <= uz(id)) described_.resize(uz(id) + 1, false);
    return graph_.tensors[uz(id)];
  }

  // %N, followed by ": ..." at its first occurrence.
  int described() {
    skip_blanks();
    const TextPlace where = place();
    const int number = id(false);
    if (!accept(':')) return number;
    if (is_described(number))
      throw TextError(where, "the tensor " + id_text(number) + " is described twice");
    make_tensor(number) = tensor();
    described_[uz(number)] = true;
    return number;
  }

  Tensor tensor() {
    Tensor tensor;
    tensor.dtype = tensor.storage = choice(types_, "a type");
    std::vector<int> dims;
    expect('[');
    list(']', [&] { dims.push_back(small()); });
    tensor.shape = Shape(std::move(dims));
    tensor.model_rank = tensor.shape.rank();
    while (true) {
      skip_blanks();
      if (next() == '"') {
        tensor.name = string();
        continue;
      }
      if (!is_of_word(next())) return tensor;
      enum class Fact {
        kId,
        kState,
        kCarried,
        kLargest,
        kFed,
        kKept,
        kRank,
        kStorage,
        kQuantized,
        kPart
      };
      switch (choice<Fact>({{"tflite", Fact::kId},
                            {"state", Fact::kState},
                            {"carried", Fact::kCarried},
                            {"largest_of", Fact::kLargest},
                            {"fed", Fact::kFed},
                            {"kept", Fact::kKept},
                            {"rank", Fact::kRank},
                            {"storage", Fact::kStorage},
                            {"quantized", Fact::kQuantized},
                            {"part", Fact::kPart}},
                           "\"NAME\" or a fact of the tensor")) {
        case Fact::kId:
          expect('=');
          tensor.tflite_id = small(0);
          break;
        case Fact::kState:
          expect('=');
          tensor.state = small(0);
          break;
        case Fact::kCarried:
          expect('=');
          tensor.carried = small(0);
          break;
        case Fact::kLargest:
          expect('=');
          tensor.largest_of = small(0);
          break;
        case Fact::kFed:
          tensor.is_fed = true;
          break;
        case Fact::kKept:
          tensor.is_kept = true;
          break;
        case Fact::kRank:
          expect('=');
          tensor.model_rank = small(0);
          break;
        case Fact::kStorage:
          expect('=');
          tensor.storage = choice(types_, "a type");
          break;
        case Fact::kQuantized:
          tensor.quantization = quantization();
          break;
        case Fact::kPart:
          tensor.placement = placement();
          break;
      }
    }
  }

  void named(const char* name) {
    choice<bool>({{name, true}}, "a field");
    expect('=');
  }

  Placement placement() {
    Placement placement;
    expect('(');
    placement.whole = id(false);
    expect(',');
    named("pitch");
    placement.pitch = integer();
    expect(',');
    named("first");
    placement.first = integer();
    expect(')');
    return placement;
  }

  // The rest of quantized(...).
  std::shared_ptr<const Quantization> quantization() {
    auto q = std::make_shared<Quantization>();
    const auto zero = [&] { return static_cast<std::int32_t>(integer(INT32_MIN, INT32_MAX)); };
    expect('(');
    if (accept('[')) {
      list(']', [&] { q->scales.push_back(number_of(scalar())); });
    } else {
      q->scales.push_back(number_of(scalar("a scale, or [SCALE, ...]")));
    }
    expect(',');
    if (accept('[')) {
      list(']', [&] { q->zero_points.push_back(zero()); });
    } else {
      q->zero_points.assign(q->scales.size(), zero());
    }
    enum class Part { kAxis, kBlock, kNarrow };
    while (accept(',')) {
      const auto part = choice<Part>(
          {{"axis", Part::kAxis}, {"block", Part::kBlock}, {"narrow", Part::kNarrow}}, "a part");
      expect('=');
      if (part == Part::kAxis) q->axis = small();
      if (part == Part::kBlock) q->block = small();
      if (part == Part::kNarrow) q->narrow = choice<bool>({{"true", true}}, "true");
    }
    expect(')');
    return q;
  }

  // Constants.

  static void append(std::vector<std::uint8_t>& bytes, const void* data, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  template <class T>
  void append_integer(std::vector<std::uint8_t>& bytes) {
    constexpr auto least = static_cast<std::int64_t>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<std::int64_t>(std::numeric_limits<T>::max());
    const auto value = static_cast<T>(integer(least, most));
    append(bytes, &value, sizeof value);
  }
  void append_element(std::vector<std::uint8_t>& bytes, DType type) {
    switch (type) {
      case DType::kF32: {
        const float value = number_of(scalar());
        return append(bytes, &value, sizeof value);
      }
      case DType::kF16: {
        const std::uint16_t value = float_to_half(number_of(scalar()));
        return append(bytes, &value, sizeof value);
      }
      case DType::kBF16: {
        const std::uint16_t value = float_to_bfloat(number_of(scalar()));
        return append(bytes, &value, sizeof value);
      }
      case DType::kI64:
      case DType::kC64:  // its bits
        return append_integer<std::int64_t>(bytes);
      case DType::kI32:
        return append_integer<std::int32_t>(bytes);
      case DType::kU32:
        return append_integer<std::uint32_t>(bytes);
      case DType::kI16:
        return append_integer<std::int16_t>(bytes);
      case DType::kU16:
        return append_integer<std::uint16_t>(bytes);
      case DType::kI8:
        return append_integer<std::int8_t>(bytes);
      case DType::kU8:
      case DType::kBool:
        return append_integer<std::uint8_t>(bytes);
    }
  }

  std::shared_ptr<const Constant> constant(const Tensor& tensor) {
    auto content = std::make_shared<std::vector<std::uint8_t>>();
    Constant constant;
    constant.dtype = tensor.dtype;
    for (const auto& [name, type] : types_) {
      skip_blanks();
      if (text_.substr(at_, name.size() + 1) != name + " ") continue;
      at_ += name.size();
      constant.dtype = type;
      break;
    }
    if (accept('[')) {
      list(']', [&] { append_element(*content, constant.dtype); });
    } else {
      skip_blanks();
      const TextPlace where = place();
      enum class Form { kSplat, kHex, kOmitted };
      switch (
          choice<Form>({{"splat", Form::kSplat}, {"hex", Form::kHex}, {"omitted", Form::kOmitted}},
                       "[VALUE, ...] or a form of constants")) {
        case Form::kSplat: {
          expect('(');
          append_element(*content, constant.dtype);
          const std::int64_t count =
              accept(',') ? integer(0, kMostElements) : tensor.shape.elements();
          if (count < 0 || count > kMostElements)
            throw TextError(where, "a constant of " + std::to_string(count) +
                                       " elements; allowed: at most " +
                                       std::to_string(kMostElements));
          expect(')');
          const std::vector<std::uint8_t> first = std::move(*content);
          content->clear();
          content->reserve(first.size() * uz(count));
          for (std::int64_t i = 0; i < count; ++i)
            content->insert(content->end(), first.begin(), first.end());
          break;
        }
        case Form::kHex: {
          const std::string all = bytes();
          content->assign(all.begin(), all.end());
          break;
        }
        case Form::kOmitted:
          throw TextError(where,
                          "this text was written without the bytes of long constants, so it cannot "
                          "be read; allowed: [VALUE, ...], splat(VALUE, COUNT), hex(BYTES)");
      }
    }
    constant.data = content->data();
    constant.bytes = content->size();
    constant.owner = std::move(content);
    return std::make_shared<const Constant>(std::move(constant));
  }

  // Nodes.

  Value value(int depth = 0) {
    if (depth > kDeepest) refuse("at most " + std::to_string(kDeepest) + " values within values");
    skip_blanks();
    Value value;
    value.place = place();
    if (accept('[')) {
      value.kind = Value::Kind::kList;
      list(']', [&] { value.items.push_back(this->value(depth + 1)); });
    } else if (accept('{')) {
      value.kind = Value::Kind::kRecord;
      list('}', [&] {
        value.names.push_back(word("the name of a field"));
        expect('=');
        value.items.push_back(this->value(depth + 1));
      });
    } else if (accept('<')) {
      value.kind = Value::Kind::kNode;
      Node node;
      do node.outputs.push_back(id(false, false));
      while (accept(','));
      expect('=');
      call(node, false, depth + 1);
      value.node = std::make_shared<const Node>(std::move(node));
      expect('>');
    } else {
      value.text = word("a value: a number, a word, [..], {..} or <a node>");
    }
    return value;
  }

  Activation activation() { return choice(activations_, "an activation"); }

  std::shared_ptr<const Tail> tail() {
    auto tail = std::make_shared<Tail>();
    enum class Fact { kOwn, kTable, kLookedUp, kSum, kActivation };
    const auto quantized = [&] {
      choice<bool>({{"quantized", true}}, "a quantization");
      return quantization();
    };
    expect('(');
    list(')', [&] {
      const Fact fact = choice<Fact>({{"own", Fact::kOwn},
                                      {"table", Fact::kTable},
                                      {"looked_up", Fact::kLookedUp},
                                      {"sum", Fact::kSum},
                                      {"sum_activation", Fact::kActivation}},
                                     "a fact of a tail");
      expect('=');
      switch (fact) {
        case Fact::kOwn:
          tail->own = quantized();
          break;
        case Fact::kTable: {
          constexpr std::size_t kTable = 256;
          choice<bool>({{"hex", true}}, "a table");
          const TextPlace where = place();
          const std::string table = bytes();
          if (table.size() != kTable)
            throw TextError(where, "a table of " + std::to_string(table.size()) +
                                       " bytes; allowed: " + std::to_string(kTable));
          tail->table.assign(table.begin(), table.end());
          break;
        }
        case Fact::kLookedUp:
          tail->looked_up = quantized();
          break;
        case Fact::kSum:
          tail->sum = quantized();
          break;
        case Fact::kActivation:
          tail->sum_activation = activation();
          break;
      }
    });
    return tail;
  }

  // FAMILY(INPUTS), and its fields.
  void call(Node& node, bool tensors_exist, int depth = 0) {
    node.kind = choice(kinds_, "a family");
    expect('(');
    list(')', [&] { node.inputs.push_back(id(true, tensors_exist)); });
    skip_blanks();
    Value record;
    record.kind = Value::Kind::kRecord;
    record.place = place();
    if (next() == '{') record = value(depth);
    if (node.kind->attrs != nullptr) {
      node.attrs = attrs_of(*node.kind->attrs, record);
    } else {
      expect_names(record, {});
      node.attrs = std::make_shared<const Attrs>();
    }
    while (skip_blanks(), is_of_word(next())) {
      enum class Fact {
        kOp,
        kNode,
        kActivation,
        kAlpha,
        kResidualAfter,
        kTf32,
        kBf16Pairs,
        kHalfSums,
        kBand,
        kOnlyIf,
        kTail,
        kGraph,
      };
      const Fact fact = choice<Fact>({{"op", Fact::kOp},
                                      {"node", Fact::kNode},
                                      {"activation", Fact::kActivation},
                                      {"alpha", Fact::kAlpha},
                                      {"residual_after", Fact::kResidualAfter},
                                      {"tf32", Fact::kTf32},
                                      {"bf16_pairs", Fact::kBf16Pairs},
                                      {"half_sums", Fact::kHalfSums},
                                      {"band", Fact::kBand},
                                      {"only_if", Fact::kOnlyIf},
                                      {"tail", Fact::kTail},
                                      {"graph", Fact::kGraph}},
                                     "a fact of a node");
      if (fact <= Fact::kAlpha) expect('=');
      switch (fact) {
        case Fact::kOp:
          node.op = word_or_string("the name of an operation");
          break;
        case Fact::kNode:
          node.tflite_index = small(0);
          break;
        case Fact::kActivation:
          node.epilogue.activation = activation();
          break;
        case Fact::kAlpha:
          node.epilogue.alpha = number_of(scalar());
          break;
        case Fact::kResidualAfter:
          node.epilogue.residual_after = true;
          break;
        case Fact::kTf32:
          node.allows_tf32 = true;
          break;
        case Fact::kBf16Pairs:
          node.bf16_pairs = true;
          break;
        case Fact::kHalfSums:
          node.half_sums = true;
          break;
        case Fact::kBand:
          node.is_band = true;
          break;
        case Fact::kOnlyIf:
          expect('(');
          node.predicate = id(false, tensors_exist);
          if (accept(',')) node.predicate_element = small(0);
          expect(')');
          break;
        case Fact::kTail:
          node.tail = tail();
          break;
        case Fact::kGraph:
          node.graphs.push_back(inner_graph());
          break;
      }
    }
  }

  // The rest of graph { ... }.
  std::shared_ptr<const Graph> inner_graph() {
    if (depth_ == kDeepest) refuse("at most " + std::to_string(kDeepest) + " graphs within graphs");
    expect('{');
    std::vector<const OpKind*> kinds;
    for (const auto& [name, kind] : kinds_) kinds.push_back(kind);
    Reader inner(text_, kinds);
    inner.at_ = at_;
    auto graph = std::make_shared<const Graph>(inner.graph(depth_ + 1));
    at_ = inner.at_;
    return graph;
  }

  // Statements.

  void definition() {
    std::vector<int> ids;
    do ids.push_back(described());
    while (accept(','));
    if (!accept('=')) {
      if (ids.size() > 1) refuse("'=' and a node");
      return;
    }
    skip_blanks();
    if (text_.substr(at_, 6) == "const ") {
      at_ += 6;
      if (ids.size() > 1 || !is_described(ids[0])) refuse("a node, as no constant is described");
      Tensor& tensor = graph_.tensor(ids[0]);
      tensor.constant = constant(tensor);
      return;
    }
    Node node;
    node.outputs = std::move(ids);
    call(node, true);
    graph_.nodes.push_back(std::move(node));
  }

  void step() {
    using Outcome = Step::Outcome;
    Choices<Outcome> outcomes;
    for (const Outcome outcome : {Outcome::kApplied, Outcome::kDeclined, Outcome::kSkipped})
      outcomes.emplace_back(name_of(outcome), outcome);
    Step step;
    step.pass = word_or_string("the name of a pass");
    step.outcome = choice(outcomes, "what a pass did");
    while (skip_blanks(), is_of_word(next())) {
      int Step::* const member = choice<int Step::*>(
          {{"node", &Step::node}, {"into", &Step::into}, {"tensor", &Step::tensor}},
          "a node, a tensor, or \"DETAIL\"");
      expect('=');
      step.*member = small(0);
    }
    if (next() == '"') step.detail = string();
    graph_.steps.push_back(std::move(step));
  }

  void ids(std::vector<int>& to) {
    skip_blanks();
    if (next() == '\n') return;
    do to.push_back(id(false));
    while (accept(','));
  }

  void statement() {
    if (next() == '%') {
      definition();
    } else {
      enum class Statement { kTf32, kHalf, kInputs, kOutputs, kStep };
      switch (choice<Statement>({{"tf32", Statement::kTf32},
                                 {"half", Statement::kHalf},
                                 {"inputs", Statement::kInputs},
                                 {"outputs", Statement::kOutputs},
                                 {"step", Statement::kStep}},
                                "%NUMBER or a statement")) {
        case Statement::kTf32:
          graph_.allows_tf32 = true;
          break;
        case Statement::kHalf:
          graph_.allows_half = true;
          break;
        case Statement::kInputs:
          ids(graph_.inputs);
          break;
        case Statement::kOutputs:
          ids(graph_.outputs);
          break;
        case Statement::kStep:
          step();
          break;
      }
    }
    skip_blanks();
    if (!is_at_end() && !accept('\n')) refuse("the end of the line");
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  // The counts of place(): characters, lines, and the beginning of the last line.
  std::size_t counted_ = 0, line_start_ = 0;
  int line_ = 1;
  Choices<const OpKind*> kinds_;
  Choices<DType> types_;
  Choices<Activation> activations_;
  Graph graph_;
  std::vector<bool> described_;
  std::map<int, TextPlace> mentioned_;  // the position of its first occurrence
};

}  // namespace

Graph read_text(std::string_view text, const std::vector<const OpKind*>& kinds) {
  return Reader(text, kinds).graph();
}

}  // namespace clgpu::ir
