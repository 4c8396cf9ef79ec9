// Pooled objects that threads use in turn.
#include <new>
#include <utility>

#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

// A signal handler may raise between any two instructions of Python: the result of a function that
// has just removed an object from a queue may be dropped before a variable, or a `finally`, refers
// to it. So the queue contains objects of this class, which return to it by themselves: the pooled
// object moves into a new one, created in advance, so that a lack of memory loses nothing.
class Lent {
 public:
  Lent() = default;
  Lent(Lent&& other) noexcept
      : pool_(std::move(other.pool_)),
        thing_(std::move(other.thing_)),
        spare_(std::move(other.spare_)) {}
  ~Lent() { give_back(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  static py::object make(const py::object& pool, const py::object& thing) {
    py::object made = py::cast(Lent());
    auto& lent = made.cast<Lent&>();
    lent.spare_ = py::cast(Lent());
    lent.pool_ = py::weakref(pool);
    lent.thing_ = thing;
    return made;
  }

  py::object thing() const { return thing_ ? thing_ : py::none(); }

  // None if the object has been moved or kept.
  py::object move() {
    if (!thing_) return py::none();
    py::object next = spare_ ? std::move(spare_) : py::cast(Lent());
    auto& lent = next.cast<Lent&>();
    try {
      lent.spare_ = py::cast(Lent());
    } catch (const std::bad_alloc&) {
      // Created on demand.
    }
    lent.pool_ = pool_;
    lent.thing_ = std::move(thing_);
    return next;
  }

  void keep() { thing_ = {}; }

  void give_back() noexcept {
    if (!thing_) return;
    const py::error_scope error;
    try {
      const py::object pool = pool_();
      if (pool.is_none()) {
        thing_ = {};
        return;
      }
      const py::object item = move();
      try {
        pool.attr("put")(item);
      } catch (...) {
        item.cast<Lent&>().thing_ = {};  // otherwise it would try for ever
      }
    } catch (...) {
      thing_ = {};
    }
  }

 private:
  py::object pool_;   // a weak reference: the pool owns this
  py::object thing_;  // empty after move() or keep()
  py::object spare_;  // an empty one
};

}  // namespace

void bind_lending(py::module_& module) {
  module.def(
      "lend", &Lent::make, py::arg("pool"), py::arg("thing"),
      "A Lent for a pooled object. pool: the queue.SimpleQueue that receives it, and to which it "
      "returns.");
  py::class_<Lent>(module, "Lent",
                   "An object lent by a pool. It returns to the pool when the last "
                   "reference to this one is deleted.")
      .def_property_readonly("thing", &Lent::thing,
                             "The pooled object; None after move() or keep().")
      .def("move", &Lent::move,
           "A new Lent with the object, for another owner; None after move() or keep().")
      .def("give_back", &Lent::give_back,
           "Returns the object to the pool; does nothing after move() or keep().")
      .def("keep", &Lent::keep, "Removes the object from the pool for good: it is never returned.");
}

}  // namespace clgpu::python
