"""Models through both of LiteRT's interfaces: each signature, with the same inputs.

``python -m tests.litert.models [FILE or FOLDER ...]`` prints a table, by default of the models in
the folder ``shared/models`` beside the checkout.
"""

from __future__ import annotations

import collections
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import clgpu_delegate
from clgpu_delegate.base.rendering import one_line
from tests.campaign import children
from tests.litert.compiled import Array, Compiled, preferred_device
from tests.models.comparison import relative_l2
from tests.runtimes import make_interpreter

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "models"
LIMIT_S = 120  # of a model, each way
# Floats times weights of int8 as the runtime's kernels multiply them, see tests/models.
OPTIONS = {"warm_up": False, "dynamic_range": "hybrid"}

SAME, CPU_FAILS, BOTH_FAIL = "same", "CPU fails", "both fail"
MEANINGS = {
    SAME: "the same bits through both interfaces",
    CPU_FAILS: "LiteRT itself does not run it with CompiledModel on the CPU",
    BOTH_FAIL: "an error of the delegate's through both interfaces",
    "differs": "other bits, or an error through one interface only",
    "died": "the process ended by a signal",
    "hung": f"no end within {LIMIT_S} s",
}
GOOD = {SAME, CPU_FAILS, BOTH_FAIL}

# Extents that files leave open, where those that they store fit nothing.
SHAPES = {
    "oww_melspectrogram.tflite": [(1, 1760)],
    "single_slice.tflite": [(3,), (3,), (4, 4, 4)],
}
KINDS = ("random", "ones")  # of inputs; models that divide or count take ones

Values = dict[str, Array]


def found(*places: Path) -> list[Path]:
    """The models of files and folders, whatever their names end in."""
    files: set[Path] = set()
    for place in places:
        files.update([place] if place.is_file() else filter(_is_model, place.rglob("*.*")))
    return sorted(files)


def _is_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8)[4:] == b"TFL3"


def by_cpu(path: Path) -> tuple[str, str]:
    """Run all signatures with CompiledModel on LiteRT's CPU; the text is the kind of inputs."""
    content = path.read_bytes()
    problems = []
    for kind in KINDS:
        try:
            compiled = Compiled(content, "CPU")
            for way in _ways(path, content, compiled, kind):
                wanted = way.run_interpreter()
                for name, got in way.run_compiled(compiled, wanted).items():
                    _check_alike(got, wanted[name])
        except Exception as error:
            problems.append(one_line(error))
        else:
            return SAME, kind
    return CPU_FAILS, "; ".join(dict.fromkeys(problems))


def by_both(path: Path, kind: str = KINDS[0]) -> tuple[str, str]:
    """Run all signatures with the delegate, through both interfaces, and compare."""
    content = path.read_bytes()
    delegate = clgpu_delegate.load(device=preferred_device(), **OPTIONS)
    compiled, claimed, problem, differences = None, "", "", []
    try:
        with clgpu_delegate.litert_environment(device=preferred_device(), **OPTIONS) as environment:
            compiled = Compiled(content, "GPU|CPU", environment)
        made = clgpu_delegate.litert_delegates()[-1].explain()
        claimed = f"{made.claimed} of {made.total} nodes on the device"
    except Exception as error:
        problem = one_line(error)
    layout = compiled or Compiled(content, "CPU")
    try:
        ways = _ways(path, content, layout, kind, [delegate])
        wanted = [way.run_interpreter() for way in ways]
    except Exception as error:
        return (BOTH_FAIL if problem else "differs"), f"Interpreter: {one_line(error)}"
    try:
        for way, outputs in zip(ways, wanted):
            if compiled is None:
                break
            got = way.run_compiled(compiled, outputs)
            differences += [
                f"{way.label}, {name}: {np.count_nonzero(got[name] != want)} of {want.size} differ"
                for name, want in outputs.items()
                if got[name].tobytes() != want.tobytes()
            ]
    except Exception as error:
        problem = one_line(error)
    if problem:
        return "differs", f"CompiledModel: {problem}; {claimed}"
    return ("differs", f"{'; '.join(differences)}; {claimed}") if differences else (SAME, claimed)


