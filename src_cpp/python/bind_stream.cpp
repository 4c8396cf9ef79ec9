// Inferences in flight: runtime::Stream for Python.
#include <pybind11/stl.h>

#include <deque>
#include <optional>

#include "delegate/building/streaming.hpp"
#include "python/held.hpp"
#include "python/native_delegate.hpp"
#include "runtime/run/stream.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

using runtime::Flight;
using runtime::HostBlock;

class NativeStream {
 public:
  NativeStream(std::shared_ptr<delegate::State> state, int lanes, bool verified,
               std::optional<std::uint64_t> report)
      : state_(std::move(state)),
        streamed_(delegate::stream(state_->target, state_->ledger, lanes, verified, report)) {}

  runtime::Stream& stream() const {
    cl::refuse_forked_child();
    return *streamed_.stream;
  }
  const delegate::Streamed& streamed() const { return streamed_; }

  std::shared_ptr<Flight> start(const std::vector<const void*>& inputs,
                                const std::vector<void*>& outputs, bool now) {
    const cl::Counters before = cl::counters();
    auto flight = stream().start(inputs, outputs, now);
    cl::Counters inference;
    state_->ledger.count_invoke(inference, true, cl::counters() - before);
    return flight;
  }

 private:
  const std::shared_ptr<delegate::State> state_;
  const delegate::Streamed streamed_;
};

py::object make(const NativeDelegate& self, int lanes, bool verified,
                std::optional<std::uint64_t> report) {
  if (lanes < 1) throw OptionError("depth is " + std::to_string(lanes) + "; allowed: 1 and more");
  return hold<NativeStream>(
      [&] { return std::make_shared<NativeStream>(self.shared_state(), lanes, verified, report); });
}

// The memory of a contiguous buffer. pybind11's own view never releases it if there is no memory
// for the view.
class View {
 public:
  explicit View(const py::buffer& buffer, bool writable = false) {
    const int wanted = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(buffer.ptr(), &view_, wanted) != 0) throw py::error_already_set();
  }
  // Throws unless the size in bytes is exactly this.
  View(const py::buffer& buffer, std::int64_t bytes, bool writable) : View(buffer, writable) {
    if (view_.len != bytes)
      throw InternalError("a buffer of " + std::to_string(view_.len) + " bytes instead of " +
                          std::to_string(bytes));
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  void* data() const { return view_.buf; }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

py::object start(const Held<NativeStream>& self, const std::vector<py::buffer>& inputs,
                 const std::vector<std::optional<py::buffer>>& outputs, bool now) {
  NativeStream& stream = *self.object;
  const plan::Plan& plan = stream.stream().plan();
  if (inputs.size() != plan.uploads.size() || outputs.size() != plan.downloads.size())
    throw InternalError("a wrong number of buffers");
  std::deque<View> views;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    views.emplace_back(inputs[i], plan.uploads[i].host_bytes, false);
    sources.push_back(views.back().data());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    targets.push_back(nullptr);
    if (!outputs[i]) continue;
    views.emplace_back(*outputs[i], plan.downloads[i].host_bytes, true);
    targets.back() = views.back().data();
  }
  return hold<Flight>([&] { return stream.start(sources, targets, now); });
}

py::object block(const Held<Flight>& self, std::size_t output) {
  std::shared_ptr<HostBlock> found = self.object->block(output);
  if (found == nullptr) return py::none();
  return hold<HostBlock>([&] { return std::move(found); });
}

void wait(const Held<Flight>& self) {
  cl::refuse_forked_child();
  self.object->wait();
}

void read(const Held<Flight>& self, std::size_t output, const py::buffer& to) {
  const View view(to, self.object->host_bytes(output), true);
  const WithoutPython released;
  self.object->read(output, view.data());
}

bool has(const Held<NativeStream>& self, const py::buffer& data) {
  const View view(data);
  return self.object->stream().has(view.data(), view.bytes());
}

}  // namespace

void bind_stream(py::module_& module) {
  using Stream = Held<NativeStream>;
  py::class_<Held<HostBlock>>(module, "HostBlock", py::buffer_protocol(),
                              "Host memory that a stream reaches directly.")
      .def_buffer([](const Held<HostBlock>& self) {
        return py::buffer_info(static_cast<std::uint8_t*>(self.object->data()),
                               static_cast<py::ssize_t>(self.object->bytes()));
      });
  py::class_<Held<Flight>>(module, "Flight", "One inference of a stream.")
      .def("wait", &wait, py::call_guard<WithoutPython>(),
           "Waits until its outputs are on the host.")
      .def("block", &block, py::arg("output"),
           "The block that holds an output; None if it must be read.")
      .def("read", &read, py::arg("output"), py::arg("to"), "Copies an output to a buffer.");
  py::class_<Stream>(module, "NativeStream", "Several inferences in flight.")
      .def_property_readonly("is_direct",
                             [](const Stream& s) { return s.object->stream().is_direct(); })
      .def_property_readonly("lanes", [](const Stream& s) { return s.object->stream().lanes(); })
      .def_property_readonly("inputs", [](const Stream& s) { return s.object->streamed().inputs; })
      .def_property_readonly("outputs",
                             [](const Stream& s) { return s.object->streamed().outputs; })
      .def(
          "block",
          [](const Stream& s, std::size_t bytes) {
            return hold<HostBlock>([&] { return s.object->stream().block(bytes); });
          },
          py::arg("bytes"), "Memory that start() takes without a copy.")
      .def("has", &has, py::arg("data"), "Whether this is a block().")
      .def("start", &start, py::arg("inputs"), py::arg("outputs"), py::arg("now"),
           "Begins an inference; waits while all lanes are in use.");
  module.def("make_stream", &make, py::arg("delegate"), py::arg("lanes"), py::arg("verified"),
             py::arg("report") = py::none(),
             "A stream of the model prepared last. Raises an error with the reason if it cannot be "
             "streamed, or if its number is not `report`.");
  module.def(
      "last_report", &delegate::Ledger::last_report,
      "The number, among its delegate's models, of the model that this thread prepared last.");
}

}  // namespace clgpu::python
