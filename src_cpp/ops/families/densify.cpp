// Family of DENSIFY: a sparse constant is unpacked on the host at load time.
#include <algorithm>
#include <cstring>

#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

/// Reads TfLiteSparsity, the layout of the TACO compiler: the axes of the tensor, then the axes of
/// its blocks, form levels of a tree. A dense level has all its children, a compressed level lists
/// the positions of its children, and the stored elements are the leaves in order.
class SparseReader {
 public:
  /// `error()` says whether the description is valid; only then may `unpack` be called.
  explicit SparseReader(const tfl::TensorView& tensor)
      : sparsity_(*tensor.raw().sparsity),
        dims_(tensor.dims()),
        element_bytes_(size_of(tensor.dtype())),
        stored_(static_cast<std::int64_t>(tensor.raw().bytes / element_bytes_)),
        data_(static_cast<const std::uint8_t*>(tensor.raw().data)) {
    error_ = describe();
    if (error_.empty()) error_ = check();
  }

  const std::string& error() const { return error_; }

  std::vector<std::uint8_t> unpack() const {
    std::vector<std::uint8_t> dense(uz(ir::Shape(dims_).elements()) * element_bytes_, 0);
    visit(0, 0, 0, dense.data());
    return dense;
  }

 private:
  struct Level {
    bool compressed = false;
    int size = 1;           ///< children of a node if dense; size of the axis
    std::int64_t step = 0;  ///< elements of the dense tensor per position
    const TfLiteIntArray* segments =
        nullptr;  ///< children of node i: segments[i] .. segments[i + 1]
    const TfLiteIntArray* positions = nullptr;
  };

  /// Fills levels_; returns what is wrong.
  std::string describe() {
    const int rank = static_cast<int>(dims_.size());
    const std::int64_t elements = ir::Shape(dims_).elements();
    if (elements < 0 || elements > INT32_MAX) return "its elements are too many";
    const TfLiteIntArray* order = sparsity_.traversal_order;
    const int blocks = sparsity_.block_map == nullptr ? 0 : sparsity_.block_map->size;
    if (order == nullptr || order->size != rank + blocks ||
        sparsity_.dim_metadata_size != rank + blocks || sparsity_.dim_metadata == nullptr) {
      return "its levels do not match its rank";
    }
    const std::vector<int> strides = ir::Shape(dims_).strides();
    levels_.resize(uz(order->size));
    std::vector<int> block_sizes(uz(rank), 1);
    std::vector<bool> seen(uz(order->size), false);
    // Innermost first: the axis of a block comes before the axis that counts the blocks.
    for (int l = order->size - 1; l >= 0; --l) {
      const TfLiteDimensionMetadata& metadata = sparsity_.dim_metadata[l];
      const int axis = order->data[l];
      if (axis < 0 || axis >= order->size || seen[uz(axis)])
        return "its traversal order is invalid";
      seen[uz(axis)] = true;
      const bool in_block = axis >= rank;
      const int tensor_axis = in_block ? sparsity_.block_map->data[axis - rank] : axis;
      if (tensor_axis < 0 || tensor_axis >= rank) return "its block map is invalid";
      int& block = block_sizes[uz(tensor_axis)];
      Level& level = levels_[uz(l)];
      level.compressed = metadata.format == 1;
      if (in_block) {
        if (level.compressed || block != 1) return "its blocks are nested or sparse";
        block = level.size = metadata.dense_size;
        if (block < 1 || dims_[uz(tensor_axis)] % block != 0) return "its blocks do not fit";
        level.step = strides[uz(tensor_axis)];
        continue;
      }
      level.size = dims_[uz(axis)] / block;
      level.step = static_cast<std::int64_t>(strides[uz(axis)]) * block;
      if (!level.compressed && metadata.dense_size != level.size) return "its sizes do not fit";
      level.segments = metadata.array_segments;
      level.positions = metadata.array_indices;
    }
    return "";
  }

  /// Follows the counts level by level, so that `unpack` stays within its arrays.
  std::string check() const {
    std::int64_t nodes = 1;
    for (const Level& level : levels_) {
      if (!level.compressed) {
        nodes *= level.size;
        continue;
      }
      const TfLiteIntArray* segments = level.segments;
      if (segments == nullptr || level.positions == nullptr || segments->size != nodes + 1) {
        return "a compressed level has no valid segments";
      }
      for (int i = 0; i < segments->size; ++i) {
        if (segments->data[i] < (i == 0 ? 0 : segments->data[i - 1])) return "its segments overlap";
      }
      nodes = segments->data[segments->size - 1];
      if (nodes > level.positions->size) return "a compressed level has too few positions";
      for (std::int64_t i = 0; i < nodes; ++i) {
        const int position = level.positions->data[i];
        if (position < 0 || position >= level.size) return "a position is outside of its axis";
      }
    }
    return nodes > stored_ ? "it has fewer elements than its levels say" : "";
  }

  /// Copies the leaves below node `node` of the level, whose dense elements start at `origin`.
  void visit(std::size_t l, std::int64_t node, std::int64_t origin, std::uint8_t* dense) const {
    if (l == levels_.size()) {
      std::memcpy(dense + uz(origin) * element_bytes_, data_ + uz(node) * element_bytes_,
                  element_bytes_);
      return;
    }
    const Level& level = levels_[l];
    if (!level.compressed) {
      for (int i = 0; i < level.size; ++i) {
        visit(l + 1, node * level.size + i, origin + i * level.step, dense);
      }
      return;
    }
    for (int i = level.segments->data[node]; i < level.segments->data[node + 1]; ++i) {
      visit(l + 1, i, origin + level.positions->data[i] * level.step, dense);
    }
  }

  const TfLiteSparsity& sparsity_;
  std::vector<int> dims_;
  std::size_t element_bytes_;
  std::int64_t stored_;  ///< number of stored elements
  const std::uint8_t* data_;
  std::vector<Level> levels_;
  std::string error_;
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView input = node.input(0);
  CLGPU_REFUSE_TYPE(input, "input", DType::kF32, DType::kF16, DType::kBF16, DType::kI8);
  CLGPU_REFUSE_IF(input.raw().sparsity == nullptr || !input.has_data(), Why::kOperands, "input",
                  "is not a sparse constant");
  const SparseReader reader(input);
  CLGPU_REFUSE_IF(!reader.error().empty(), Why::kMalformed, "the sparse constant",
                  "is malformed: " + reader.error());
  return Imported{share(ir::Attrs{}), {}};
}

std::shared_ptr<const ir::Constant> fold(const tfl::NodeView& node) {
  const SparseReader reader(node.input(0));
  CLGPU_CHECK(reader.error().empty());
  auto constant = std::make_shared<ir::Constant>();
  auto owner = std::make_shared<const std::vector<std::uint8_t>>(reader.unpack());
  constant->data = owner->data();
  constant->bytes = owner->size();
  constant->dtype = node.input(0).dtype();
  constant->owner = owner;
  return constant;
}

}  // namespace

extern const Family kDensifyFamily;
const Family kDensifyFamily = [] {
  Family family;
  family.name = "densify";
  family.builtins = {{124, "DENSIFY", 1, 0, 1, -1}};
  family.import = import;
  family.infer = infer_same_as_input;
  family.fold = fold;
  return family;
}();

}  // namespace clgpu::ops
