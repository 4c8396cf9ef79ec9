#include "tfl/graph_operands.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>

namespace clgpu::tfl {
namespace {

constexpr char kIdentifier[] = {'T', 'F', 'L', '3'};  // at byte 4 of each file that a runtime loads
constexpr std::size_t kIdentifierAt = 4;
constexpr std::size_t kFarthest = 256 << 20;  // bytes between it and a constant, at most

constexpr std::size_t kPage = 4096;  // the page size of a system is a multiple
constexpr std::size_t kPages = 16;   // that are read at once

// Slots of the schema.
constexpr unsigned kSubgraphs = 2;                                       // of a model
constexpr unsigned kGraphInputs = 1, kGraphOutputs = 2, kOperators = 3;  // of a subgraph
constexpr unsigned kNodeInputs = 1, kNodeOutputs = 2;                    // of an operator

const std::uint8_t* page_of(const std::uint8_t* address) {
  return address - reinterpret_cast<std::uintptr_t>(address) % kPage;
}

/// Copies the `count` pages that end at `end`, the last ones first, to the end of `to`; returns how
/// many. Where memory is not mapped, the system call fails, not the process.
std::size_t copy_pages(const std::uint8_t* end, std::size_t count,
                       std::array<std::uint8_t, kPages * kPage>& to) {
  std::array<iovec, kPages> from{}, into{};
  for (std::size_t i = 0; i < count; ++i) {
    from[i] = {const_cast<std::uint8_t*>(end - (i + 1) * kPage), kPage};
    into[i] = {to.data() + to.size() - (i + 1) * kPage, kPage};
  }
  const ssize_t copied = process_vm_readv(getpid(), into.data(), count, from.data(), count, 0);
  return copied < 0 ? 0 : static_cast<std::size_t>(copied) / kPage;
}

/// What refers to a byte that is no part of a file.
struct Beyond {};

/// Reads tables of a flatbuffer; throws Beyond.
class Reader {
 public:
  explicit Reader(const std::uint8_t* data) : data_(data) {}

  std::size_t root() { return follow(0); }

  std::vector<int> ints(std::size_t table, unsigned slot) {
    const std::size_t at = field(table, slot);
    if (at == 0) return {};
    const std::size_t vector = follow(at);
    std::vector<int> values(length(vector));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = read<std::int32_t>(vector + 4 + 4 * i);
    return values;
  }

  std::vector<std::size_t> tables(std::size_t table, unsigned slot) {
    const std::size_t at = field(table, slot);
    if (at == 0) return {};
    const std::size_t vector = follow(at);
    std::vector<std::size_t> found(length(vector));
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = follow(vector + 4 + 4 * i);
    return found;
  }

