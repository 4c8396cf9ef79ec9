// Delegates of LiteRT's compiled models.
#include <pybind11/stl.h>

#include "litert/delegates.hpp"
#include "litert/gpu_options.hpp"
#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

py::list delegates() {
  py::list found;
  for (const litert::Made& made : litert::living()) {
    py::object entry = py::cast(NativeDelegate());
    if (entry.cast<NativeDelegate&>().borrow(made.delegate))
      found.append(py::make_tuple(std::move(entry), made.options));
  }
  return found;
}

py::tuple gpu_options(const std::string& toml) {
  const litert::GpuOptions read = litert::read_gpu_options(toml);
  return py::make_tuple(read.options, read.ignored);
}

}  // namespace

void bind_litert(py::module_& module) {
  module.def("litert_offer", &litert::offer, py::arg("folder"), py::arg("options"),
             "Options for the models of LiteRT environments with this runtime library folder.");
  module.def("litert_withdraw", &litert::withdraw, py::arg("folder"), "Takes them back.");
  module.def("litert_delegates", &delegates,
             "Delegates that LiteRT has made and not destroyed, each with its options as strings.");
  module.def("litert_gpu_options", &gpu_options, py::arg("toml"),
             "LiteRT's GPU options as options of a delegate, and the keys without effect.");
}

}  // namespace clgpu::python
