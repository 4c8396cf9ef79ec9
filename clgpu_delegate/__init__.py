"""An OpenCL delegate for TensorFlow Lite.

>>> import clgpu_delegate
>>> from ai_edge_litert.interpreter import Interpreter  # doctest: +SKIP
>>> Interpreter("model.tflite", experimental_delegates=[clgpu_delegate.load()])  # doctest: +SKIP
"""

from __future__ import annotations

try:
    from clgpu_delegate.base import interrupts

    interrupts.watch()  # before all that takes longer
except KeyboardInterrupt:
    from clgpu_delegate.base import interrupts

    interrupts.end_command()
    raise

from typing import TYPE_CHECKING, Any

from clgpu_delegate.extension import folder_of_another_copy

# In a clone this is the source folder. All that follows comes from the installed package then.
if (_folder := folder_of_another_copy()) is not None:
    __path__[:] = [_folder]

from clgpu_delegate import errors  # first: it handles a missing extension

# Not on first use as the others: importing the module of the same name would replace the function.
from clgpu_delegate.devices import devices
from clgpu_delegate.doctor import doctor

if TYPE_CHECKING:
    from clgpu_delegate.capsule import Capture, Replay, capture, replay
    from clgpu_delegate.delegate import Delegate, LaunchTime, load, plugin_path
    from clgpu_delegate.devices import Abilities, Device
    from clgpu_delegate.doctor.finding import Diagnosis, Finding
    from clgpu_delegate.errors import (
        BuildError,
        ClgpuError,
        DependencyError,
        DeviceError,
        FileError,
        InputError,
        InternalError,
        ModelError,
        OpenCLError,
        OptionError,
        PoolError,
        QuantizationError,
        RuntimeNotFoundError,
        ShapeError,
    )
    from clgpu_delegate.generation import Generation, Generator
    from clgpu_delegate.inspection import explain_model, map_memory
    from clgpu_delegate.litert import (
        LiteRtSwitch,
        litert_delegates,
        litert_environment,
        litert_off,
        litert_on,
        litert_status,
    )
    from clgpu_delegate.measure.benchmarking import Benchmark, Measurement, benchmark
    from clgpu_delegate.measure.ceilings import Ceiling, Ceilings, ceilings
    from clgpu_delegate.measure.comparison import Comparison, compare
    from clgpu_delegate.measure.profiling import profile_model
    from clgpu_delegate.measure.quickstart import Quickstart, quickstart
    from clgpu_delegate.measure.tuning import TunedLayer, Tuning, tune
    from clgpu_delegate.options import Options
    from clgpu_delegate.placement import Placement, PlacementCandidate, measure_placement
    from clgpu_delegate.precision import (
        ChannelMeans,
        Int8Scale,
        PrecisionChange,
        PrecisionPlan,
        PrecisionPoint,
    )
    from clgpu_delegate.profiling import Invoke, Launch, NodeProfile, Profile, Totals
    from clgpu_delegate.quantization import (
        Observer,
        Quantization,
        QuantizedLayer,
        pseudo_quantize,
        quantize,
    )
    from clgpu_delegate.report.explanation import Explanation
    from clgpu_delegate.report.memory import Block, MemoryMap, MemoryObject, PartitionMemory
    from clgpu_delegate.report.parts import (
        EngineFault,
        Failure,
        Mixed,
        Node,
        Partition,
        PassStep,
        Refusal,
        Tensor,
    )
    from clgpu_delegate.report.placed import ExpectedPartition, Placed
    from clgpu_delegate.report.planned import FloatTensor, NodePlan, PlannedChange
    from clgpu_delegate.runner import Pool, PoolDevice, Runner, TensorSpec

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """Import a public name, or a module of this package, when it is first used."""
        import importlib  # noqa: PLC0415

        if name == "__version__":
            value = _version()
        elif name in _MODULE_OF:
            module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
            value = getattr(module, name)
        elif name in _MODULES:
            value = importlib.import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("clgpu_delegate")
    except PackageNotFoundError:  # imported from a folder that was not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return list(__all__)