class _Way:
    """A signature, or the main graph of a model without any, and its inputs."""

    def __init__(self, interpreter: Any, signature: dict[str, Any] | None, index: int) -> None:
        self.index = index
        self.key = signature and signature["key"]
        self.label = self.key or "model"
        self._interpreter = interpreter
        self._runner = None
        if self.key is not None:
            self._runner = interpreter.get_signature_runner(self.key)
            details = self._runner.get_input_details()
            # In the order of the graph, which is CompiledModel's.
            self._details = {name: details[name] for name in signature["inputs"]}
            self.outputs = signature["outputs"]
        else:
            self._details = {str(i): d for i, d in enumerate(interpreter.get_input_details())}
            self.outputs = [str(i) for i in range(len(interpreter.get_output_details()))]
        self.inputs: Values = {}
        self._resized = False

    def fill(self, path: Path, kind: str) -> None:
        rng = np.random.default_rng(1)
        shapes = SHAPES.get(path.name)
        self._resized = shapes is not None
        for i, (name, detail) in enumerate(self._details.items()):
            shape = shapes[i] if shapes else tuple(int(n) for n in detail["shape"])
            stored = list(path.parent.glob(f"{path.stem}_input{i}_*.csv"))
            if stored:
                values = np.loadtxt(stored[0], delimiter=",", dtype=np.int64).reshape(shape)
                self.inputs[name] = values.astype(detail["dtype"])
            else:
                self.inputs[name] = _values(rng, kind, shape, detail)

    def run_interpreter(self) -> Values:
        if self._runner is not None:
            return self._runner(**self.inputs)
        interpreter = self._interpreter
        for detail, value in zip(self._details.values(), self.inputs.values()):
            if self._resized:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(self._details.values(), self.inputs.values()):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        details = interpreter.get_output_details()
        return {str(i): interpreter.get_tensor(d["index"]) for i, d in enumerate(details)}

    def run_compiled(self, compiled: Compiled, like: Values) -> Values:
        compiled.choose(self.index)
        if self._resized:
            for i, value in enumerate(self.inputs.values()):
                compiled.resize(i, value.shape)
        arrays = [np.asarray(like[name]) for name in self.outputs]
        return dict(zip(self.outputs, compiled.run(list(self.inputs.values()), arrays)))


def _ways(
    path: Path, content: bytes, compiled: Compiled, kind: str, delegates: Any = ()
) -> list[_Way]:
    interpreter = make_interpreter("ai_edge_litert", content, delegates)
    keys = interpreter.get_signature_list()
    signatures = [
        compiled.model.get_signature_by_index(i) for i in range(compiled.model.get_num_signatures())
    ]
    ways = [_Way(interpreter, s if s["key"] in keys else None, i) for i, s in enumerate(signatures)]
    for way in ways:
        way.fill(path, kind)
    return ways


def _values(rng: Any, kind: str, shape: tuple[int, ...], detail: dict[str, Any]) -> Array:
    dtype = np.dtype(detail["dtype"])
    if kind == "ones":
        return np.ones(shape, dtype)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape), dtype)
    if dtype.kind in "iu" and detail["quantization"][0] != 0:
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max, shape, endpoint=True), dtype)
    return np.asarray(rng.integers(0, 1, shape, endpoint=True), dtype)  # indices, masks


def outcomes(paths: list[Path]) -> Iterator[tuple[Path, str, str]]:
    """Try models in child processes; yields each with its outcome and a sentence."""
    asked: list[str] = []
    answers = children.answers("tests.litert.models", iter(asked.pop, ""), LIMIT_S)
    with contextlib.closing(answers):
        for path in paths:
            asked.append(f"cpu {path}")
            _, outcome, text = next(answers)
            if outcome == SAME:
                asked.append(f"{text} {path}")
                _, outcome, text = next(answers)
            elif outcome != CPU_FAILS:
                outcome, text = CPU_FAILS, f"{outcome}: {text}"
            yield path, outcome, text


def _check_alike(got: Array, want: Array) -> None:
    """Both are of LiteRT's CPU; nearly all elements are the same, or all nearly."""
    if got.tobytes() != want.tobytes():
        with np.errstate(all="ignore"):
            error = relative_l2(got.astype(np.float64), want.astype(np.float64))
        if not error < 1e-2:
            message = f"its results are off by {error:.1g} from those of its interpreter"
            raise ValueError(message)


def _serve(item: str) -> tuple[str, str]:
    word, _, path = item.partition(" ")
    return by_cpu(Path(path)) if word == "cpu" else by_both(Path(path), word)


def main() -> int:
    """Print the table; returns 1 if a model that LiteRT's CPU runs fails."""
    if sys.argv[1:] == ["serve"]:
        children.serve(_serve)
        return 0
    counts: collections.Counter[str] = collections.Counter()
    for path, outcome, text in outcomes(found(*map(Path, sys.argv[1:] or [FOLDER]))):
        counts[outcome] += 1
        print(f"{outcome:10} {path}: {text}", flush=True)
    for outcome, count in counts.items():
        print(f"{count:5} {outcome}: {MEANINGS[outcome]}")
    return 0 if set(counts) <= GOOD else 1


if __name__ == "__main__":
    sys.exit(main())
