#include "passes/layouts.hpp"

#include <deque>

#include "base/index.hpp"

namespace clgpu::passes {

int Axes::add(int size) {
  axes_.push_back({size, {}});
  return static_cast<int>(axes_.size()) - 1;
}

void Axes::cut(int axis, int outer) {
  const int inner = axes_[uz(axis)].size / outer;
  const int first = add(outer), second = add(inner);
  axes_[uz(axis)].parts = {first, second};
}

Axes::View Axes::fresh(const ir::Shape& shape) {
  View view;
  for (const int size : shape.dims()) view.push_back(size == 1 ? List{} : List{add(size)});
  return view;
}

Axes::List Axes::parts(const List& axes) const {
  List list;
  for (const int axis : axes) {
    if (axes_[uz(axis)].parts.empty()) {
      list.push_back(axis);
      continue;
    }
    const List inner = parts(axes_[uz(axis)].parts);
    list.insert(list.end(), inner.begin(), inner.end());
  }
  return list;
}

Axes::List Axes::order(const View& view) const {
  List list;
  for (const List& axes : view) list.insert(list.end(), axes.begin(), axes.end());
  return parts(list);
}

std::int64_t Axes::size(const List& axes) const {
  std::int64_t product = 1;
  for (const int axis : axes) product *= axes_[uz(axis)].size;
  return product;
}

bool Axes::reshape(View& view, const ir::Shape& shape) {
  const List all = order(view);
  std::deque<int> left(all.begin(), all.end());
  View result;
  for (const int size : shape.dims()) {
    List axes;
    for (int missing = size; missing > 1;) {
      if (left.empty()) return false;
      const int axis = left.front(), extent = axes_[uz(axis)].size;
      left.pop_front();
      if (missing % extent == 0) {
        axes.push_back(axis);
        missing /= extent;
      } else if (extent % missing == 0) {
        cut(axis, missing);
        axes.push_back(axes_[uz(axis)].parts[0]);
        left.push_front(axes_[uz(axis)].parts[1]);
        missing = 1;
      } else {
        return false;
      }
    }
    result.push_back(std::move(axes));
  }
  view = std::move(result);
  return left.empty();
}

bool Axes::unite(const List& a, const List& b) {
  if (size(a) != size(b)) return false;
  for (;;) {
    const List x = parts(a), y = parts(b);
    std::size_t i = 0;
    while (i < x.size() && i < y.size() && x[i] == y[i]) ++i;
    if (i == x.size() && i == y.size()) return true;
    if (i == x.size() || i == y.size()) return false;
    const int first = axes_[uz(x[i])].size, second = axes_[uz(y[i])].size;
    if (first == second) {
      axes_[uz(y[i])].parts = {x[i]};
    } else if (first % second == 0) {
      cut(x[i], second);
    } else if (second % first == 0) {
      cut(y[i], first);
    } else {
      return false;
    }
  }
}

}  // namespace clgpu::passes
