"""The loop over a language model's signatures."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple

import numpy as np

from clgpu_delegate.base.files import Source, read_content
from clgpu_delegate.errors import (
    ClgpuError,
    InputError,
    ModelError,
    OptionError,
    QuantizationError,
)
from clgpu_delegate.generation import tails
from clgpu_delegate.generation.engines import CompiledEngine, Engine, InterpreterEngine
from clgpu_delegate.generation.signatures import (
    Caches,
    Names,
    Step,
    find_caches,
    find_steps,
    read_graphs,
)
from clgpu_delegate.litert.compiled import runtime_for
from clgpu_delegate.options import Options, with_settings
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.extending import extend
from clgpu_delegate.tflite.graph import Model
from clgpu_delegate.tflite.inference import as_our_error, make_interpreter, usable_cores
from clgpu_delegate.tflite.reader import parse

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from clgpu_delegate.delegate import Delegate
    from clgpu_delegate.options import Settings

Array = np.ndarray[Any, Any]
Sampler = Callable[..., Any]
FinishReason = Literal["", "stop", "length", "cache", "cancelled"]

_LARGE = 1 << 30  # bytes of a file that is mapped into memory, and not rewritten
_MASKED = 0.7  # of the lowest number of a type: sums with it stay finite


class _State(NamedTuple):
    """A conversation; replaced as a whole, so that an interrupt leaves the old or the new one."""

    position: int
    """Tokens that the caches have."""

    pending: tuple[int, ...]
    """Tokens that they do not have yet."""

    host: Mapping[str, Array]
    """Caches whose last values the device does not have."""


class Generation(Iterator[int]):
    """Tokens as they come; made by `Generator.stream`.

    It is an iterator, and a context manager that closes it. `cancel` and `close` may be called by
    other threads.

    Examples
    --------
    >>> generator = clgpu_delegate.Generator("decoder.tflite")
    >>> with generator.stream([1, 2, 3], max_tokens=4) as generation:
    ...     tokens = list(generation)
    >>> len(tokens), generation.finish_reason
    (4, 'length')
    """

    def __init__(
        self, owner: Generator, number: int, max_tokens: int | None, stop: frozenset[int]
    ) -> None:
        self._owner = owner
        self._number = number
        self._max_tokens = max_tokens
        self._stop = stop
        self._cancelled = threading.Event()
        self._guard = threading.RLock()  # of the two below
        self._reason: FinishReason = ""
        self.tokens: list[int] = []
        """Those that it has given so far."""

    @property
    def finish_reason(self) -> FinishReason:
        """Why it has ended; empty while it has not.

        ``"stop"``: a stop token; ``"length"``: ``max_tokens``; ``"cache"``: the caches are full;
        ``"cancelled"``: by `cancel` or `close`.
        """
        return self._reason

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> int:
        if self._reason:
            raise StopIteration
        if self._max_tokens is not None and len(self.tokens) >= self._max_tokens:
            self._end("length")
            raise StopIteration
        token = self._owner._next_token(self)
        with self._guard:
            if isinstance(token, str):
                self._end(token)
            elif token in self._stop:
                self._end("stop")
            if self._reason or isinstance(token, str):  # perhaps it was closed meanwhile
                raise StopIteration
            self.tokens.append(token)
            return token

    def cancel(self) -> None:
        """End it before the next signature runs; tokens that were generated stay."""
        self._cancelled.set()

    def close(self) -> None:
        """As `cancel`; the iterator gives no more tokens."""
        self.cancel()
        self._end("cancelled")

    def _end(self, reason: FinishReason) -> None:
        with self._guard:
            self._reason = self._reason or reason

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Generator:
    """A language model: tokens in, tokens out.

    The model has a signature that takes one token and gives logits, such as litert-torch's
    ``decode``, and may have others that read many at once (``prefill_128``). Their caches stay on
    the device, in one buffer each, from which all signatures read and into which they write new
    rows. Only tokens, positions and the results cross the bus.

    Parameters
    ----------
    model
        Path of a .tflite file, or its bytes.
    sampler
        Chooses a token: a function of the logits, a float array of the vocabulary's size, or with
        ``top_k`` of the largest values, in descending order, and their indices. None: the largest,
        which the device finds.
    top_k
        How many values and indices the sampler gets; the device finds them.
    prefill, decode
        Names of signatures. Default: ``decode``, and those that are called ``prefill`` or
        ``prefill_`` and a number.
    tokens, positions, mask, logits
        Names of inputs and outputs, in all signatures the same. Default: what litert-torch calls
        them. A mask gets 0 (or True) where a token may see a position, else a very small number.
    caches
        Names of the caches: outputs by inputs. Default: what is an input and an output.
    length
        Positions of the caches, where the model does not tell; None: those of their axis 1. Where
        it tells, fewer than it has.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel.
    runtime
        As in `Runner`.
    threads
        Of the CPU, for nodes that the device does not run; None: one for each core.
    **settings
        The fields of `Options`.

    Raises
    ------
    ModelError
        If the model lacks what a generator needs; the message says what to name.
    OptionError
        If a name or an option is none that there is.
    FileError, DeviceError, RuntimeNotFoundError
        As `Runner`.

    Examples
    --------
    >>> generator = clgpu_delegate.Generator("decoder.tflite")
    >>> tokens = generator.generate([1, 2, 3], max_tokens=5)
    >>> len(tokens), generator.position
    (5, 7)
    >>> more = generator.generate([4, 5], max_tokens=2)  # continues
    >>> generator.reset()
    >>> generator.generate([1, 2, 3], max_tokens=5) == tokens
    True
    """

    @with_settings
    def __init__(
        self,
        model: Source,
        *,
        sampler: Sampler | None = None,
        top_k: int | None = None,
        prefill: Sequence[str] | None = None,
        decode: str | None = None,
        tokens: str | None = None,
        positions: str | None = None,
        caches: Mapping[str, str] | None = None,
        logits: str | None = None,
        mask: str | None = None,
        length: int | None = None,
        api: Literal["interpreter", "compiled"] = "interpreter",
        runtime: str | None = None,
        threads: int | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        if "carry" in settings:
            raise OptionError("the option 'carry' is set by the generator")
        if top_k is not None and sampler is None:
            raise OptionError("top_k needs a sampler, which chooses from the values")
        names = Names(prefill, decode, tokens, positions, caches, logits, mask)
        found = runtime_for(api, runtime)
        source, file = _open(model)
        self._sampler = sampler
        self._top_k = top_k
        self._decode, self._prefill = _steps(found, source, names)
        self._vocabulary = self._vocabulary_of(self._decode)
        if top_k is not None and not 1 <= top_k <= self._vocabulary:
            raise OptionError(f"top_k is {top_k}; allowed: 1 to {self._vocabulary}")
        steps = [self._decode, *self._prefill]
        self._caches = find_caches(file or read_graphs(source), steps)
        self._length = _length(self._caches, length)
        if self._caches.recurrent and self._decode.count > 1:
            raise ModelError(
                f"the signature {self._decode.key!r} takes {self._decode.count} tokens, and its "
                f"cache {self._caches.recurrent[0]!r} is not written by position, so that padding "
                "would change it; name a signature that takes one token with decode="
            )
        self._option_names = _option_names(steps)
        self._notes: list[str] = []
        self._kept_logits: str | None = None  # their name in the option `carry`
        self._finds_largest = True  # of them, on the device
        if sampler is None or top_k is not None:
            source = self._shorten(source, file)
        elif not isinstance(model, (bytes, bytearray)):
            source = Path(model)  # mapped into memory
        file = None  # it refers to the content, of which the runtime has another copy now
        settings["carry"] = self._carry()
        options = Options.from_settings(**settings)
        self._engine = self._make_engine(api, found, source, threads or usable_cores(), options)
        self._on_device = self._find_carried()
        # Each token asks for them: looking for them again takes as long as the rest of a step here.
        self._on_host = {
            step.key: [name for name in step.caches if name not in self._on_device[step.key]]
            for step in (self._decode, *self._prefill)
        }
        self._find_logits()
        self._lock = threading.Lock()
        self._holder: int | None = None  # the thread that has it
        self._number = 0  # of the generation that goes on; a reference to it would be a cycle
        self._state = _State(0, (), {})
        self._unsure = ""  # why the caches may have something else than the state says
        self._logits: Array | None = None

    def stream(
        self,
        prompt: Iterable[int],
        *,
        max_tokens: int | None = None,
        stop: Iterable[int] = (),
    ) -> Generation:
        """Begin to generate; each token is computed when the iterator is asked for it.

        Parameters
        ----------
        prompt
            Tokens that continue the conversation, in front of those that it has left unread. May
            be empty if there are any, such as the last one that was generated.
        max_tokens
            After so many the generation ends; None: when the caches are full.
        stop
            Tokens before which it ends. They are not given, but belong to the conversation.

        Raises
        ------
        InputError
            If the prompt is empty, a token is outside of the vocabulary, or the caches have too
            few positions.
        ClgpuError
            If a step has failed or was interrupted, and the model has caches that are not written
            by position; `reset` begins anew.
        """
        added = tuple(_integer(token, "a token of the prompt") for token in prompt)
        for at, token in enumerate(added):
            if not 0 <= token < self._vocabulary:
                raise InputError(
                    f"token {token} at place {at} of the prompt is outside of the vocabulary, 0 to "
                    f"{self._vocabulary - 1}"
                )
        if max_tokens is not None and _integer(max_tokens, "max_tokens") < 1:
            raise InputError(f"max_tokens is {max_tokens}; allowed: 1 and more")
        ends = frozenset(_integer(token, "a stop token") for token in stop)
        with self._locked():
            self._check_sure()
            position, pending, host = self._state
            pending += added
            if not pending:
                raise InputError("the prompt is empty; give at least one token")
            wanted = self._wanted(len(pending), max_tokens or 1)
            if position + wanted > self._length:
                writes = f"; {self._decode.key!r} writes {self._room} at a time"
                raise InputError(
                    f"{len(pending)} tokens to read and {max_tokens or 1} to generate need "
                    f"{wanted} positions; the caches have {self._length}, of which {position} are "
                    f"taken{writes if self._room > 1 else ''}"
                )
            self._state = _State(position, pending, host)
            self._number += 1
            return Generation(self, self._number, max_tokens, ends)

    def generate(
        self,
        prompt: Iterable[int],
        *,
        max_tokens: int | None = None,
        stop: Iterable[int] = (),
    ) -> list[int]:
        """All tokens of `stream`.

        Parameters
        ----------
        prompt, max_tokens, stop
            As in `stream`.

        Raises
        ------
        InputError, ClgpuError
            As `stream`.
        """
        with self.stream(prompt, max_tokens=max_tokens, stop=stop) as generation:
            return list(generation)

    def reset(self) -> None:
        """Begin a new conversation: the caches become zero. Ends a generation that goes on."""
        with self._locked():
            self._number += 1
            self._unsure = "the last reset() has failed or was interrupted; call it again"
            self.delegate.clear_carried()
            self._state = _State(0, (), {})
            self._logits = None
            self._unsure = ""

    @property
    def position(self) -> int:
        """How many tokens the caches have."""
        return self._state.position

    @property
    def length(self) -> int:
        """How many tokens the caches can have."""
        return self._length

    @property
    def vocabulary(self) -> int:
        """How many different tokens there are."""
        return self._vocabulary

    @property
    def logits(self) -> Array | None:
        """The logits of the last token that was generated; None where the device finds the largest.

        A float array of the vocabulary's size. Give a ``sampler`` without ``top_k`` to have them.
        """
        return self._logits

    @property
    def delegate(self) -> Delegate:
        """The delegate that runs the model."""
        return self._engine.delegate

    @property
    def notes(self) -> tuple[str, ...]:
        """What crosses the bus in each step though it need not, and why."""
        return tuple(self._notes)

    def _vocabulary_of(self, step: Step) -> int:
        assert step.logits is not None
        return step.outputs[step.logits].shape[-1]

    def _shorten(self, source: bytes | Path, file: Model | None) -> bytes | Path:
        """The model with a tail that leaves less to copy, if it can be rewritten.

        Otherwise the logits stay on the device, where the same operations read them after a step.
        """
        if file is None or isinstance(source, Path):
            taken = set(self._option_names.values())
            self._kept_logits = next(n for n in _numbered("logits") if n not in taken)
            return source
        changed = file.copy()
        self._decode = tails.append_tail(changed, self._decode, self._top_k)
        return extend(source, file, changed)

    def _make_engine(
        self, api: str, runtime: Runtime, source: bytes | Path, threads: int, options: Options
    ) -> Engine:
        steps = [self._decode, *self._prefill]
        if api == "compiled":
            return CompiledEngine(source, threads, options, steps)
        return InterpreterEngine(runtime, source, threads, options, steps)

    def _find_carried(self) -> dict[str, set[str]]:
        """The caches that stay on the device, by the key of the signature."""
        told = {entry["name"]: entry["graphs"] for entry in self.delegate.carried()}
        on_device: dict[str, set[str]] = {}
        for step in (self._decode, *self._prefill):
            kept = on_device[step.key] = set()
            for name in step.caches:
                graphs = told.get(self._option_names[name], {})
                why = graphs.get(step.graph, "no node of it is on the device")
                if why:
                    self._notes.append(f"{name} in {step.key!r}: {why}")
                else:
                    kept.add(name)
        return on_device

    def _find_logits(self) -> None:
        """Whether they stay on the device, and what reads them there."""
        if self._kept_logits is None:
            return
        name, step = self._kept_logits, self._decode
        told = {entry["name"]: entry["graphs"] for entry in self.delegate.carried()}
        why = told.get(name, {}).get(step.graph, "no node of it is on the device")
        if why:
            self._kept_logits = None
            self._notes.append(f"{step.logits} in {step.key!r}: {why}")
            return
        try:
            self.delegate._largest_carried(name, self._top_k)  # of zeros
        except ClgpuError as error:
            self._finds_largest = False
            self._notes.append(f"{step.logits}: the device cannot find the largest: {error}")

    def _carry(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """The option ``carry``."""
        carry: dict[str, dict[int, tuple[int, ...]]] = {}
        for step in (self._decode, *self._prefill):
            for before, after in step.caches.items():
                graphs = carry.setdefault(self._option_names[before], {})
                graphs[step.graph] = (step.inputs[before].index, step.outputs[after].index)
        if self._kept_logits is not None:
            assert self._decode.logits is not None
            index = self._decode.outputs[self._decode.logits].index
            carry[self._kept_logits] = {self._decode.graph: (index, index, self._top_k or 0)}
        return carry

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._holder == threading.get_ident():
            raise ClgpuError("a sampler cannot use its own generator")
        with self._lock:
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None

    def _check_sure(self) -> None:
        if self._unsure:
            raise ClgpuError(self._unsure)

    @property
    def _room(self) -> int:
        """Positions that the decoder needs for any number of tokens."""
        return self._decode.count if self._caches.written else 1

    def _wanted(self, left: int, generated: int) -> int:
        """Positions that reading and generating take."""
        # The last token that is generated is not read, each before it in a call of its own.
        begin = max(0, left - self._room) if generated == 1 else left + generated - 2
        return begin + self._room

    def _next_token(self, generation: Generation) -> int | FinishReason:
        """Read what is pending, and choose a token; or why the generation ends."""
        while True:
            if generation._cancelled.is_set():
                return "cancelled"
            with self._locked():
                self._check_sure()
                if self._number != generation._number:
                    raise ClgpuError("another generation, or a new conversation, has begun since")
                position, pending, _ = self._state
                if not pending:
                    raise ClgpuError("nothing is left to read")
                if position + self._wanted(len(pending), 1) > self._length:
                    return "cache"
                step, count = self._choose(position, len(pending))
                host = self._run(step, pending[:count], position)
                # The caches have the tokens, whatever the sampler does.
                self._state = _State(position + count, pending[count:], host)
                self._unsure = ""
                if self._state.pending:
                    continue
                token = self._pick(count, position)
                self._state = _State(position + count, (token,), host)
                return token

    def _choose(self, position: int, left: int) -> tuple[Step, int]:
        """The step that reads the next tokens, and how many of them; the decoder reads the last."""
        room, last = self._length - position, self._decode.count
        for step in self._prefill:
            if step.count <= left - last:
                return step, step.count
        if not self._caches.recurrent:
            # What is read beyond the prompt is overwritten before anything sees it.
            for step in reversed(self._prefill):
                if left > 2 * last and step.count <= room:
                    return step, left - last
        return self._decode, left % last or last

    def _run(self, step: Step, tokens: Sequence[int], position: int) -> dict[str, Array]:
        """Run a step; returns the caches that the device does not have after it."""
        size = step.inputs[step.tokens]
        padded = np.zeros(step.count, size.dtype)
        padded[: len(tokens)] = tokens
        self._engine.set(step, step.tokens, padded.reshape(size.shape))
        places = np.minimum(np.arange(position, position + step.count), self._length - 1)
        where = step.inputs[step.positions]
        given = places if math.prod(where.shape) == step.count else places[:1]
        self._engine.set(step, step.positions, given.astype(where.dtype).reshape(where.shape))
        if step.mask is not None:
            mask = step.inputs[step.mask]
            self._engine.set(step, step.mask, _mask(places, mask.shape, mask.dtype))
        before, kept = self._state.host, self._on_device[step.key]
        others = self._on_host[step.key]
        for name in before:
            if name in kept:
                self.delegate.write_carried(self._option_names[name], before[name])
        for name in others:
            self._engine.set(step, name, self._cache(step, name))
        # A step may be repeated if it overwrites what it has written, or all it has changed.
        if lost := [n for n in self._caches.recurrent if n in kept and n not in before]:
            self._unsure = (
                f"a step has failed or was interrupted, and the cache {lost[0]!r}, which is not "
                "written by position, may have its tokens or not; call reset() and begin anew"
            )
        self._engine.run(step)
        return {name: self._engine.get(step, step.caches[name]) for name in others}

    def _cache(self, step: Step, name: str) -> Array:
        """The value of a cache for the runtime."""
        if name in self._state.host:
            return self._state.host[name]
        if self._state.position > 0 and any(name in kept for kept in self._on_device.values()):
            return self.delegate.read_carried(self._option_names[name])
        tensor = step.inputs[name]
        return np.zeros(tensor.shape, tensor.dtype)

    def _pick(self, count: int, position: int) -> int:
        """The token after the `count` ones that the decoder has read, from a position on."""
        step = self._decode

        def row(name: str, size: int) -> Array:
            return _row(self._engine.get(step, name), count, size)

        kept = self._kept_logits
        values: Array
        indices: Array | None
        if kept is not None and self._finds_largest:
            found = self.delegate._largest_carried(kept, self._top_k)
            values, indices = (_row(rows, count, self._top_k or 1) for rows in found)
            _check(values, position)
        elif self._sampler is None and tails.TOKEN in step.outputs:
            _check(row(tails.SUM, 1), position)
            return int(row(tails.TOKEN, 1)[0])
        elif tails.VALUES in step.outputs:
            assert self._top_k is not None
            values, indices = row(tails.VALUES, self._top_k), row(tails.INDICES, self._top_k)
            _check(values, position)
        else:
            assert step.logits is not None
            if kept is None:
                values = row(step.logits, self._vocabulary)
            else:
                values = _row(self.delegate.read_carried(kept), count, self._vocabulary)
            indices = None
            _check(values, position)
            if self._sampler is None or self._top_k is not None:
                order = _largest(values, self._top_k or 1)
                values, indices = values[order], order.astype(np.int32)
            else:
                self._logits = values
        if self._sampler is None:
            assert indices is not None
            return int(indices[0])
        chosen = self._sampler(values) if indices is None else self._sampler(values, indices)
        token = _integer(chosen, "what the sampler gives")
        if not 0 <= token < self._vocabulary:
            raise InputError(
                f"the sampler gives token {token}, outside of the vocabulary, 0 to "
                f"{self._vocabulary - 1}"
            )
        return token


def _row(rows: Array, count: int, size: int) -> Array:
    """The last one of those that tokens have."""
    last: Array = rows.reshape(-1, size)[count - 1]
    return last


def _check(numbers: Array, position: int) -> None:
    if np.isnan(numbers).any():
        raise ClgpuError(
            f"the logits after {position} tokens are not numbers (NaN); try precision='fp32', or "
            "the option verify"
        )


def _largest(values: Array, count: int) -> Array:
    """Indices of the largest values in descending order, of equal ones the first."""
    if count == 1:
        return np.argmax(values).reshape(1)
    # Sorting the whole vocabulary would take longer than the step.
    least = np.partition(values, -count)[-count]
    candidates = np.flatnonzero(values >= least)
    largest: Array = candidates[np.argsort(-values[candidates], kind="stable")][:count]
    return largest


def _open(model: Source) -> tuple[bytes | Path, Model | None]:
    """What a runtime loads, and the model as data if it can be rewritten."""
    if isinstance(model, (bytes, bytearray)):
        content = read_content(model)
    else:
        path = Path(model)
        if path.is_file() and path.stat().st_size >= _LARGE:
            return path, None
        content = read_content(model)
    try:
        return content, parse(content)
    except QuantizationError:  # constants behind the FlatBuffer
        return (content if isinstance(model, (bytes, bytearray)) else Path(model)), None


def _steps(runtime: Runtime, source: bytes | Path, names: Names) -> tuple[Step, list[Step]]:
    interpreter = make_interpreter(runtime, source, 1)
    with as_our_error(f"{runtime} cannot tell the signatures of the model"):
        return find_steps(interpreter, names)


def _length(caches: Caches, given: int | None) -> int:
    """The positions of the caches."""
    if given is None:
        return caches.length
    if _integer(given, "length") < 1:
        raise OptionError(f"length is {given}; allowed: 1 and more")
    if caches.known and given > caches.length:
        raise OptionError(f"length is {given}; the caches have {caches.length} positions")
    return given


def _option_names(steps: Sequence[Step]) -> dict[str, str]:
    """Names for the option ``carry``, by caches; those that may stay as they are do."""
    plain = {n: re.sub(r"[^\w.-]", "_", n) or "_" for step in steps for n in step.caches}
    names = {name: other for name, other in plain.items() if name == other}
    for name, other in plain.items():
        if name not in names:
            names[name] = next(n for n in _numbered(other) if n not in names.values())
    return names


def _numbered(name: str) -> Iterator[str]:
    """The name, and with numbers behind it."""
    yield name
    for number in itertools.count(2):
        yield f"{name}_{number}"


def _mask(places: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Which positions of the caches the tokens at `places` may see."""
    seen = np.arange(shape[-1]) <= places[:, None]
    if dtype.kind == "f":
        values = np.where(seen, 0, np.finfo(dtype).min * _MASKED).astype(dtype)
    else:
        values = seen.astype(dtype)
    return (
        np.broadcast_to(values, shape) if values.size != math.prod(shape) else values.reshape(shape)
    )


def _integer(value: object, what: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} is {value!r}; allowed: integers") from None
