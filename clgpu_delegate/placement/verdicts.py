"""Looks up the verdicts of measured placements, or measures and stores them, for a delegate."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from clgpu_delegate import _core, cache, native
from clgpu_delegate.base.files import read_model
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.options import Options
from clgpu_delegate.placement import contest
from clgpu_delegate.placement.verdict import Timing, Verdict

if TYPE_CHECKING:
    from types import FrameType

KIND = "placement"
_FORMAT = 2

# Options that do not affect what runs, only storage and observation.
_NEUTRAL = ("placement", "cache", "verify", "profile", "warm_up")

_here = threading.Lock()  # one measurement at a time
_unkept: dict[str, Verdict] = {}  # used without a store


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a verdict is about: a model in an interpreter with a delegate."""

    content: bytes
    options: Options
    interpreter: Any
    """The class."""

    runtime: str
    """Name and version."""

    threads: int
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further options of the class that are not its defaults."""

    def make(self, delegates: Sequence[object]) -> Any:
        """Make an interpreter; raises what the class raises."""
        return self.interpreter(
            model_content=self.content,
            num_threads=self.threads,
            experimental_delegates=list(delegates),
            **self.arguments,
        )

    def key(self) -> str:
        """Hash of everything that the outcome depends on."""
        all_nodes = dataclasses.replace(self.options, placement="all")
        device = native.device_of(native.make(all_nodes), all_nodes)
        options = self.options.as_delegate_dict()
        kernels = _core.kernel_sources()
        facts = {
            "format": _FORMAT,
            "model": hashlib.sha256(self.content).hexdigest(),
            "device": [device.name, device.platform, device.vendor, device.driver_version],
            "options": {k: v for k, v in options.items() if k not in (*_NEUTRAL, "device")},
            "runtime": self.runtime,
            "threads": self.threads,
            "arguments": {name: _plain(value) for name, value in self.arguments.items()},
            "kernels": _core.sha256("".join(kernels[name] for name in sorted(kernels)).encode()),
        }
        return _core.sha256(json.dumps(facts, sort_keys=True).encode())


def settle(
    subject: Subject, *, again: bool = False, progress: contest.Progress | None = None
) -> Verdict:
    """The verdict that is kept, or a new one; errors as `contest.measure`."""
    key = subject.key()
    store = _store(subject.options)
    with _here:
        kept = None if again else _find(store, key)
        if kept is not None:
            return kept
        options = subject.options
        verdict = contest.measure(subject.make, options, subject.runtime, subject.threads, progress)
        if store is None:
            _unkept[key] = dataclasses.replace(verdict, source="kept")
        else:
            label = f"{verdict.choice} on {verdict.device}, {len(verdict.ops)} nodes"
            store.put(KIND, key, _write(verdict), label)
        return verdict


def hand_over(native: _core.NativeDelegate, options: Options, frame: FrameType | None) -> None:
    """Give the core the verdict for the interpreter whose ``__init__`` is `frame`; never raises."""
    try:
        subject = caller(options, frame)
        if subject is None:
            native.set_verdict(None, "the interpreter's model is not known")
            return
        verdict = settle(subject)
        if verdict.ops:
            native.set_verdict(verdict.as_native(), "")
        else:
            problems = [timing.problem for timing in verdict.timings if timing.name == "all"]
            native.set_verdict(None, f"the device does not run it ({'; '.join(problems)})")
    except Exception as error:  # a failing measurement must not break the interpreter
        text = one_line(error) or type(error).__name__
        native.set_verdict(None, f"measuring failed ({text})")


def caller(options: Options, frame: FrameType | None) -> Subject | None:
    """What a frame of a runtime's ``Interpreter.__init__`` is about; None for any other frame."""
    if frame is None or frame.f_code.co_name != "__init__":
        return None
    names = frame.f_locals
    if not {"self", "model_path", "model_content", "num_threads"} <= set(names):
        return None
    owner = next(
        (
            base
            for base in type(names["self"]).__mro__
            if getattr(base.__dict__.get("__init__"), "__code__", None) is frame.f_code
        ),
        None,
    )
    if owner is None:
        return None
    if names["model_content"]:
        content = bytes(names["model_content"])
    elif names["model_path"]:
        content = read_model(names["model_path"])
    else:
        return None
    known = {"self", "model_path", "model_content", "num_threads", "experimental_delegates"}
    parameters = inspect.signature(owner.__dict__["__init__"]).parameters
    return Subject(
        content=content,
        options=options,
        interpreter=owner,
        runtime=_runtime(owner.__module__),
        threads=names["num_threads"] or 1,
        arguments={
            name: names[name]
            for name, parameter in parameters.items()
            if name not in known and name in names and _differs(names[name], parameter.default)
        },
    )


def _differs(value: object, default: object) -> bool:
    if isinstance(value, enum.Enum):
        return value.name not in ("AUTO", "BUILTIN")  # two names of the default
    return value != default and bool(value or default)


def _runtime(module: str) -> str:
    package = module.split(".", maxsplit=1)[0]
    try:
        return f"{package} {version(package.replace('_', '-'))}"
    except PackageNotFoundError:
        return package


def _plain(value: object) -> str:
    """A text that is equal in every process."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return ",".join(map(_plain, value))
    return getattr(value, "__qualname__", None) or repr(value)


def _store(options: Options) -> _core.Store | None:
    path = str(options.cache)
    path = cache.default_path() if path == "auto" else path
    store = None if path == "off" else _core.Store(path)
    return store if store is not None and store.is_on else None


def _find(store: _core.Store | None, key: str) -> Verdict | None:
    if store is None:
        return _unkept.get(key)
    value = store.get(KIND, key)
    return None if value is None else _read(value)


def _write(verdict: Verdict) -> bytes:
    return json.dumps(dataclasses.asdict(verdict)).encode()


def _read(value: bytes) -> Verdict | None:
    """None where the row is not what `_write` writes."""
    try:
        data = json.loads(value)
        data["timings"] = tuple(Timing(**row) for row in data["timings"])
        data["left"], data["ops"] = tuple(map(int, data["left"])), tuple(map(str, data["ops"]))
        data["source"] = "kept"
        verdict = Verdict(**data)
        if verdict.choice not in {name for name, _ in verdict.as_native()["candidates"]}:
            return None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return verdict
