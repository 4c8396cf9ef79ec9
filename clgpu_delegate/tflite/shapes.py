"""The shapes of a model's inputs: reading them, changing them, and guessing those left open."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

from clgpu_delegate.base.arranging import Shapes, arrange_shapes
from clgpu_delegate.errors import InputError, OptionError

Shape = tuple[int, ...]

# Fields of the format's tables, as the positions of their entries in a table's directory.
_SUBGRAPHS, _TENSORS, _INPUTS, _SHAPE, _NAME, _SIGNATURE = 8, 4, 6, 4, 10, 18

_LARGEST = 2**31 - 1  # extent

_IMAGE_CHANNELS = (1, 3, 4)
_SIDES = (224, 256, 320, 512)  # of images, in the order in which they are tried
_LENGTHS = tuple(1 << n for n in range(7, 15)) + tuple(1 << n for n in range(6, -1, -1))


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a model's main graph."""

    name: str

    shape: Shape
    """As the file stores it: open extents are 1."""

    signature: Shape
    """The same with -1 where an extent is open."""

    @property
    def is_open(self) -> bool:
        """Whether an extent other than the first one, which counts the samples, is open."""
        return -1 in self.signature[1:]

    @property
    def is_image(self) -> bool:
        """Whether it has an image's axes: samples, rows, columns, channels."""
        return len(self.signature) == 4 and self.signature[3] in _IMAGE_CHANNELS

    def filled(self, extent: int) -> Shape:
        """The shape with one number for all open extents but the first one, which becomes 1."""
        rest = (extent if n == -1 else n for n in self.signature[1:])
        return (abs(self.signature[0]), *rest) if self.signature else ()


def inputs_of(content: bytes) -> list[Input]:
    """The inputs of a model that has been checked, as `base.files.read_model` does."""
    found = []
    for tensor in _File(content).inputs():
        shape = tensor.numbers(_SHAPE)
        found.append(Input(tensor.text(_NAME), shape, tensor.numbers(_SIGNATURE) or shape))
    return found


def with_shapes(content: bytes, shapes: Shapes | None) -> bytes:
    """A model with other shapes of its inputs, which then leave nothing open.

    Shapes of other tensors stay as they are; `settling.resized` changes these, too.

    Parameters
    ----------
    content
        The bytes of a model that has been checked.
    shapes
        Of the one input, or a list of shapes, or a dict by name; None: those of the model.

    Raises
    ------
    InputError
        If there are too few or too many shapes, or one is not a shape of positive extents.
    """
    if shapes is None:
        return content
    file = _File(content)
    wanted = arrange_shapes(shapes, [each.name for each in inputs_of(content)])
    changes = []
    for tensor, shape in zip(file.inputs(), wanted):
        name = tensor.text(_NAME)
        if not all(1 <= n <= _LARGEST for n in shape):
            raise InputError(
                f"{text_of(shape)} is not a shape for input {name!r}; allowed: extents from 1 to "
                f"{_LARGEST}"
            )
        if tensor.place(_SHAPE) is None and shape:
            raise InputError(f"input {name!r} is a scalar; given is {text_of(shape)}")
        if shape != tensor.numbers(_SHAPE) or tensor.numbers(_SIGNATURE):
            changes.append((tensor, shape))
    return _with(content, changes)


def with_tensor_shapes(content: bytes, shapes: Mapping[int, Shape]) -> bytes:
    """A model with other shapes of tensors of its main graph, by their indices.

    Tensors without a shape in the file, and indices that the graph does not have, are left out.
    """
    tensors = enumerate(_File(content).tensors())
    return _with(
        content,
        [
            (tensor, shapes[index])
            for index, tensor in tensors
            if index in shapes and tensor.place(_SHAPE) and shapes[index] != tensor.numbers(_SHAPE)
        ],
    )


def _with(content: bytes, changes: Sequence[tuple[_Table, Shape]]) -> bytes:
    changed = bytearray(content)
    for tensor, shape in changes:
        # Tensors may share the old numbers, so the new ones stand after the end of the file.
        changed += bytes(-len(changed) % 4)
        start = len(changed)
        changed += struct.pack(f"<{len(shape) + 1}i", len(shape), *shape)
        for field in (_SHAPE, _SIGNATURE):
            if (place := tensor.place(field)) is not None:
                struct.pack_into("<I", changed, place, start - place)
    return bytes(changed)


