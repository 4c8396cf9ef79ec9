"""One case of the zoo: the stock kernels' outputs, ours, and TensorFlow's as the third witness.

``python -m tests.op_zoo.run FOLDER/NUMBER [DEVICE [OPTIONS]]`` repeats one case, in this process,
and prints what it finds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import clgpu_delegate
from clgpu_delegate.base.rendering import one_line
from tests.campaign import children
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2

Array = np.ndarray

# Outcomes of a case; those of `tests.campaign.children` are more.
RIGHT, WRONG, FAILED, STOCK_FAILS, RANDOM = "right", "wrong", "failed", "stock fails", "random"
AS_TENSORFLOW = "as TensorFlow"  # and not as stock
# The reference kernels first. They lack some operations and have mistakes (a window of
# LOCAL_RESPONSE_NORMALIZATION lacks its last element, SUM takes int8 for uint8): what is not as
# they compute is right if it is as the default kernels compute, of integers within a step.
RESOLVERS = ("ref", "no_delegate")
STEPS = {"ref": 0.0, "no_delegate": 1.0}


def run_case(item: str) -> tuple[str, str]:
    """Try a case.

    Parameters
    ----------
    item
        ``{"case": path without suffix, "ours": bool, "device": name, "options": {}}``, the last
        two for `clgpu_delegate.load`.

    Returns
    -------
    outcome, text
        The text is JSON: ``claimed`` and ``total`` nodes, ``refused`` nodes with operation, code,
        fields and reason, ``kernels`` of stock that ours were compared with, ``hybrid`` if that
        was with ``dynamic_range="hybrid"``, and ``why`` the outcome is not `RIGHT`.
    """
    asked = json.loads(item)
    case = Case(Path(asked["case"]), asked["device"], asked.get("options", {}))
    outcome, found = STOCK_FAILS, {}
    for case.resolver in RESOLVERS:
        try:
            case.run_stock()
        except Exception as error:
            found = found or {"why": one_line(error)}
            continue
        if not asked["ours"]:
            return RIGHT, "{}"
        if case.is_random:
            return RANDOM, json.dumps({"why": "two interpreters of the stock runtime differ"})
        made: dict[str, Any] = {"kernels": case.resolver}
        try:
            problem = case.run_ours(made)
        except Exception as error:  # what stock does not report
            return FAILED, json.dumps({**made, "why": f"{type(error).__name__}: {one_line(error)}"})
        if not problem:
            return RIGHT, json.dumps(made)
        if made["as_tensorflow"]:
            outcome, found = AS_TENSORFLOW, {**made, "why": problem}
        elif outcome == STOCK_FAILS:
            outcome, found = WRONG, {**made, "why": problem}
    return outcome, json.dumps(found)


class Case:
    """A model, its inputs, and TensorFlow's outputs."""

    def __init__(self, path: Path, device: str, options: Mapping[str, Any]) -> None:
        self.options = {"device": device, "warm_up": False, **options}
        self.model = path.with_name(path.name + ".tflite").read_bytes()
        with np.load(path.with_name(path.name + ".npz")) as file:
            values = {name: file[name] for name in file.files}
        # The signature has these names.
        self.inputs = {n.replace(" ", "_"): v for n, v in values.items() if n.startswith("input")}
        self.tensorflow = {
            n.replace(" ", "_"): v for n, v in values.items() if n.startswith("output")
        }
        self.resolver = RESOLVERS[0]
        self.wanted: list[dict[str, Array]] = []
        self.steps: dict[tuple[int, ...], float] = {}
        self.operations: set[str] = set()
        self.scale = 0.0
        self.is_random = False

    def run_stock(self) -> None:
        """Set the wanted outputs of two inferences, and how large the values are."""
        interpreter = self._interpreter(preserve_all_tensors=True)
        self.wanted = self._infer_twice(interpreter)
        self.scale = largest_rms(interpreter)
        self.steps = steps(interpreter, STEPS[self.resolver])
        again = self._infer_twice(self._interpreter())
        self.is_random = not all(
            same(got[name], want[name]) for got, want in zip(again, self.wanted) for name in want
        )

    def run_ours(self, found: dict[str, Any]) -> str:
        """Compare ours with stock's; returns what differs, and fills in what was claimed."""
        problem, precision = self._compare(found)
        if problem and self._is_hybrid():
            # In float the device is nearer to TensorFlow; in integers it does as stock does.
            found["hybrid"] = True
            problem, _ = self._compare(found, "hybrid", dynamic_range="hybrid")
            precision = "hybrid"
        if problem:
            witness = self._witness(precision)
            problem = f"{problem}; TensorFlow and stock: {witness or 'the same'}"
        return problem

    def _compare(self, found: dict[str, Any], limit: str = "", **options: Any) -> tuple[str, str]:
        delegate = clgpu_delegate.load(**{**self.options, **options})
        interpreter = self._interpreter([delegate])
        try:
            results = self._infer_twice(interpreter)
        finally:
            made = delegate.explain()
            found.update(claimed=made.claimed, total=made.total, refused=refusals(made))
            self.operations = {node.op for node in made.nodes}
        limit = limit or made.precision
        problems, as_tensorflow = [], True
        for i, (got, want) in enumerate(zip(results, self.wanted)):
            for name in want:
                step = self.steps.get(want[name].shape, 0.0)
                if problem := difference(got[name], want[name], limit, self.scale, step):
                    closer = difference(got[name], self._like(name, want[name]), limit, self.scale)
                    problem += f", TensorFlow and ours: {closer or 'the same'}"
                    as_tensorflow = as_tensorflow and not closer
                    problems.append(f"inference {i}, {name}: {problem}")
        found["as_tensorflow"] = bool(problems) and as_tensorflow
        return "; ".join(problems), limit

    def _witness(self, limit: str) -> str:
        """What differs between TensorFlow's and stock's outputs."""
        want = self.wanted[0]
        found = (difference(self._like(n, w), w, limit, self.scale) for n, w in want.items())
        return "; ".join(filter(None, found))

    def _like(self, name: str, want: Array) -> Array:
        """TensorFlow's output, rounded where the model's output is quantized."""
        value = self.tensorflow[name]
        if value.dtype.kind == "f" and want.dtype.kind in "iu":
            return quantized(value, self._outputs[name])
        return value.astype(want.dtype)

    def _is_hybrid(self) -> bool:
        """Whether it multiplies floats by weights of int8."""
        if "QUANTIZE" in self.operations:
            return False
        details = self._interpreter().get_tensor_details()
        floats = any(d["dtype"] == np.float32 for d in details)
        return floats and any(d["dtype"] == np.int8 for d in details)

    def _interpreter(self, delegates: Sequence[Any] = (), **options: Any) -> Any:
        return make_interpreter(op_runtime(), self.model, delegates, self.resolver, **options)

    def _infer_twice(self, interpreter: Any) -> list[dict[str, Array]]:
        details, self._outputs = named_details(interpreter)
        values = {}
        for name, detail in details.items():
            # No values are given for inputs that the graph does not read.
            value = self.inputs.get(name, np.zeros(detail["shape"], detail["dtype"]))
            if value.dtype.kind == "f" and np.dtype(detail["dtype"]).kind in "iu":
                value = quantized(value, detail)
            # Generators give lists, too, whose integers have 64 bits.
            values[detail["index"]] = value.astype(detail["dtype"])
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        results = []
        for _ in range(2):
            for index, value in values.items():
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            results.append({n: tensor(interpreter, d) for n, d in self._outputs.items()})
        return results


