#include "tfl/model_file.hpp"

#include <cstring>
#include <optional>

namespace clgpu::tfl {
namespace {

// A flatbuffer consists of tables that refer to other tables and to vectors by offsets. These are
// the tables of TFLite's schema that have offsets, and the slots of the offsets.
enum class Table : std::uint8_t {
  Other,  // no offsets, or none that a runtime follows
  Model,
  OperatorCode,
  Subgraph,
  Buffer,
  Metadata,
  Signature,
  TensorMap,
  Tensor,
  Quantization,
  Sparsity,
  Dimension,
  Operator,
  // With vectors only.
  Bytes,
  Shorts,
  Ints,
  TwoInts,
  TwoStrings,
  Blocks,
};

enum class Kind : std::uint8_t {
  Scalars,  // a vector of `width` bytes each
  String,
  OneTable,
  Tables,
  Options,   // a union whose type is in the slot before: builtin options,
  Details,   // of quantisation,
  Indices,   // or the integers of a sparse dimension
  External,  // an offset and a size, in two slots: bytes after the flatbuffer
};

struct Field {
  Table owner;
  std::uint8_t slot;
  Kind kind;
  std::uint8_t width = 1;
  Table of = Table::Other;
};

constexpr Field kFields[] = {
    {Table::Model, 1, Kind::Tables, 0, Table::OperatorCode},
    {Table::Model, 2, Kind::Tables, 0, Table::Subgraph},
    {Table::Model, 3, Kind::String},
    {Table::Model, 4, Kind::Tables, 0, Table::Buffer},
    {Table::Model, 5, Kind::Scalars, 4},
    {Table::Model, 6, Kind::Tables, 0, Table::Metadata},
    {Table::Model, 7, Kind::Tables, 0, Table::Signature},
    {Table::OperatorCode, 1, Kind::String},
    {Table::Subgraph, 0, Kind::Tables, 0, Table::Tensor},
    {Table::Subgraph, 1, Kind::Scalars, 4},
    {Table::Subgraph, 2, Kind::Scalars, 4},
    {Table::Subgraph, 3, Kind::Tables, 0, Table::Operator},
    {Table::Subgraph, 4, Kind::String},
    {Table::Buffer, 0, Kind::Scalars, 1},
    {Table::Buffer, 1, Kind::External},
    {Table::Metadata, 0, Kind::String},
    {Table::Signature, 0, Kind::Tables, 0, Table::TensorMap},
    {Table::Signature, 1, Kind::Tables, 0, Table::TensorMap},
    {Table::Signature, 2, Kind::String},
    {Table::TensorMap, 0, Kind::String},
    {Table::Tensor, 0, Kind::Scalars, 4},
    {Table::Tensor, 3, Kind::String},
    {Table::Tensor, 4, Kind::OneTable, 0, Table::Quantization},
    {Table::Tensor, 6, Kind::OneTable, 0, Table::Sparsity},
    {Table::Tensor, 7, Kind::Scalars, 4},
    {Table::Tensor, 9, Kind::Tables, 0, Table::Ints},
    {Table::Quantization, 0, Kind::Scalars, 4},
    {Table::Quantization, 1, Kind::Scalars, 4},
    {Table::Quantization, 2, Kind::Scalars, 4},
    {Table::Quantization, 3, Kind::Scalars, 8},
    {Table::Quantization, 5, Kind::Details},
    {Table::Sparsity, 0, Kind::Scalars, 4},
    {Table::Sparsity, 1, Kind::Scalars, 4},
    {Table::Sparsity, 2, Kind::Tables, 0, Table::Dimension},
    {Table::Dimension, 3, Kind::Indices},
    {Table::Dimension, 5, Kind::Indices},
    {Table::Operator, 1, Kind::Scalars, 4},
    {Table::Operator, 2, Kind::Scalars, 4},
    {Table::Operator, 4, Kind::Options},
    {Table::Operator, 5, Kind::Scalars, 1},
    {Table::Operator, 7, Kind::Scalars, 1},
    {Table::Operator, 8, Kind::Scalars, 4},
    {Table::Operator, 9, Kind::External},
    {Table::Operator, 12, Kind::OneTable},
    {Table::Bytes, 0, Kind::Scalars, 1},
    {Table::Shorts, 0, Kind::Scalars, 2},
    {Table::Ints, 0, Kind::Scalars, 4},
    {Table::TwoInts, 1, Kind::Scalars, 4},
    {Table::TwoInts, 2, Kind::Scalars, 4},
    {Table::TwoStrings, 0, Kind::String},
    {Table::TwoStrings, 1, Kind::String},
    {Table::Blocks, 3, Kind::Scalars, 4},
};

Table options_table(unsigned type) {
  switch (type) {
    case 3:  // ConcatEmbeddingsOptions
      return Table::TwoInts;
    case 17:   // ReshapeOptions
    case 30:   // SqueezeOptions
    case 115:  // BucketizeOptions
      return Table::Ints;
    case 111:  // VarHandleOptions
      return Table::TwoStrings;
    default:
      return Table::Other;
  }
}

Table details_table(unsigned type) {
  switch (type) {
    case 1:  // CustomQuantization
      return Table::Bytes;
    case 2:  // BlockwiseQuantization
    case 3:  // MultiAxisQuantization
      return Table::Blocks;
    default:
      return Table::Other;
  }
}

Table indices_table(unsigned type) {
  return type == 1 ? Table::Ints : type == 2 ? Table::Shorts : Table::Bytes;
}

class Walk {
 public:
  Walk(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::string problem() {
    table(follow(0), Table::Model);
    return bad_ ? "what byte " + std::to_string(at_) + " refers to lies beyond its end, byte " +
                      std::to_string(size_)
                : "";
  }

 private:
  /// Tables of a malicious file may be shared by so many others that checking them would never end.
  static constexpr std::size_t kMaxTables = 10'000'000;

  template <class T>
  T read(std::size_t at) {
    T value{};
    if (require(at, sizeof value)) std::memcpy(&value, data_ + at, sizeof value);
    return value;
  }

  bool require(std::size_t at, std::uint64_t bytes) {
    if (!bad_ && (at > size_ || bytes > size_ - at)) {
      bad_ = true;
      at_ = from_;
    }
    return !bad_;
  }

  /// The target of the offset at `at`.
  std::size_t follow(std::size_t at) {
    from_ = at;
    const auto offset = read<std::uint32_t>(at);
    return at + offset;
  }

  struct View {
    std::size_t at, vtable;
    unsigned slots, bytes;
  };

  /// The position of a field, if it exists.
  std::optional<std::size_t> field(const View& view, unsigned slot, unsigned width) {
    if (slot >= view.slots) return std::nullopt;
    const auto offset = read<std::uint16_t>(view.vtable + 4 + 2 * slot);
    if (offset == 0) return std::nullopt;
    if (offset + width > view.bytes) require(size_, 1);
    return view.at + offset;
  }

  void table(std::size_t at, Table type) {
    if (++tables_ > kMaxTables) require(size_, 1);
    const auto back = read<std::int32_t>(at);
    if (bad_) return;
    const std::int64_t vtable = static_cast<std::int64_t>(at) - back;
    if (vtable < 0) require(size_, 1);
    View view{at, static_cast<std::size_t>(vtable), 0, 0};
    const unsigned length = read<std::uint16_t>(view.vtable);
    view.bytes = read<std::uint16_t>(view.vtable + 2);
    if (!require(view.vtable, length) || !require(at, view.bytes)) return;
    view.slots = length < 4 ? 0 : (length - 4) / 2;
    for (const Field& entry : kFields)
      if (entry.owner == type && !bad_) visit(view, entry);
  }

  void visit(const View& view, const Field& entry) {
    if (entry.kind == Kind::External) return external(view, entry.slot);
    const auto at = field(view, entry.slot, 4);
    if (!at || bad_) return;
    switch (entry.kind) {
      case Kind::Scalars:
        vector(*at, entry.width);
        break;
      case Kind::String:
        require(vector(*at, 1), 1);  // the terminating zero
        break;
      case Kind::OneTable:
        table(follow(*at), entry.of);
        break;
      case Kind::Tables: {
        const std::size_t end = vector(*at, 4);
        const std::size_t start = follow(*at) + 4;
        for (std::size_t item = start; item < end && !bad_; item += 4)
          table(follow(item), entry.of);
        break;
      }
      case Kind::Options:
      case Kind::Details:
      case Kind::Indices: {
        const auto type_at = field(view, entry.slot - 1U, 1);
        const unsigned type = type_at ? read<std::uint8_t>(*type_at) : 0U;
        if (type == 0) break;
        table(follow(*at), entry.kind == Kind::Options   ? options_table(type)
                           : entry.kind == Kind::Details ? details_table(type)
                                                         : indices_table(type));
        break;
      }
      case Kind::External:
        break;
    }
  }

  /// The end of the vector to which the offset at `at` points.
  std::size_t vector(std::size_t at, unsigned width) {
    const std::size_t start = follow(at);
    const std::uint64_t bytes = std::uint64_t{read<std::uint32_t>(start)} * width;
    require(start + 4, bytes);
    return start + 4 + static_cast<std::size_t>(bytes);
  }

  void external(const View& view, unsigned slot) {
    const auto offset_at = field(view, slot, 8), size_at = field(view, slot + 1, 8);
    if (!offset_at || !size_at || bad_) return;
    const auto offset = read<std::uint64_t>(*offset_at);
    const auto bytes = read<std::uint64_t>(*size_at);
    from_ = *offset_at;
    if (offset > 1) require(offset, bytes);  // 0 and 1: inside the flatbuffer, or nowhere
  }

  const std::uint8_t* data_;
  std::size_t size_, from_ = 0, at_ = 0, tables_ = 0;
  bool bad_ = false;
};

}  // namespace

std::string model_file_problem(const std::uint8_t* data, std::size_t size) {
  return Walk(data, size).problem();
}

}  // namespace clgpu::tfl