# Module -> the public names that are imported from it when they are first used.
_NAMES = {
    "capsule": "Capture Replay capture replay",
    "delegate": "Delegate LaunchTime load plugin_path",
    "devices": "Abilities Device",
    "doctor.finding": "Diagnosis Finding",
    "errors": (
        "BuildError ClgpuError DependencyError DeviceError FileError InputError "
        "InternalError ModelError OpenCLError OptionError PoolError QuantizationError "
        "RuntimeNotFoundError ShapeError"
    ),
    "generation": "Generation Generator",
    "inspection": "explain_model map_memory",
    "litert": (
        "LiteRtSwitch litert_delegates litert_environment litert_off litert_on litert_status"
    ),
    "measure.benchmarking": "Benchmark Measurement benchmark",
    "measure.ceilings": "Ceiling Ceilings ceilings",
    "measure.comparison": "Comparison compare",
    "measure.profiling": "profile_model",
    "measure.quickstart": "Quickstart quickstart",
    "measure.tuning": "TunedLayer Tuning tune",
    "options": "Options",
    "precision": "ChannelMeans Int8Scale PrecisionChange PrecisionPlan PrecisionPoint",
    "placement": "Placement PlacementCandidate measure_placement",
    "profiling": "Invoke Launch NodeProfile Profile Totals",
    "quantization": "Observer Quantization QuantizedLayer pseudo_quantize quantize",
    "report.explanation": "Explanation",
    "report.memory": "Block MemoryMap MemoryObject PartitionMemory",
    "report.parts": "EngineFault Failure Mixed Node Partition PassStep Refusal Tensor",
    "report.planned": "FloatTensor NodePlan PlannedChange",
    "report.placed": "ExpectedPartition Placed",
    "runner": "Pool PoolDevice Runner TensorSpec",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
# Further modules and packages that programs may use without importing them.
_MODULES = frozenset(
    ("cache", "capsule", "delegate", "inspection", "litert", "measure", "native", "options",
     "placement", "profiling", "quantization", "ray", "report", "runner", "runtimes", "tflite")
)  # fmt: skip

__all__ = [
    "Abilities",
    "Benchmark",
    "Block",
    "BuildError",
    "Capture",
    "Ceiling",
    "Ceilings",
    "ChannelMeans",
    "ClgpuError",
    "Comparison",
    "Delegate",
    "DependencyError",
    "Device",
    "DeviceError",
    "Diagnosis",
    "EngineFault",
    "ExpectedPartition",
    "Explanation",
    "Failure",
    "FileError",
    "Finding",
    "FloatTensor",
    "Generation",
    "Generator",
    "InputError",
    "Int8Scale",
    "InternalError",
    "Invoke",
    "Launch",
    "LaunchTime",
    "LiteRtSwitch",
    "Measurement",
    "MemoryMap",
    "MemoryObject",
    "Mixed",
    "ModelError",
    "Node",
    "NodePlan",
    "NodeProfile",
    "Observer",
    "OpenCLError",
    "OptionError",
    "Options",
    "Partition",
    "PartitionMemory",
    "PassStep",
    "Placed",
    "Placement",
    "PlacementCandidate",
    "PlannedChange",
    "Pool",
    "PoolDevice",
    "PoolError",
    "PrecisionChange",
    "PrecisionPlan",
    "PrecisionPoint",
    "Profile",
    "Quantization",
    "QuantizationError",
    "QuantizedLayer",
    "Quickstart",
    "Refusal",
    "Replay",
    "Runner",
    "RuntimeNotFoundError",
    "ShapeError",
    "Tensor",
    "TensorSpec",
    "Totals",
    "TunedLayer",
    "Tuning",
    "__version__",
    "benchmark",
    "capture",
    "ceilings",
    "compare",
    "devices",
    "doctor",
    "errors",
    "explain_model",
    "litert_delegates",
    "litert_environment",
    "litert_off",
    "litert_on",
    "litert_status",
    "load",
    "map_memory",
    "measure_placement",
    "plugin_path",
    "profile_model",
    "pseudo_quantize",
    "quantize",
    "quickstart",
    "replay",
    "tune",
]
