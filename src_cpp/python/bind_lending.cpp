// Things of a pool that threads take turns with.
#include <memory>
#include <utility>

#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

// A signal's handler may raise between any two instructions of Python: what a function has just
// taken out of a queue may be dropped before a variable, or a `finally`, knows of it. So what lies
// in the queue is one of these, which goes back by itself.
class Lent {
 public:
  Lent(const py::object& pool, py::object thing) : Lent(py::weakref(pool), std::move(thing)) {}
  ~Lent() { give_back(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  py::object thing() const { return thing_ ? thing_ : py::none(); }

  // Null where the thing is gone already.
  std::unique_ptr<Lent> move() {
    if (!thing_) return nullptr;
    return std::unique_ptr<Lent>(new Lent(pool_, std::move(thing_)));
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
      auto next = move();
      Lent& lent = *next;
      const py::object item = py::cast(std::move(next));
      try {
        pool.attr("put")(item);
      } catch (...) {
        lent.thing_ = {};  // else it would try for ever
      }
    } catch (...) {
      thing_ = {};
    }
  }

 private:
  Lent(py::weakref pool, py::object thing) : pool_(std::move(pool)), thing_(std::move(thing)) {}

  py::weakref pool_;  // the pool owns this
  py::object thing_;
};

}  // namespace

void bind_lending(py::module_& module) {
  py::class_<Lent>(module, "Lent", "A thing of a pool, back there when the last reference goes.")
      .def(py::init<const py::object&, py::object>(), py::arg("pool"), py::arg("thing"),
           "To be put into the pool, a queue.SimpleQueue.")
      .def_property_readonly("thing", &Lent::thing, "None when it is gone.")
      .def("move", &Lent::move, "The same thing for another owner; None when it is gone.")
      .def("give_back", &Lent::give_back, "Puts it back, unless it is gone.")
      .def("keep", &Lent::keep, "It never goes back.");
}

}  // namespace clgpu::python