def named_details(interpreter: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Details of inputs and of outputs, by the names of the signature, or by the same names."""
    if interpreter.get_signature_list():
        # An interpreter with a living runner does not invoke.
        runner = interpreter.get_signature_runner()
        return runner.get_input_details(), runner.get_output_details()
    inputs = {f"input_{i}": d for i, d in enumerate(interpreter.get_input_details())}
    return inputs, {f"output_{i}": d for i, d in enumerate(interpreter.get_output_details())}


def tensor(interpreter: Any, detail: dict[str, Any]) -> Array:
    """A copy of a tensor; interpreters do not give those without elements."""
    (now,) = (d for d in interpreter.get_tensor_details() if d["index"] == detail["index"])
    if 0 in now["shape"]:
        return np.zeros(now["shape"], now["dtype"])
    return interpreter.get_tensor(detail["index"])


def refusals(made: Any) -> list[dict[str, str]]:
    """The nodes that the delegate left on the CPU."""
    return [
        {
            "op": node.op,
            "code": node.refusal.code if node.refusal else "",
            "what": node.refusal.what if node.refusal else "",
            "has": node.refusal.has if node.refusal else "",
            "reason": node.reason,
        }
        for node in made.nodes
        if not node.claimed
    ]


def quantized(value: Array, detail: dict[str, Any]) -> Array:
    """Floats as an input or output with one scale stores them."""
    scale, zero = detail["quantization"]
    limits = np.iinfo(detail["dtype"])
    rounded = np.round(value / (scale or 1)) + zero
    return np.asarray(np.clip(rounded, limits.min, limits.max)).astype(detail["dtype"])


def largest_rms(interpreter: Any) -> float:
    """The largest root mean square of a float tensor; where terms cancel, the error is of these."""
    squares = [0.0]
    for detail in interpreter.get_tensor_details():
        if detail["dtype"] != np.float32:
            continue
        try:
            value = interpreter.get_tensor(detail["index"]).astype(np.float64)
        except ValueError:  # of a tensor that no node has written, or that a node keeps for itself
            continue
        value = value[np.isfinite(value)]
        if value.size:
            squares.append(float(np.mean(value**2)))
    return float(np.sqrt(max(squares)))


def steps(interpreter: Any, allowed: float) -> dict[tuple[int, ...], float]:
    """The error that is allowed in results of this shape: steps of integers of that shape."""
    found: dict[tuple[int, ...], float] = {}
    for detail in interpreter.get_tensor_details():
        scale, shape = detail["quantization"][0], tuple(int(n) for n in detail["shape"])
        found[shape] = max(found.get(shape, 0.0), allowed * scale)
    return found


def same(a: Array, b: Array) -> bool:
    """Whether two arrays have the same values; NaN is the same as NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def difference(got: Array, want: Array, limit: str, scale: float, step: float = 0.0) -> str:
    """What differs, in words; integers are to be equal, floats as whole networks are compared.

    Parameters
    ----------
    got, want
        Of one output.
    limit
        The key of `MODEL_L2`.
    scale
        The root mean square that errors are relative to.
    step
        Error that each float may have besides.
    """
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if got.dtype.kind not in "fc":
        wrong = np.argwhere(got != want)
        if not len(wrong):
            return ""
        at = tuple(int(n) for n in wrong[0])
        return f"{len(wrong)} of {want.size} differ, at {at} {got[at]} instead of {want[at]}"
    if got.dtype.kind == "c":
        got, want = got.view(got.real.dtype), want.view(want.real.dtype)
    odd = ~np.isfinite(want) | ~np.isfinite(got)
    with np.errstate(all="ignore"):
        differ = odd & ~((got == want) | (np.isnan(got) & np.isnan(want)))
    if differ.any():
        at = tuple(int(n) for n in np.argwhere(differ)[0])
        return f"{int(differ.sum())} of {want.size} differ, at {at} {got[at]} instead of {want[at]}"
    off = np.where(odd, 0, got.astype(np.float64) - np.where(odd, 0, want))
    off = np.where(np.abs(off) <= 1.001 * step, 0, off)
    error = float(np.sqrt(np.mean(off**2))) if off.size else 0.0
    if error <= MODEL_L2[limit] * max(scale, float(np.finfo(np.float32).tiny)):
        return ""
    at = np.unravel_index(int(np.abs(off).argmax()), off.shape)
    where = tuple(int(n) for n in at)
    return f"error {error:.2e} of {scale:.2g}, at {where} {got[at]} instead of {want[at]}"


def main() -> int:
    """Serve cases, or repeat one."""
    if sys.argv[1:] == ["serve"]:
        children.serve(run_case)
        return 0
    case, *more = sys.argv[1:]
    device = more[0] if more else preferred_device()
    options = json.loads(more[1]) if len(more) > 1 else {}
    item = {"case": case, "ours": True, "device": device, "options": options}
    outcome, text = run_case(json.dumps(item))
    print(outcome, json.dumps(json.loads(text), indent=1))
    return 1 if outcome in {WRONG, FAILED} else 0


def preferred_device() -> str:
    """The first CPU, else the first device."""
    devices = clgpu_delegate.devices()
    return next((d.name for d in devices if d.type == "cpu"), devices[0].name)


if __name__ == "__main__":
    sys.exit(main())
