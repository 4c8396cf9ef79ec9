// Inferences in flight: runtime::Stream for Python.
#include <pybind11/stl.h>

#include <optional>

#include "python/native_delegate.hpp"
#include "runtime/stream.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

using runtime::Flight;
using runtime::HostBlock;
using runtime::Stream;

class NativeStream {
 public:
  NativeStream(std::shared_ptr<delegate::State> state, int lanes, bool verified,
               std::optional<std::uint64_t> report)
      : state_(std::move(state)), streamed_(state_->stream(lanes, verified, report)) {}

  Stream& stream() const {
    cl::refuse_forked_child();
    return *streamed_.stream;
  }
  const delegate::Streamed& streamed() const { return streamed_; }

  std::shared_ptr<Flight> start(const std::vector<const void*>& inputs,
                                const std::vector<void*>& outputs, bool now) {
    const cl::Counters before = cl::counters();
    auto flight = cl::left_to_parent(stream().start(inputs, outputs, now));
    delegate::Session inference;
    state_->count_invoke(inference, true, cl::counters() - before);
    return flight;
  }

 private:
  const std::shared_ptr<delegate::State> state_;
  const delegate::Streamed streamed_;
};

std::shared_ptr<NativeStream> make(const NativeDelegate& self, int lanes, bool verified,
                                   std::optional<std::uint64_t> report) {
  if (lanes < 1) throw OptionError("depth is " + std::to_string(lanes) + "; allowed: 1 and more");
  const WithoutPython released;
  return cl::left_to_parent(
      std::make_shared<NativeStream>(self.shared_state(), lanes, verified, report));
}

// A contiguous buffer of exactly so many bytes.
py::buffer_info view(const py::buffer& buffer, std::int64_t bytes, bool writable) {
  py::buffer_info info = buffer.request(writable);
  py::ssize_t stride = info.itemsize;
  for (py::ssize_t i = info.ndim - 1; i >= 0; --i) {
    const auto axis = static_cast<std::size_t>(i);
    if (info.shape[axis] > 1 && info.strides[axis] != stride)
      throw InternalError("a buffer is not contiguous");
    stride *= info.shape[axis];
  }
  if (info.size * info.itemsize != bytes)
    throw InternalError("a buffer of " + std::to_string(info.size * info.itemsize) +
                        " bytes instead of " + std::to_string(bytes));
  return info;
}

std::shared_ptr<Flight> start(NativeStream& self, const std::vector<py::buffer>& inputs,
                              const std::vector<std::optional<py::buffer>>& outputs, bool now) {
  const plan::Plan& plan = self.stream().plan();
  if (inputs.size() != plan.uploads.size() || outputs.size() != plan.downloads.size())
    throw InternalError("a wrong number of buffers");
  std::vector<py::buffer_info> views;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    views.push_back(view(inputs[i], plan.uploads[i].host_bytes, false));
    sources.push_back(views.back().ptr);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    targets.push_back(nullptr);
    if (!outputs[i]) continue;
    views.push_back(view(*outputs[i], plan.downloads[i].host_bytes, true));
    targets.back() = views.back().ptr;
  }
  const WithoutPython released;
  return self.start(sources, targets, now);
}

void wait(Flight& self) {
  cl::refuse_forked_child();
  self.wait();
}

std::shared_ptr<HostBlock> block_of(const Flight& self, std::size_t output) {
  auto block = self.block(output);
  return block == nullptr ? nullptr : cl::left_to_parent(std::move(block));
}

void read(const Flight& self, std::size_t output, const py::buffer& to) {
  const py::buffer_info info = view(to, self.host_bytes(output), true);
  const WithoutPython released;
  self.read(output, info.ptr);
}

}  // namespace

void bind_stream(py::module_& module) {
  py::class_<HostBlock, std::shared_ptr<HostBlock>>(module, "HostBlock", py::buffer_protocol(),
                                                    "Host memory that a stream reaches directly.")
      .def_buffer([](HostBlock& self) {
        return py::buffer_info(static_cast<std::uint8_t*>(self.data()),
                               static_cast<py::ssize_t>(self.bytes()));
      });
  py::class_<Flight, std::shared_ptr<Flight>>(module, "Flight", "One inference of a stream.")
      .def("wait", &wait, py::call_guard<WithoutPython>(), "Until its outputs are on the host.")
      .def("block", &block_of, py::arg("output"),
           "The block that holds an output; None where it has to be read.")
      .def("read", &read, py::arg("output"), py::arg("to"), "Copies an output to a buffer.");
  py::class_<NativeStream, std::shared_ptr<NativeStream>>(module, "NativeStream",
                                                          "Several inferences in flight.")
      .def_property_readonly("is_direct",
                             [](const NativeStream& s) { return s.stream().is_direct(); })
      .def_property_readonly("lanes", [](const NativeStream& s) { return s.stream().lanes(); })
      .def_property_readonly("inputs", [](const NativeStream& s) { return s.streamed().inputs; })
      .def_property_readonly("outputs", [](const NativeStream& s) { return s.streamed().outputs; })
      .def(
          "block",
          [](const NativeStream& s, std::size_t bytes) {
            return cl::left_to_parent(s.stream().block(bytes));
          },
          py::arg("bytes"), "Memory that start() takes without a copy.")
      .def(
          "has",
          [](const NativeStream& s, const py::buffer& data) {
            const py::buffer_info info = data.request();
            return s.stream().has(info.ptr, static_cast<std::size_t>(info.size * info.itemsize));
          },
          py::arg("data"), "Whether this is a block().")
      .def("start", &start, py::arg("inputs"), py::arg("outputs"), py::arg("now"),
           "Begins an inference; waits while all lanes are taken.");
  module.def(
      "make_stream", &make, py::arg("delegate"), py::arg("lanes"), py::arg("verified"),
      py::arg("report") = py::none(),
      "A stream of the model last prepared; an error with the reason where there is none, or "
      "where that model has another number than `report`.");
  module.def("last_report", &delegate::State::last_report,
             "The number of the model that this thread has prepared last, of its delegate's.");
}

}  // namespace clgpu::python