 private:
  template <class T>
  T read(std::size_t at) {
    T value{};
    std::array<std::uint8_t, sizeof value> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte(at + i);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::uint8_t byte(std::size_t at) {
    constexpr std::size_t kLargest = std::size_t{1} << 31;  // of flatbuffers
    if (at >= kLargest) throw Beyond{};
    const std::uint8_t* const page = page_of(data_ + at);
    const auto [entry, is_new] = pages_.try_emplace(page);
    if (is_new) {
      std::array<std::uint8_t, kPages * kPage> copy;
      if (copy_pages(page + kPage, 1, copy) == 1)
        entry->second.assign(copy.end() - kPage, copy.end());
    }
    if (entry->second.empty()) throw Beyond{};
    return entry->second[static_cast<std::size_t>(data_ + at - page)];
  }

  std::size_t follow(std::size_t at) { return at + read<std::uint32_t>(at); }

  // Of a vector.
  std::size_t length(std::size_t vector) {
    constexpr std::size_t kMost = 1 << 20;  // nodes, or operands of one
    const std::size_t count = read<std::uint32_t>(vector);
    if (count > kMost) throw Beyond{};
    return count;
  }

  // 0: the table lacks it.
  std::size_t field(std::size_t table, unsigned slot) {
    const std::int64_t vtable = static_cast<std::int64_t>(table) - read<std::int32_t>(table);
    if (vtable < 0) throw Beyond{};
    const auto at = static_cast<std::size_t>(vtable);
    const std::size_t entry = 4 + 2 * std::size_t{slot};
    if (entry + 2 > read<std::uint16_t>(at)) return 0;
    const auto offset = read<std::uint16_t>(at + entry);
    return offset == 0 ? 0 : table + offset;
  }

  const std::uint8_t* data_;
  std::map<const std::uint8_t*, std::vector<std::uint8_t>> pages_;  // empty: not mapped
};

GraphOperands operands_of(Reader& reader, std::size_t graph) {
  GraphOperands result{reader.ints(graph, kGraphInputs), reader.ints(graph, kGraphOutputs), {}};
  for (const std::size_t node : reader.tables(graph, kOperators))
    result.nodes.push_back({reader.ints(node, kNodeInputs), reader.ints(node, kNodeOutputs)});
  return result;
}

/// Whether a file begins here: names and weights may contain the identifier, too.
bool is_model(const std::uint8_t* data) {
  Reader reader(data);
  try {
    const std::vector<std::size_t> graphs = reader.tables(reader.root(), kSubgraphs);
    for (const std::size_t graph : graphs) operands_of(reader, graph);
    return !graphs.empty();
  } catch (const Beyond&) {
    return false;
  }
}

/// The file that contains `last`, or the nearest one before it; null if there is none.
const std::uint8_t* file_before(const std::uint8_t* last) {
  constexpr std::size_t kLength = sizeof kIdentifier;
  std::array<std::uint8_t, kPages * kPage> pages;
  std::vector<std::uint8_t> text;  // of these pages, and the first bytes behind them
  const std::uint8_t* end = page_of(last) + kPage;
  for (std::size_t read = 0; read < kFarthest;) {
    const std::size_t count = copy_pages(end, kPages, pages);
    if (count == 0) return nullptr;
    const std::size_t bytes = count * kPage;
    std::vector<std::uint8_t> next(pages.end() - static_cast<std::ptrdiff_t>(bytes), pages.end());
    // Another file, perhaps one that nobody uses any more, may begin behind it in the same page.
    if (read == 0) next.resize(bytes - static_cast<std::size_t>(end - last));
    const std::size_t kept = std::min(text.size(), kLength - 1);
    next.insert(next.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept));
    text = std::move(next);
    end -= bytes;
    for (auto behind = text.end();;) {
      const auto at =
          std::find_end(text.begin(), behind, std::begin(kIdentifier), std::end(kIdentifier));
      if (at == behind) break;
      const std::uint8_t* const data = end + (at - text.begin()) - kIdentifierAt;
      if (is_model(data)) return data;
      behind = at + (kLength - 1);
    }
    read += bytes;
    if (count < kPages) return nullptr;
  }
  return nullptr;
}

}  // namespace

ModelInMemory::ModelInMemory(const std::vector<const TfLiteContext*>& graphs) {
  const std::less<> before;  // of pointers into different objects, too
  const auto take = [&](const std::uint8_t*& first, const void* address) {
    const auto* const at = static_cast<const std::uint8_t*>(address);
    if (first == nullptr || before(at, first)) first = at;
  };
  const std::uint8_t *name = nullptr, *data = nullptr, *first_name = nullptr, *last_name = nullptr;
  for (const TfLiteContext* graph : graphs) {
    for (std::size_t i = 0; i < graph->tensors_size; ++i) {
      const TfLiteTensor& tensor = graph->tensors[i];
      if (tensor.name != nullptr && *tensor.name != 0) {
        take(first_name, tensor.name);
        const auto* const at = reinterpret_cast<const std::uint8_t*>(tensor.name);
        if (last_name == nullptr || before(last_name, at)) last_name = at;
      }
      // Runtimes set `allocation` for constants of a file.
      if (tensor.allocation_type != kTfLiteMmapRo || tensor.allocation == nullptr) continue;
      if (tensor.name != nullptr && *tensor.name != 0) take(name, tensor.name);
      if (tensor.data != nullptr) take(data, tensor.data);
    }
  }
  // A runtime may have replaced a name by that of a signature, or copied data to align it: neither
  // lies in the file then. Graphs without constants have the names of other tensors only.
  for (const std::uint8_t* first : {name, data, first_name, last_name}) {
    const std::uint8_t* const file = first != nullptr ? file_before(first) : nullptr;
    if (file != nullptr && std::count(files_.begin(), files_.end(), file) == 0)
      files_.push_back(file);
  }
}

std::optional<GraphOperands> ModelInMemory::graph(
    int index, const std::function<bool(const GraphOperands&)>& is_it) const {
  for (const std::uint8_t* file : files_) {
    Reader reader(file);
    try {
      const std::vector<std::size_t> graphs = reader.tables(reader.root(), kSubgraphs);
      if (index < 0 || static_cast<std::size_t>(index) >= graphs.size()) continue;
      GraphOperands found = operands_of(reader, graphs[static_cast<std::size_t>(index)]);
      if (is_it(found)) return found;
    } catch (const Beyond&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace clgpu::tfl