def guess(content: bytes, runs: Callable[[bytes], bool]) -> dict[str, Shape] | None:
    """Shapes for a model that leaves extents of its inputs open.

    Parameters
    ----------
    content
        The bytes of a model that has been checked.
    runs
        Tells whether a model, which leaves nothing open, can be run.

    Returns
    -------
    dict
        A shape for each input; None if nothing but numbers of samples is open, or no guess runs.
    """
    inputs = inputs_of(content)
    if not any(each.is_open for each in inputs):
        return None
    images = all(each.is_image for each in inputs if each.is_open)
    for extent in (*_SIDES, *_LENGTHS) if images else _LENGTHS:
        shapes = {each.name: each.filled(extent) for each in inputs}
        if runs(with_shapes(content, list(shapes.values()))):
            return shapes
    return None


class _File:
    """The tables of a FlatBuffers file, as https://flatbuffers.dev/internals describes them."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def number(self, place: int, kind: str = "I") -> int:
        return int(struct.unpack_from(f"<{kind}", self.content, place)[0])

    def tensors(self) -> list[_Table]:
        """Those of the first graph."""
        return self._graph().tables(_TENSORS)

    def inputs(self) -> Iterator[_Table]:
        """Those of the first graph that are its inputs."""
        tensors = self.tensors()
        for index in self._graph().numbers(_INPUTS):
            yield tensors[index]

    def _graph(self) -> _Table:
        return _Table(self, self.number(0)).tables(_SUBGRAPHS)[0]


class _Table:
    def __init__(self, file: _File, start: int) -> None:
        self._file, self._start = file, start
        self._directory = start - file.number(start, "i")

    def place(self, field: int) -> int | None:
        """Where the offset of a vector or text stands; None if the table lacks it."""
        if field >= self._file.number(self._directory, "H"):
            return None
        offset = self._file.number(self._directory + field, "H")
        return self._start + offset if offset else None

    def _vector(self, field: int) -> tuple[int, int]:
        """Where the items of a vector begin, and their number."""
        if (place := self.place(field)) is None:
            return 0, 0
        start = place + self._file.number(place)
        return start + 4, self._file.number(start)

    def tables(self, field: int) -> list[_Table]:
        start, count = self._vector(field)
        places = range(start, start + 4 * count, 4)
        return [_Table(self._file, place + self._file.number(place)) for place in places]

    def numbers(self, field: int) -> Shape:
        start, count = self._vector(field)
        return struct.unpack_from(f"<{count}i", self._file.content, start)

    def text(self, field: int) -> str:
        start, count = self._vector(field)
        return self._file.content[start : start + count].decode("utf-8", "replace")


def text_of(shape: Sequence[int]) -> str:
    """As `parse` reads it: ``"1x224x224x3"``, ``"scalar"`` without axes."""
    return "x".join(map(str, shape)) or "scalar"


def parse(texts: Sequence[str]) -> list[Shape] | dict[str, Shape] | None:
    """Shapes from texts such as ``"1x224x224x3"`` or ``"image=1x224x224x3"``, one for each input.

    Returns
    -------
    list or dict
        What `with_shapes` takes; None without texts.

    Raises
    ------
    OptionError
        If one is not such a text, or only some have a name.
    """
    named: list[tuple[str, Shape]] = []
    for text in texts:
        name, _, extents = text.rpartition("=")  # names may contain the sign
        words = [] if extents == "scalar" else extents.split("x")
        if not all(word.isdecimal() for word in words):
            raise OptionError(
                f"{text!r} is not a shape; allowed: extents with x between them such as "
                "1x224x224x3, after the input's name and = where the model has several inputs"
            )
        named.append((name, tuple(map(int, words))))
    names = [name for name, _ in named if name]
    if len(set(names)) < len(names):
        raise OptionError("an input has several shapes; give one for each")
    if not named:
        return None
    if all(name for name, _ in named):
        return dict(named)
    if any(name for name, _ in named):
        raise OptionError("some shapes have an input's name and some have none; name all or none")
    return [shape for _, shape in named]
