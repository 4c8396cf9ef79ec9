#include "tfl/graph_operands.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace clgpu::tfl {
namespace {

constexpr char kIdentifier[] = {'T', 'F', 'L', '3'};  // at byte 4 of each file that a runtime loads
constexpr std::size_t kIdentifierAt = 4;
constexpr std::ptrdiff_t kFarthest = 256 << 20;  // bytes between it and names

// Slots of the schema.
constexpr unsigned kSubgraphs = 2;                                       // of a model
constexpr unsigned kGraphInputs = 1, kGraphOutputs = 2, kOperators = 3;  // of a subgraph
constexpr unsigned kNodeInputs = 1, kNodeOutputs = 2;                    // of an operator

/// What refers to a byte behind the known part of the file.
struct Beyond {};

/// Reads tables of a flatbuffer; throws Beyond.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::size_t root() const { return follow(0); }

  std::vector<int> ints(std::size_t table, unsigned slot) const {
    const std::size_t at = field(table, slot);
    if (at == 0) return {};
    const std::size_t vector = follow(at);
    std::vector<int> values(length(vector));
    if (!values.empty()) std::memcpy(values.data(), data_ + vector + 4, values.size() * 4);
    return values;
  }

  std::vector<std::size_t> tables(std::size_t table, unsigned slot) const {
    const std::size_t at = field(table, slot);
    if (at == 0) return {};
    const std::size_t vector = follow(at);
    std::vector<std::size_t> found(length(vector));
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = follow(vector + 4 + 4 * i);
    return found;
  }

 private:
  template <class T>
  T read(std::size_t at) const {
    require(at, sizeof(T));
    T value{};
    std::memcpy(&value, data_ + at, sizeof value);
    return value;
  }

  void require(std::size_t at, std::size_t bytes) const {
    if (at > size_ || bytes > size_ - at) throw Beyond{};
  }

  std::size_t follow(std::size_t at) const { return at + read<std::uint32_t>(at); }

  // Of a vector whose elements have 4 bytes.
  std::size_t length(std::size_t vector) const {
    const std::size_t count = read<std::uint32_t>(vector);
    require(vector + 4, count * 4);
    return count;
  }

  // 0: the table lacks it.
  std::size_t field(std::size_t table, unsigned slot) const {
    const std::int64_t vtable = static_cast<std::int64_t>(table) - read<std::int32_t>(table);
    if (vtable < 0) throw Beyond{};
    const auto at = static_cast<std::size_t>(vtable);
    const std::size_t entry = 4 + 2 * std::size_t{slot};
    if (entry + 2 > read<std::uint16_t>(at)) return 0;
    const auto offset = read<std::uint16_t>(at + entry);
    return offset == 0 ? 0 : table + offset;
  }

  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

ModelInMemory::ModelInMemory(const std::vector<const TfLiteContext*>& graphs) {
  const std::less<> before;  // of pointers into different objects, too
  std::vector<std::pair<const std::uint8_t*, std::size_t>> names;
  const std::uint8_t* first = nullptr;  // of the names of constants
  for (const TfLiteContext* graph : graphs) {
    for (std::size_t i = 0; i < graph->tensors_size; ++i) {
      const TfLiteTensor& tensor = graph->tensors[i];
      if (tensor.name == nullptr || *tensor.name == 0) continue;
      const auto* const name = reinterpret_cast<const std::uint8_t*>(tensor.name);
      names.emplace_back(name, std::strlen(tensor.name));
      // Runtimes set `allocation` for constants of a file.
      const bool is_in_file = tensor.allocation_type == kTfLiteMmapRo &&
                              tensor.allocation != nullptr && tensor.data != nullptr;
      if (is_in_file && (first == nullptr || before(name, first))) first = name;
    }
  }
  if (first == nullptr) return;
  // Runtimes load no file without the identifier.
  const std::uint8_t* at = first;
  while (std::memcmp(at, kIdentifier, sizeof kIdentifier) != 0) {
    if (first - at == kFarthest) return;
    --at;
  }
  data_ = at - kIdentifierAt;
  for (const auto& [name, length] : names) {
    if (before(name, data_) || !before(name, first + kFarthest)) continue;
    size_ = std::max(size_, static_cast<std::size_t>(name - data_) + length);
  }
}

std::optional<GraphOperands> ModelInMemory::graph(int index) const {
  if (data_ == nullptr || index < 0) return std::nullopt;
  const Reader reader(data_, size_);
  try {
    const std::vector<std::size_t> graphs = reader.tables(reader.root(), kSubgraphs);
    if (static_cast<std::size_t>(index) >= graphs.size()) return std::nullopt;
    const std::size_t table = graphs[static_cast<std::size_t>(index)];
    GraphOperands result{reader.ints(table, kGraphInputs), reader.ints(table, kGraphOutputs), {}};
    for (const std::size_t node : reader.tables(table, kOperators))
      result.nodes.push_back({reader.ints(node, kNodeInputs), reader.ints(node, kNodeOutputs)});
    return result;
  } catch (const Beyond&) {
    return std::nullopt;
  }
}

}  // namespace clgpu::tfl
