"""The options of a delegate.

Their table is src_cpp/delegate/options.cpp; what stands between marks here is made of it.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union

from clgpu_delegate import _core
from clgpu_delegate.errors import OptionError
from clgpu_delegate.precision import PlanText, PrecisionPlan

if TYPE_CHECKING:
    from typing_extensions import Unpack

Engines = Union[str, Mapping[str, str]]
Plan = Union["os.PathLike[str]", PrecisionPlan]
Nodes = Union[str, Iterable[Union[int, str]]]
Carried = Union[str, Mapping[str, Mapping[int, tuple[int, ...]]]]
_Row = dict[str, Any]  # of _core.option_table()
_Function = TypeVar("_Function", bound=Callable[..., Any])

_PLAN = "model="  # how the text of a plan begins
_BYTE_SIZES = "a number of bytes above 0, such a number with B, kB, MB, GB, KiB, MiB, GiB, or None"


class Settings(TypedDict, total=False):
    """The fields of `Options`, as keyword arguments."""

    # options: settings
    device: str | int
    precision: Literal["fp32", "fp16", "tf32", "mixed"] | Plan
    sums: Literal["float", "half"]
    ops: Literal["all", "core"]
    engines: Engines
    exclude: Nodes
    min_nodes: int
    warm_up: bool
    cache: str | os.PathLike[str]
    tuning: Literal["auto", "off", "exhaustive"]
    chain: Literal["auto", "off", "on"]
    command_list: Literal["auto", "off", "on"]
    half_io: bool
    memory_budget: int | str | None
    max_object: int | str | None
    row_band: int
    reuse: Literal["off"] | float
    half_weights: bool
    dynamic_range: Literal["dequantize", "hybrid"]
    experts: Literal["sparse", "dense"]
    zero_copy: Literal["auto", "off"]
    pin_tensors: bool
    share_memory: bool
    memory_pool: Literal["interpreter", "process"]
    profile: bool
    placement: Literal["all", "auto", "measured"]
    priority: Literal["default", "low", "normal", "high"]
    performance: Literal["default", "low", "normal", "high"]
    isolate_builds: Literal["auto", "off", "on"]
    carry: Carried
    verify: Literal["off", "first"] | int
    # /options


@dataclasses.dataclass(frozen=True)
class Options:
    """How a delegate works. Name the fields: their order may change.

    Raises
    ------
    OptionError
        If a value is not allowed; the message lists those that are.

    Examples
    --------
    >>> clgpu_delegate.Options(precision="fp16", exclude=["SOFTMAX", 12]).as_delegate_dict()
    {'precision': 'fp16', 'exclude': 'SOFTMAX,12'}
    """

    # options: fields
    device: str | int = ""
    """OpenCL device: its index, or part of its own or its platform's name; empty: the variable
    CLGPU_DEVICE, or without it the first GPU, accelerator or CPU. `clgpu_delegate.devices` lists
    indices and names; upper and lower case are the same."""

    precision: Literal["fp32", "fp16", "tf32", "mixed"] | Plan = "fp32"
    """How float tensors are stored on the device: as float, as half, as float, but with factors of
    products rounded to TF32 where that is faster, or each as a plan says; sums are kept in float
    unless sums says otherwise. ``"tf32"`` rounds the factors to 10 bits of mantissa where the
    device multiplies such numbers faster (NVIDIA's tensor cores); ``"fp16"`` may do the same.
    ``"mixed"``: the plan that `clgpu_delegate.tune` with ``max_error`` has kept for this model and
    this device; ``"fp32"`` where there is none. A plan is also accepted itself: a
    `clgpu_delegate.PrecisionPlan`, or the path of its file, which ends in ``.json``."""

    sums: Literal["float", "half"] = "float"
    """With precision fp16, mixed or a plan: whether products are added in float, or up to 32 at a
    time in half and these sums in float, which GPUs of phones do at twice the rate. ``"half"``:
    convolutions, FULLY_CONNECTED and BATCH_MATMUL have such kernels, which come first on Adreno,
    Mali and PowerVR; other devices take them if `clgpu_delegate.tune` finds them faster or
    ``engines`` names them. `Node.sums` tells what each node adds. The error of a network is one to
    three times that of fp16 with float sums. A sum of 32 products beyond 65504 becomes infinite.
    With another precision, or on a device without half arithmetic, sums are float, and a note of
    `Delegate.explain` says so."""

    ops: Literal["all", "core"] = "all"
    """Operations to claim; core has convolutions, fully connected layers, matrix products,
    transposes and additions only."""

    engines: Engines = ""
    """Kernels to use, as family=engine,family=engine; auto as the last engine of a family leaves
    the other nodes to the delegate's choice. In Python also as ``{family: engine}``. An engine is a
    candidate's name or the part of it before an underscore. Alternatives are separated by ``|``:
    with ``{"conv2d": "winograd|auto"}`` Winograd computes every convolution that it supports, and
    the delegate chooses for the others. A node that no alternative can compute is an error of the
    interpreter that names the node and the reason."""

    exclude: Nodes = ""
    """Nodes to leave on the CPU: indices or operation names, separated by commas. In Python also as
    a list."""

    min_nodes: int = 1
    """Partitions of fewer nodes stay on the CPU; 1 to 999999."""

    warm_up: bool = True
    """Run each kernel once while loading, so that the first inference is as fast as the others."""

    cache: str | os.PathLike[str] = "auto"
    """Where tuned choices and compiled programs are stored for later processes: the path of a file,
    off, or auto: the variable CLGPU_CACHE, or without it a file in the user's cache folder. The
    file in that folder is ``clgpu_delegate/cache.sqlite``."""

    tuning: Literal["auto", "off", "exhaustive"] = "auto"
    """Whether to use the kernels that were measured as the fastest; exhaustive also measures, while
    loading, layers without measurements. ``"auto"``: use the kernels that `clgpu_delegate.tune` has
    measured as the fastest. ``"off"``: do not use them. ``"exhaustive"`` may take minutes once."""

    chain: Literal["auto", "off", "on"] = "auto"
    """Whether consecutive kernel launches run as the stages of one kernel. That saves the time of
    the launches, which is most of the time of small networks. ``"auto"``: on NVIDIA's GPUs, where
    it was measured to be faster while loading, chain by chain. ``"on"``: without measuring, on
    every device whose work-groups can wait for each other. A chain whose kernel was measured to
    take more than 0.1 s is divided, since displays and phones stop long kernels. Inferences that
    are profiled or in flight are launched kernel by kernel. ``"off"`` also launches one by one what
    is a bundle otherwise, on CPUs, too: small launches side by side in one. See
    `Delegate.stats`."""

    command_list: Literal["auto", "off", "on"] = "auto"
    """Whether the driver records the kernel launches of an inference once and then takes them in
    one call. That saves host time where a launch costs much. It needs one of the extensions
    ``cl_khr_command_buffer`` and ``cl_qcom_recordable_queues`` (Adreno). ``"auto"``: where it was
    measured to be faster while loading, except on CPUs. ``"on"``: without measuring, wherever a
    driver has one of them. Inferences that are profiled, and models whose launches run in chains
    (see ``chain``), whose tensors wait on the host, or with a WHILE or IF that the host runs, are
    launched kernel by kernel. See `Delegate.stats`."""

    half_io: bool = False
    """With fp16 or a plan, store the model's float inputs and outputs as half, too. The host
    converts them, which halves their transfer and rounds the outputs to half. Give it to `tune`
    with ``max_error``, too: the bound of a plan counts these roundings only then.
    ``precision="mixed"`` without a plan is fp32, where it has no effect."""

    memory_budget: int | str | None = ""
    """Device memory that a model may take, its weights included, such as 64 MiB or 1.5 GB; empty:
    the memory of the device. Bytes, or a text with a unit (of 1024 or of 1000). To stay within it,
    large tensors are computed band by band, or wait on the host between their uses, and weights are
    uploaded when they are needed. A budget that no plan meets is an error of the interpreter that
    names the smallest one that is sufficient. None means the same as empty."""

    max_object: int | str | None = ""
    """Largest single buffer, in the form of memory_budget; empty: the limit of the device. It never
    exceeds the limit of the device. None means the same as empty."""

    row_band: int = 0
    """Rows of an image that nodes in a row compute at a time; 0: bands only if memory_budget or
    max_object require them, with as many rows as fit; 0 to 999999. Wherever bands are possible, the
    tensors between the nodes never exist as a whole. With ``reuse`` these are rows of the inputs,
    nodes with bands keep their whole results, and 0 means as many rows as seem worth a launch."""

    reuse: Literal["off"] | float = "off"
    """For sequences of inputs that are alike, such as frames of a camera: the largest change of an
    element of an input that does not count; what depends on rows without changes is kept from the
    inference before. In units of the inputs, of integers in steps. The results are those of inputs
    that differ from the ones given by at most this much in each element; 0 keeps only what equal
    inputs give. Kept tensors take device memory of their own. ``"off"``: everything is computed
    each time."""

    half_weights: bool = False
    """Store large weights as half on the device, where they fit, while arithmetic and the other
    tensors follow precision. With ``"fp16"`` they are half anyway."""

    dynamic_range: Literal["dequantize", "hybrid"] = "dequantize"
    """How a model with int8 weights and float activations is computed: in float, or in integers as
    TensorFlow Lite does. ``"dequantize"``: the weights stay int8 in memory and are read as the
    floats they stand for. ``"hybrid"``: TFLite's own arithmetic, which quantises activations to
    int8 row by row and multiplies integers."""

    experts: Literal["sparse", "dense"] = "sparse"
    """Whether experts of a mixture that no sample has chosen are skipped on the device, or computed
    and multiplied by zero. ``"sparse"``: kernels of an expert look at its gate, which a TOPK_V2 has
    made sparse, and return if it is zero, or compute the experts that were chosen together;
    matrices of experts that are gathered by index are read in place; kernels of small graphs of an
    IF look at its condition. The result is zero where the gate is zero, even where the expert's own
    result would be infinite or NaN; ``"dense"`` gives NaN there, as the runtime does, and the host
    chooses between the graphs of an IF."""

    zero_copy: Literal["auto", "off"] = "auto"
    """Whether inputs and outputs are used without a copy where device and host share memory.
    ``"auto"``: where they do, CPUs work on the interpreter's inputs and outputs in place, and other
    devices get them through mapped objects. ``"off"``: the driver always copies them, as it does
    for devices with separate memory. See `Delegate.stats`."""

    pin_tensors: bool = False
    """Lock the memory of the runtime's inputs and outputs in place while it stays where it is, so
    that devices with memory of their own copy it faster. For tensors of 64 KiB and more on such
    devices, from the second inference on, which takes up to a millisecond longer. The driver keeps
    the pages: the application must not free, unmap or replace this memory between inferences except
    by `allocate_tensors` and by the end of the interpreter, or the device reads and writes the old
    pages. See `Delegate.stats`."""

    share_memory: bool = True
    """Let intermediate tensors share memory where their lifetimes allow. If off, each has a
    separate buffer filled with NaN, which exposes kernels that read unwritten elements."""

    memory_pool: Literal["interpreter", "process"] = "interpreter"
    """What shares one pool of memory for intermediate tensors: the partitions of an interpreter, or
    all interpreters of the process with this option. ``"interpreter"``: its partitions never run at
    the same time. ``"process"``: all interpreters of the process whose delegates have this option
    and use the same device; their inferences wait for each other."""

    profile: bool = False
    """Record when each kernel launch and each transfer was queued, submitted, started and ended on
    the device. `Delegate.profile` returns these times."""

    placement: Literal["all", "auto", "measured"] = "all"
    """Which supported nodes run on the device: all, those that a cost model expects to be faster
    there, or those of the fastest measured placement. ``"auto"``: without partitions that a cost
    model expects to be slower than the CPU. ``"measured"``: the nodes of the fastest placement
    measured for this model on this device, possibly none; the cache stores the verdict."""

    priority: Literal["default", "low", "normal", "high"] = "default"
    """Priority of the model's work on the device, before the work of other queues or applications;
    default: the driver is not told. A hint, for devices that list ``cl_khr_priority_hints`` or
    ``cl_qcom_priority_hint``; on others, and where the driver refuses it, a note says that it has
    no effect. Work of high priority may make a user interface that the same GPU draws late."""

    performance: Literal["default", "low", "normal", "high"] = "default"
    """Clock rates of the device while it works on the model, for GPUs of Qualcomm; default: the
    driver is not told. A hint, for devices that list ``cl_qcom_perf_hint``: a high level takes more
    power. On others, and where the driver refuses it, a note says that it has no effect."""

    isolate_builds: Literal["auto", "off", "on"] = "auto"
    """Whether a child process builds each program first, so that a compiler that ends the process
    does not end this one. ``"auto"``: with drivers whose compilers were not tested, such as Mesa's.
    A candidate at whose program the child ends twice is left out. Programs that the cache has need
    no child. Not on Android, where apps start no programs of their own."""

    carry: Carried = ""
    """Tensors that stay on the device between inferences, as name=graph/input/output with the
    indices of a graph, of its input and of the output with the next value, and further graphs after
    a plus sign. Such as the caches of a language model, see `clgpu_delegate.Generator`, which sets
    this option. The interpreter's tensors are neither read nor written: `Delegate.carried` has the
    values, which begin as zeros. An output as its own input, such as ``0/9/9``, only stays on the
    device; with a number behind it, as in ``0/9/9/40``, each inference also finds so many of the
    largest elements of each row, with 0 the index of the largest and the sum. In a graph where
    other nodes than those of one partition use them, they are ordinary inputs and outputs."""

    verify: Literal["off", "first"] | int = "off"
    """Compute the first inference, or every Nth one, with the CPU's kernels, too, and replace wrong
    results. ``"first"``: the first inference of each interpreter; a number N: every Nth one, the
    first included. Wrong parts use safer kernels from then on. ``"off"``: nothing is checked."""
    # /options

    def __post_init__(self) -> None:
        for row in _core.option_table():
            value = _CHECKS[row["kind"]](row, getattr(self, row["key"]))
            object.__setattr__(self, row["key"], value)
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

    @classmethod
    def from_delegate_dict(cls, texts: Mapping[str, str]) -> Options:
        """Options from the strings that a delegate is given: the inverse of `as_delegate_dict`.

        Raises
        ------
        OptionError
            As `from_settings`.
        """
        kinds = {row["key"]: row["kind"] for row in _core.option_table()}
        values: dict[str, Any] = {}
        for key, text in texts.items():
            kind = kinds.get(key)
            is_count = kind == "count" and text.isdecimal()
            is_switch = kind == "switch" and text in {"on", "off"}
            values[key] = int(text) if is_count else text == "on" if is_switch else text
        return cls.from_settings(**values)

    @property
    def precision_name(self) -> str:
        """The option `precision` as a word: ``"mixed"`` of a plan."""
        return "mixed" if str(self.precision).startswith(_PLAN) else str(self.precision)

    @property
    def plan(self) -> PrecisionPlan | None:
        """The plan that the option `precision` was given as; None of a word, and of a text."""
        value: object = self.precision
        return value.plan if isinstance(value, PlanText) else None

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


def with_settings(function: _Function) -> _Function:
    """Let ``help()`` and completion of a function with ``**settings`` show the fields of `Options`.

    Type checkers know them from `Settings`.
    """
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {parameter.name for parameter in own}
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=field.type)
        for field in dataclasses.fields(Options)
        if field.name not in names
    ]
    changed: Any = function
    changed.__signature__ = signature.replace(parameters=[*own, *added])
    return function


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _wrong(row: _Row, value: object, allowed: str) -> OptionError:
    return OptionError(f"option {row['key']!r} is {value!r}; allowed: {allowed}")


def _typed(row: _Row, value: object, types: tuple[type, ...], allowed: str) -> Any:
    if not isinstance(value, types) or isinstance(value, bool):
        raise _wrong(row, value, allowed)
    return value


def _device(row: _Row, value: object) -> str:
    return str(_typed(row, value, (str, int), "a name or an index"))


def _choice(row: _Row, value: object) -> object:
    if value not in row["words"]:
        raise _wrong(row, value, row["allowed"])
    return value


def _switch(row: _Row, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(row, value, "True, False")
    return value


def _count(row: _Row, value: object) -> int:
    count: int = _typed(row, value, (int,), row["allowed"])
    if not row["least"] <= count <= row["most"]:
        raise _wrong(row, value, row["allowed"])
    return count


def _choice_or_count(row: _Row, value: object) -> str | int:
    if value in row["words"]:
        return str(value)
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        match = re.fullmatch(r"\d{1,6}", str(value))
        if match and row["least"] <= int(match[0]) <= row["most"]:
            return int(match[0])
    raise _wrong(row, value, row["allowed"])


def _choice_or_number(row: _Row, value: object) -> str | float:
    if value in row["words"]:
        return str(value)
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if 0 <= number < math.inf:
            return number
    raise _wrong(row, value, row["allowed"])


def _precision(row: _Row, value: object) -> str:
    if isinstance(value, PrecisionPlan):
        return PlanText.of(value)
    if isinstance(value, str) and (value in row["words"] or value.startswith(_PLAN)):
        return value
    if isinstance(value, os.PathLike) or (isinstance(value, str) and value.endswith(".json")):
        return PlanText.of(PrecisionPlan.load(value))
    raise _wrong(row, value, row["allowed"])


def _byte_size(row: _Row, value: object) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+) *([KMGT]i?B|B)?", str(value), re.IGNORECASE)
        if match and float(match[1]) > 0:
            return str(value)
    raise _wrong(row, value, _BYTE_SIZES)


def _path(row: _Row, value: object) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise _wrong(row, value, "auto, off, or a path")
    return str(Path(os.fsdecode(value)).expanduser())


def _engines(row: _Row, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise _wrong(row, value, "a dict of family: candidate")
    for item in [*value, *value.values()]:
        if not isinstance(item, str) or not item or set(item) & set(",="):
            raise OptionError(f"option {row['key']!r} has {item!r}; allowed: names of kernels")
    return ",".join(f"{family}={candidate}" for family, candidate in value.items())


def _nodes(row: _Row, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable):
        raise _wrong(row, value, "node indices and op names")
    items = [str(_typed(row, node, (str, int), "node indices and op names")) for node in value]
    return ",".join(items)


def _carried(row: _Row, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise _wrong(row, value, "a dict of name: {graph: (input, output)}")
    texts = []
    for name, graphs in value.items():
        if not isinstance(name, str) or not name or set(name) & set(",=+/ "):
            raise OptionError(f"option {row['key']!r} has {name!r}; allowed: names without ,=+/")
        if not isinstance(graphs, Mapping) or not graphs:
            raise _wrong(row, value, "a dict of name: {graph: (input, output)}")
        try:
            pairs = [
                "/".join(str(_index(number)) for number in (graph, before, after, *largest))
                for graph, (before, after, *largest) in graphs.items()
            ]
        except (TypeError, ValueError):
            raise _wrong(row, value, "a dict of name: {graph: (input, output)}") from None
        texts.append(f"{name}={'+'.join(pairs)}")
    return ",".join(texts)


def _index(value: object) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)  # type: ignore[arg-type]


# By the kind of value: a function that takes a row of the table and a value, and returns the
# value to store.
_CHECKS: dict[str, Callable[[_Row, object], object]] = {
    "device": _device,
    "choice": _choice,
    "switch": _switch,
    "count": _count,
    "choice or count": _choice_or_count,
    "choice or number": _choice_or_number,
    "choice or plan": _precision,
    "bytes": _byte_size,
    "path": _path,
    "engines": _engines,
    "nodes": _nodes,
    "carried": _carried,
}
