#include "tfl/model_operands.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tfl/node_view.hpp"

namespace clgpu::tfl {
namespace {

template <class T>
T read(const std::uint8_t* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);  // the file need not be aligned
  return value;
}

const std::uint8_t* follow(const std::uint8_t* at) { return at + read<std::uint32_t>(at); }

/// A table of a flatbuffer whose offsets have been checked.
class Table {
 public:
  explicit Table(const std::uint8_t* at) : at_(at) {}

  template <class T>
  T scalar(unsigned slot) const {
    const std::uint8_t* where = field(slot);
    return where == nullptr ? T{} : read<T>(where);
  }
  std::vector<std::int32_t> ints(unsigned slot) const {
    std::vector<std::int32_t> values(count(slot));
    if (!values.empty())
      std::memcpy(values.data(), follow(field(slot)) + 4, values.size() * sizeof values[0]);
    return values;
  }
  std::uint32_t count(unsigned slot) const {
    const std::uint8_t* where = field(slot);
    return where == nullptr ? 0 : read<std::uint32_t>(follow(where));
  }
  Table table(unsigned slot, std::uint32_t index) const {
    return Table(follow(follow(field(slot)) + 4 + 4 * std::size_t{index}));
  }

 private:
  const std::uint8_t* field(unsigned slot) const {
    const std::uint8_t* vtable = at_ - read<std::int32_t>(at_);
    if (4 + 2 * slot + 2 > read<std::uint16_t>(vtable)) return nullptr;
    const auto offset = read<std::uint16_t>(vtable + 4 + 2 * slot);
    return offset == 0 ? nullptr : at_ + offset;
  }

  const std::uint8_t* at_;
};

// Slots of the schema.
constexpr unsigned kCodes = 1, kSubgraphs = 2;    // of a model
constexpr unsigned kOldCode = 0, kCode = 3;       // of an operator code
constexpr unsigned kTensors = 0, kOperators = 3;  // of a subgraph
constexpr unsigned kCodeIndex = 0, kInputs = 1,
                   kOutputs = 2;  // of an operator; the latter two also of a subgraph

std::string operands_problem(const Table& node, int code, std::int64_t tensors,
                             bool (*may_lack)(int code, bool is_input, int i)) {
  for (const unsigned slot : {kInputs, kOutputs}) {
    const std::vector<std::int32_t> ids = node.ints(slot);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string what = (slot == kInputs ? "input " : "output ") + std::to_string(i);
      const bool absent = ids[i] == -1;
      if (absent && !may_lack(code, slot == kInputs, static_cast<int>(i)))
        return "lacks its " + what;
      if (!absent && (ids[i] < 0 || ids[i] >= tensors)) {
        return "names tensor " + std::to_string(ids[i]) + " as its " + what + "; there are " +
               std::to_string(tensors);
      }
    }
  }
  return {};
}

/// Runtimes read each output after the last node; a missing one (-1) is read before the first
/// tensor.
std::string outputs_problem(const Table& graph) {
  const std::vector<std::int32_t> ids = graph.ints(kOutputs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == -1) return "lacks its output " + std::to_string(i);
  }
  return {};
}

/// The writer of each tensor so far. Runtimes give a tensor with two writers the memory that one of
/// them needs, and a larger result overwrites the memory after it.
class Writers {
 public:
  explicit Writers(std::uint32_t tensors) : by_tensor_(tensors, kNobody) {}

  /// Adds a node whose operands have been checked.
  std::string problem(const Table& node, std::uint32_t index) {
    for (const std::int32_t id : node.ints(kOutputs)) {
      if (id < 0) continue;
      std::int64_t& writer = by_tensor_[static_cast<std::size_t>(id)];
      if (writer != kNobody) {
        return "writes tensor " + std::to_string(id) + ", which node " + std::to_string(writer) +
               " writes, too";
      }
      writer = index;
    }
    return {};
  }

 private:
  static constexpr std::int64_t kNobody = -1;
  std::vector<std::int64_t> by_tensor_;
};

}  // namespace

std::string model_operands_problem(const std::uint8_t* data,
                                   bool (*may_lack)(int code, bool is_input, int i)) {
  const Table model(follow(data));
  if (model.count(kSubgraphs) == 0) return "it has no subgraph";
  for (std::uint32_t s = 0; s < model.count(kSubgraphs); ++s) {
    const Table graph = model.table(kSubgraphs, s);
    const std::string absent = outputs_problem(graph);
    if (!absent.empty()) return "subgraph " + std::to_string(s) + " " + absent;
    Writers writers(graph.count(kTensors));
    for (std::uint32_t k = 0; k < graph.count(kOperators); ++k) {
      const Table node = graph.table(kOperators, k);
      const std::string where = "node " + std::to_string(k) + " of subgraph " + std::to_string(s);
      const auto index = node.scalar<std::uint32_t>(kCodeIndex);
      if (index >= model.count(kCodes)) {
        return where + " names the operator code " + std::to_string(index) + "; there are " +
               std::to_string(model.count(kCodes));
      }
      const Table entry = model.table(kCodes, index);
      const int code =
          std::max<int>(entry.scalar<std::int8_t>(kOldCode), entry.scalar<std::int32_t>(kCode));
      std::string problem = operands_problem(node, code, graph.count(kTensors), may_lack);
      if (problem.empty()) problem = writers.problem(node, k);
      if (!problem.empty()) return where + ", " + builtin_name(code) + ", " + problem;
    }
  }
  return {};
}

}  // namespace clgpu::tfl
