"""The options of a delegate."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union, get_args

from clgpu_delegate.errors import OptionError

if TYPE_CHECKING:
    from typing_extensions import Unpack

Engines = Union[str, Mapping[str, str]]
Nodes = Union[str, Iterable[Union[int, str]]]
_Precision = Literal["fp32", "fp16", "tf32"]
_Operations = Literal["all", "core"]
_Tuning = Literal["auto", "off", "exhaustive"]
_DynamicRange = Literal["dequantize", "hybrid"]
_ZeroCopy = Literal["auto", "off"]
_MemoryPool = Literal["interpreter", "process"]
_Placement = Literal["all", "auto", "measured"]
_Verify = Union[Literal["off", "first"], int]


_BYTE_SIZES = "a number of bytes above 0, such a number with B, kB, MB, GB, KiB, MiB, GiB, or None"


class Settings(TypedDict, total=False):
    """The fields of `Options`, as keyword arguments."""

    device: str | int
    precision: _Precision
    ops: _Operations
    engines: Engines
    exclude: Nodes
    min_nodes: int
    warm_up: bool
    cache: str | os.PathLike[str]
    tuning: _Tuning
    half_io: bool
    memory_budget: int | str | None
    max_object: int | str | None
    row_band: int
    half_weights: bool
    dynamic_range: _DynamicRange
    zero_copy: _ZeroCopy
    share_memory: bool
    memory_pool: _MemoryPool
    profile: bool
    placement: _Placement
    verify: _Verify


@dataclasses.dataclass(frozen=True)
class Options:
    """How a delegate works. Name the fields: their order may change.

    Raises
    ------
    OptionError
        If a value is not allowed; the message lists those that are.

    Examples
    --------
    >>> Options(precision="fp16", exclude=["SOFTMAX", 12]).as_delegate_dict()
    {'precision': 'fp16', 'exclude': 'SOFTMAX,12'}
    """

    device: str | int = ""
    """OpenCL device: its index in `clgpu_delegate.devices`, or part of its own or its platform's
    name, in upper or lower case. Empty: the environment variable ``CLGPU_DEVICE``, or without it
    the first GPU, accelerator or CPU."""

    precision: _Precision = "fp32"
    """``"fp32"`` or ``"fp16"``: how float tensors are stored on the device. ``"tf32"`` stores them
    as ``"fp32"`` does, and rounds the factors of products to 10 bits of mantissa where the device
    multiplies such numbers faster (NVIDIA's tensor cores); ``"fp16"`` may do the same. Sums are
    always kept in float."""

    ops: _Operations = "all"
    """``"all"``, or ``"core"`` for convolutions, fully connected layers, matrix products,
    transposes and additions only."""

    engines: Engines = ""
    """Kernels to use, as ``{family: engine}`` or ``"family=engine,family=engine"``. An engine is a
    candidate's name or the part of it before an underscore. Alternatives are separated by ``|``;
    ``auto`` as the last one is the delegate's own choice: with ``{"conv2d": "winograd|auto"}``
    Winograd computes every convolution that it supports, and the delegate chooses for the others.
    A node that no alternative can compute is an error of the interpreter that names the node and
    the reason."""

    exclude: Nodes = ""
    """Nodes to leave on the CPU: indices or operation names, as a list or separated by commas."""

    min_nodes: int = 1
    """Partitions of fewer nodes stay on the CPU; 1 to 999999."""

    warm_up: bool = True
    """Run each kernel once while loading, so that the first inference is as fast as the others."""

    cache: str | os.PathLike[str] = "auto"
    """Where tuned choices and compiled programs are kept from process to process: the path of a
    file, ``"off"``, or ``"auto"``: the environment variable ``CLGPU_CACHE``, or without it
    ``clgpu_delegate/cache.sqlite`` in the user's cache folder."""

    tuning: _Tuning = "auto"
    """``"auto"``: use the kernels that `clgpu_delegate.tune` has measured as the fastest.
    ``"off"``: do not use them. ``"exhaustive"``: also measure, while loading, the kernels that have
    not been measured before, which may take minutes once."""

    half_io: bool = False
    """With ``precision="fp16"``, store the model's float inputs and outputs as half too; the host
    converts them, which halves their transfer and rounds the outputs to half."""

    memory_budget: int | str | None = ""
    """Device memory that a model may take, its weights included: bytes, or a text such as
    ``"64 MiB"`` or ``"1.5 GB"`` (units of 1024 and of 1000). To stay within it, large tensors are
    computed band by band, or wait on the host between their uses, and weights are uploaded when
    they are needed. A budget that no plan meets is an error of the interpreter that names the
    smallest one that would do. None or empty: what the device has."""

    max_object: int | str | None = ""
    """Largest single buffer, as `memory_budget`; never more than the device allows."""

    row_band: int = 0
    """Rows of an image that are computed at a time, through chains of nodes, wherever that is
    possible, so that the tensors between them never exist as a whole; 0 to 999999. 0: bands only
    where `memory_budget` or `max_object` call for them, as high as fits."""

    half_weights: bool = False
    """Store large weights as half on the device, where they fit, while arithmetic and the other
    tensors stay as ``precision`` says. With ``"fp16"`` they are half anyway."""

    dynamic_range: _DynamicRange = "dequantize"
    """How a model with int8 weights and float activations is computed. ``"dequantize"``: the
    weights stay int8 in memory and are read as the floats they stand for. ``"hybrid"``: TFLite's
    own arithmetic, which quantises activations to int8 row by row and multiplies integers."""

    zero_copy: _ZeroCopy = "auto"
    """``"auto"``: where device and host share memory, CPUs work on the interpreter's inputs and
    outputs in place, and other devices get them through mapped objects. ``"off"``: the driver
    copies them always, as it does for devices with memory of their own. See `Delegate.stats`."""

    share_memory: bool = True
    """Let intermediate tensors share memory where their lifetimes allow. Off, each has a buffer of
    its own, filled with NaN: a way to find kernels that read what nobody wrote."""

    memory_pool: _MemoryPool = "interpreter"
    """Who takes turns in the memory of intermediate tensors. ``"interpreter"``: the partitions of
    an interpreter, which never run at the same time. ``"process"``: all interpreters of the process
    whose delegates have this option and use the same device; their inferences wait for each
    other."""

    profile: bool = False
    """Record when each kernel launch and each transfer was queued, submitted, started and ended on
    the device, for `Delegate.profile`."""

    placement: _Placement = "all"
    """Which of the nodes that the device can compute it takes. ``"all"``: all of them. ``"auto"``:
    not the partitions that a cost model expects to be slower than the CPU. ``"measured"``: those
    that were measured as the fastest for this model on this device, the CPU alone included; the
    verdict is kept in the cache."""

    verify: _Verify = "off"
    """``"first"``: the first inference of each interpreter is computed by the CPU's kernels, too; a
    number N: every Nth one, the first included; 1 to 999999. What the device computed wrong is
    replaced, and computed in a safer way from then on. ``"off"``: nothing is checked."""

    def __post_init__(self) -> None:
        self._set("device", str(_checked("device", self.device, (str, int), "a name or an index")))
        self._one_of("precision", _Precision)
        self._one_of("ops", _Operations)
        self._one_of("memory_pool", _MemoryPool)
        self._one_of("tuning", _Tuning)
        self._one_of("dynamic_range", _DynamicRange)
        self._one_of("zero_copy", _ZeroCopy)
        self._one_of("placement", _Placement)
        self._set("verify", _verify(self.verify))
        self._set("engines", _join_engines(self.engines))
        self._set("exclude", _join_nodes(self.exclude))
        self._set("cache", _path("cache", self.cache))
        _checked("min_nodes", self.min_nodes, (int,), "1 to 999999")
        if not 1 <= self.min_nodes <= 999_999:
            raise OptionError(f"option 'min_nodes' is {self.min_nodes}; allowed: 1 to 999999")
        _checked("row_band", self.row_band, (int,), "0 to 999999")
        if not 0 <= self.row_band <= 999_999:
            raise OptionError(f"option 'row_band' is {self.row_band}; allowed: 0 to 999999")
        for size in ("memory_budget", "max_object"):
            self._set(size, _byte_size(size, getattr(self, size)))
        for switch in ("warm_up", "half_io", "half_weights", "share_memory", "profile"):
            value = getattr(self, switch)
            if not isinstance(value, bool):
                raise OptionError(f"option {switch!r} is {value!r}; allowed: True, False")
        for key, value in self.as_delegate_dict().items():
            if ":" in value or ";" in value:
                # TFLite's command line tools split "key:value;key:value" at these.
                raise OptionError(f"option {key!r} is {value!r}; ':' and ';' are not allowed")

    @classmethod
    def from_settings(cls, **settings: Unpack[Settings]) -> Options:
        """Make options of keyword arguments; an unknown name is an `OptionError`."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in names:
                close = difflib.get_close_matches(name, names, 1)
                hint = f" (did you mean {close[0]!r}?)" if close else ""
                raise OptionError(f"unknown option {name!r}{hint}; options are: {', '.join(names)}")
        return cls(**settings)

    def as_delegate_dict(self) -> dict[str, str]:
        """The options that differ from their defaults, as the strings a delegate is given.

        These are what ``load_delegate(clgpu_delegate.plugin_path(), options)`` of a runtime takes.
        """
        changed = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                changed[field.name] = _text(value)
        return changed

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _one_of(self, name: str, values: Any) -> None:
        value, allowed = getattr(self, name), get_args(values)
        if value not in allowed:
            raise OptionError(f"option {name!r} is {value!r}; allowed: {', '.join(allowed)}")


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _checked(name: str, value: object, types: tuple[type, ...], allowed: str) -> Any:
    if not isinstance(value, types) or isinstance(value, bool):
        raise OptionError(f"option {name!r} is {value!r}; allowed: {allowed}")
    return value


def _verify(value: object) -> str | int:
    if value in ("off", "first"):
        return str(value)
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        match = re.fullmatch(r"\d{1,6}", str(value))
        if match and int(match[0]) >= 1:
            return int(match[0])
    raise OptionError(f"option 'verify' is {value!r}; allowed: off, first, 1 to 999999")


def _byte_size(name: str, value: object) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+) *([KMGT]i?B|B)?", str(value), re.IGNORECASE)
        if match and float(match[1]) > 0:
            return str(value)
    raise OptionError(f"option {name!r} is {value!r}; allowed: {_BYTE_SIZES}")


def _path(name: str, value: object) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise OptionError(f"option {name!r} is {value!r}; allowed: auto, off, or a path")
    return str(Path(os.fsdecode(value)).expanduser())


def _join_engines(engines: Engines) -> str:
    if isinstance(engines, str):
        return engines
    if not isinstance(engines, Mapping):
        raise OptionError(f"option 'engines' is {engines!r}; allowed: a dict of family: candidate")
    for item in [*engines, *engines.values()]:
        if not isinstance(item, str) or not item or set(item) & set(",="):
            raise OptionError(f"option 'engines' has {item!r}; allowed: names of kernels")
    return ",".join(f"{family}={candidate}" for family, candidate in engines.items())


def _join_nodes(nodes: Nodes) -> str:
    if isinstance(nodes, str):
        return nodes
    if not isinstance(nodes, Iterable):
        raise OptionError(f"option 'exclude' is {nodes!r}; allowed: node indices and op names")
    items = [str(_checked("exclude", n, (str, int), "node indices and op names")) for n in nodes]
    return ",".join(items)
