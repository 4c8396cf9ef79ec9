// The order of axes through RESHAPE, TRANSPOSE and products: tensors described by the axes that
// they have in common, whatever shapes these are packed into.
#pragma once

#include <vector>

#include "ir/shape.hpp"

namespace clgpu::passes {

/// Axes of the tensors of an expression. An axis may turn out to be several, which a RESHAPE had
/// made one, or to be the same as another one.
class Axes {
 public:
  /// Axes in order, slowest first; none of them has the size 1.
  using List = std::vector<int>;
  /// A tensor: the axes of each of its dimensions.
  using View = std::vector<List>;

  /// A tensor that has an axis of its own for each dimension.
  View fresh(const ir::Shape& shape);
  /// The parts of the axes, as far as they are known.
  List parts(const List& axes) const;
  /// All axes of a tensor in the order of its memory, in parts.
  List order(const View& view) const;
  std::int64_t size(const List& axes) const;

  /// The same elements in another shape; false if that cuts axes at places that do not fit.
  bool reshape(View& view, const ir::Shape& shape);
  /// Notes that two lists of axes have the same indices; false if their parts do not fit.
  bool unite(const List& a, const List& b);

 private:
  struct Axis {
    int size = 1;
    List parts;  ///< empty: the axis itself; one: the axis that it is the same as
  };
  int add(int size);
  /// Makes of an axis two, the first with `outer` indices.
  void cut(int axis, int outer);

  std::vector<Axis> axes_;
};

}  // namespace clgpu::passes
