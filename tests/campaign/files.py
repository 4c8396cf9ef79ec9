"""Damaged and malicious model files, with the delegate and with the stock runtime.

``python -m tests.campaign.files NUMBER`` writes one file to the present folder and tries it.
"""

from __future__ import annotations

import functools
import os
import resource
import struct
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tflite

import clgpu_delegate
from clgpu_delegate import ClgpuError, _core
from clgpu_delegate.base import files
from tests.campaign import children, graphs
from tests.campaign.table import Row
from tests.models.random_graphs import random_graph
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2

FILES = 20_000  # of a whole campaign
WHAT = "damaged or hostile model files"
WHAT_ENDS_STOCK = "of these, files that end stock TensorFlow Lite: refused before it sees them"
MORE = Path(__file__).resolve().parents[2].parent / "shared" / "models"
LARGEST = 60_000  # bytes of a file of those
MEMORY = 4 << 30  # memory limit of a child in bytes: shapes are random
LIMIT_S = 60
COMPARED = 10_000_000  # elements of an output, as many as the memory above has room for

BOUNDARIES = [0, 1, 2, 3, 4, 7, 16, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536]
BOUNDARIES += [2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2, 2**32 - 128]
REALS = [0.0, -0.0, -1.0, float("inf"), float("nan"), 1e-45, 1e-38, 1e-20, 1e20, 3e38, 0.5, 1.0]
REALS += [1 / 256, 1 / 32768]
# With other scales the shifts and ranges of stock's integer arithmetic overflow, so its results are
# undefined.
SCALES = (1e-15, 1e15)
# Stock cuts products of sums and scales to 32 bits; below this even a scale of two leaves room.
BIAS = 1 << 30

Spot = tuple[str, int, int]  # what lies there, where, how many bytes


class Places:
    """The positions of the relevant fields in a model's bytes."""

    def __init__(self, content: bytearray) -> None:
        self.content = content
        self.spots: dict[str, list[Spot]] = {}
        model = tflite.Model.GetRootAs(content, 0)
        for i in range(model.OperatorCodesLength()):
            self.table("code", model.OperatorCodes(i))
        for i in range(model.BuffersLength()):
            self.vector("data", model.Buffers(i), 0, 1)
        for i in range(model.SubgraphsLength()):
            graph = model.Subgraphs(i)
            self.vector("ends", graph, 1, 4)
            self.vector("ends", graph, 2, 4)
            for k in range(graph.TensorsLength()):
                tensor = graph.Tensors(k)
                self.table("tensor", tensor, but={0, 3, 4, 6, 7, 9})
                self.vector("shape", tensor, 0, 4)
                scale = tensor.Quantization()
                if scale is not None:
                    self.vector("scale", scale, 2, 4)
                    self.vector("zero point", scale, 3, 8)
                    self.table("axis", scale, but={0, 1, 2, 3, 5})
            for k in range(graph.OperatorsLength()):
                node = graph.Operators(k)
                self.table("node", node, but={1, 2, 4, 5, 7, 8, 12})
                self.vector("operand", node, 1, 4)
                self.vector("operand", node, 2, 4)
                self.vector("custom", node, 5, 1)
                options = node.BuiltinOptions()
                if options is not None:
                    self.fields("option", options.Pos)

    def add(self, what: str, at: int, width: int) -> None:
        if at >= 0 and at + width <= len(self.content):
            self.spots.setdefault(what, []).append((what, at, width))

    def table(self, what: str, table: Any, but: set[int] | None = None) -> None:
        self.fields(what, table._tab.Pos, but or set())

    def fields(self, what: str, at: int, but: set[int] | None = None) -> None:
        (back,) = struct.unpack_from("<i", self.content, at)
        length, size = struct.unpack_from("<HH", self.content, at - back)
        offsets = [
            struct.unpack_from("<H", self.content, at - back + i)[0] for i in range(4, length, 2)
        ]
        ends = sorted({*offsets, size} - {0})
        for slot, offset in enumerate(offsets):
            if offset == 0 or slot in (but or set()):
                continue
            room = min((end for end in ends if end > offset), default=size) - offset
            self.add(what, at + offset, max(w for w in (1, 2, 4, 8) if w <= max(room, 1)))

    def vector(self, what: str, table: Any, slot: int, width: int) -> None:
        offset = table._tab.Offset(4 + 2 * slot)
        if offset == 0:
            return
        start, count = table._tab.Vector(offset), table._tab.VectorLen(offset)
        self.add("length", start - 4, 4)
        for i in range(min(count, 64)):
            self.add(what, start + i * width, width)


def change(content: bytes, random: Random) -> bytes:
    """The file with one to three changes."""
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        try:
            places = Places(changed)
        except Exception:  # an earlier change has broken the tables
            places = None
        how = random.choice(["bits", "cut", *["field"] * 8, *["operand"] * 4])
        if how == "bits" or places is None or not places.spots:
            for _ in range(random.randint(1, 4)):
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        elif how == "cut":
            del changed[random.randrange(8, len(changed)) :]
        elif how == "operand" and "operand" in places.spots:
            _swap(changed, places.spots["operand"], random)
        else:
            _set(changed, places, random)
        if len(changed) < 16:
            break
    return bytes(changed)


def _swap(changed: bytearray, spots: list[Spot], random: Random) -> None:
    _, at, _ = random.choice(spots)
    _, other, _ = random.choice(spots)
    mine, its = changed[at : at + 4], changed[other : other + 4]
    how = random.choice(["absent", "other", "swapped", "beyond"])
    if how in {"other", "swapped"}:
        changed[at : at + 4] = its
    if how == "swapped":
        changed[other : other + 4] = mine
    if how in {"absent", "beyond"}:
        struct.pack_into("<i", changed, at, -1 if how == "absent" else random.choice([1000, -2]))


def _set(changed: bytearray, places: Places, random: Random) -> None:
    _, at, width = random.choice(places.spots[random.choice(sorted(places.spots))])
    if places.spots.get("scale") and random.randrange(4) == 0:
        _, at, width = random.choice(places.spots["scale"])
        struct.pack_into("<f", changed, at, random.choice(REALS))
        return
    value = random.choice([*BOUNDARIES, random.randrange(20), random.randrange(20)])
    if width == 8 and random.randrange(2):
        value |= value << 32
    changed[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")


@functools.lru_cache(maxsize=1)
def models() -> list[Path]:
    """Small models from other projects, if they are present."""
    found = sorted(MORE.rglob("*.tflite"))
    return [path for path in found if path.stat().st_size <= LARGEST]


def made(item: str) -> bytes:
    """The file of a number."""
    random = Random(int(item))
    others = models() if random.randrange(3) == 0 else []
    seed = random.getrandbits(20)
    content = random.choice(others).read_bytes() if others else random_graph(Random(seed)).model
    return change(content, random)


def run(share: int, seed: int) -> list[Row]:
    """One in ``share`` of all files; failures are printed as they are found."""
    rows, _ = attempt(FILES // share, seed)
    return rows


def attempt(count: int, seed: int) -> tuple[list[Row], list[str]]:
    """Try this many files; returns the rows, and how to repeat each failure with its message."""
    row, ends_stock, failures = Row(WHAT), Row(WHAT_ENDS_STOCK), []
    items = [str(seed * 1_000_000 + i) for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        stock = children.answers(__name__, items, LIMIT_S, CLGPU_CAMPAIGN_STOCK=folder)
        ours = children.answers(__name__, items, LIMIT_S, CLGPU_CAMPAIGN_OURS=folder)
        for item, outcome, _ in stock:
            if outcome in {"died", "hung"}:
                (Path(folder) / item).unlink(missing_ok=True)
            _, outcome_of_ours, text = next(ours)
            (Path(folder) / item).unlink(missing_ok=True)
            if outcome in {"died", "hung"}:
                # Without our check, stock would crash in the same way: that is not our crash.
                seen = outcome_of_ours == "refused"
                ends_stock.count("told" if seen else "right")
                row.count("told" if seen else "right")
                continue
            if outcome_of_ours == "cut":
                # Tables point out of the file. Stock does not check that, and runs what it does not
                # happen to read.
                outcome_of_ours = "told"
            elif outcome_of_ours == "refused":  # and stock, too, has one sentence, or runs it
                # Runtimes run files with further graphs that are damaged and not used, and such as
                # write a tensor twice, if its memory happens to suffice.
                unused = " of subgraph " in text and " of subgraph 0" not in text
                runs = outcome == "ran" and not unused and _is_ordered(made(item))
                outcome_of_ours = "stuck" if runs else "told"
                text = f"stock runs it, the check of files: {text}"
            row.count(outcome_of_ours)
            if outcome_of_ours not in {"right", "told"}:
                failures.append(f"{outcome_of_ours}: python -m {__name__} {item}: {text}")
                print(failures[-1], file=sys.stderr, flush=True)
    return [row, ends_stock], failures


def stock_one(item: str, folder: str) -> tuple[str, str]:
    """Run a file without the delegate and keep its results."""
    content = made(item)
    path = Path(folder) / item
    try:
        # As it runs for users: stock kernels that write past a tensor end the process where tensors
        # share memory, and not where each has its own.
        _outputs(make_interpreter(op_runtime(), content, resolver="ref"), item)
        interpreter = make_interpreter(
            op_runtime(), content, resolver="ref", preserve_all_tensors=True
        )
        outputs = _outputs(interpreter, item)
        with path.open("wb") as file:
            np.savez(file, _scale(interpreter), *outputs)
    except Exception as error:
        path.write_bytes(b"")
        return "error", str(error)
    return "ran", ""


def our_one(item: str, folder: str | None) -> tuple[str, str]:
    """Run a file with the delegate and compare."""
    content = made(item)
    kept = Path(folder) / item if folder else None
    wanted = kept is not None and kept.exists() and kept.stat().st_size > 0
    try:
        files.check_model(content, "the file")
    except ClgpuError as error:
        return "cut" if _core.model_file_problem(content) else "refused", str(error)
    if kept is not None and not kept.exists():
        return "right", "stock dies of it"
    try:
        # As the reference multiplies floats by weights of int8.
        delegate = clgpu_delegate.load(
            device=graphs.device(), warm_up=False, dynamic_range="hybrid"
        )
        interpreter = make_interpreter(op_runtime(), content, [delegate], resolver="ref")
        outputs = _outputs(interpreter, item)
    except Exception as error:
        if "src_cpp/" in str(error):
            return "stuck", f"an internal check: {error}"
        # Where a node reads what memory holds, it depends on that whether it fails. Files that
        # stock does not run may have tables that cannot be read.
        differs = wanted and _is_ordered(content) and _has_results_of_one_type(content)
        return ("stuck", f"stock runs it, we say: {error}") if differs else ("right", str(error))
    try:
        problem = _compared(content, outputs, kept) if wanted else ""
        if problem and _varies(content, item, kept):
            problem = ""
    except MemoryError:  # outputs of gigabytes fit into the memory of this process once, not twice
        problem = ""
    return ("wrong", problem) if problem else ("right", "")


def _compared(content: bytes, outputs: list[Any], kept: Path) -> str:
    """The difference from stock's outputs; empty if stock's are undefined."""
    defined = [_is_ordered, _has_constants, _has_scales, _has_biases, _has_known_activations]
    defined += [_has_results_of_one_type]
    if not all(is_defined(content) for is_defined in defined):
        return ""
    with np.load(kept) as arrays:
        wanted = [arrays[f"arr_{i + 1}"] for i in range(len(outputs))]
        allowed = MODEL_L2["hybrid" if _is_hybrid(content) else "fp32"]
        return _difference(wanted, outputs, float(arrays["arr_0"]), allowed)


def _varies(content: bytes, item: str, kept: Path) -> bool:
    """Whether stock itself gives another result.

    With another memory layout of tensors, if it reads unwritten memory. Or with its default
    kernels, if constants are not finite: they multiply weights by the zeros of a border, while the
    reference kernels skip these products. Or if there is a SUM: the reference kernels take int8
    and int16 for uint8.
    """
    resolvers = ["ref"] if _is_finite(content) and not _has_sum(content) else ["ref", "builtin"]
    for resolver in resolvers:
        interpreter = make_interpreter(op_runtime(), content, resolver=resolver)
        if _compared(content, _outputs(interpreter, item), kept):
            return True
    return False


def _has_sum(content: bytes) -> bool:
    """Whether a node is a SUM of int8 or int16."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    for i in range(graph.OperatorsLength()):
        node = graph.Operators(i)
        code = model.OperatorCodes(node.OpcodeIndex())
        if code.BuiltinCode() == tflite.BuiltinOperator.SUM and node.InputsLength():
            kind = graph.Tensors(node.Inputs(0)).Type()
            if kind in {tflite.TensorType.INT8, tflite.TensorType.INT16}:
                return True
    return False


def _is_finite(content: bytes) -> bool:
    """Whether all constants of real numbers are finite."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    types = {tflite.TensorType.FLOAT32: "<f4", tflite.TensorType.FLOAT16: "<f2"}
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        buffer = model.Buffers(tensor.Buffer())
        dtype = np.dtype(types.get(tensor.Type(), "<i4"))
        if dtype.kind != "f" or not buffer.DataLength() or buffer.DataLength() % dtype.itemsize:
            continue
        if not np.isfinite(buffer.DataAsNumpy().view(dtype)).all():
            return False
    return True


def _is_ordered(content: bytes) -> bool:
    """Whether each node reads only inputs, constants, or tensors that were written once before."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    known = set(graph.InputsAsNumpy().tolist()) if graph.InputsLength() else set()
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        if model.Buffers(tensor.Buffer()).DataLength() or tensor.IsVariable():
            known.add(i)
    for k in range(graph.OperatorsLength()):
        node = graph.Operators(k)
        inputs = node.InputsAsNumpy().tolist() if node.InputsLength() else []
        outputs = node.OutputsAsNumpy().tolist() if node.OutputsLength() else []
        if not known.issuperset(i for i in inputs if i >= 0) or not known.isdisjoint(outputs):
            return False
        if len(set(outputs)) < len(outputs):
            return False
        known.update(outputs)
    return known.issuperset(graph.OutputsAsNumpy().tolist())


def _has_constants(content: bytes) -> bool:
    """Whether no constant is also an input of the graph: setting one changes what was uploaded."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    inputs = graph.InputsAsNumpy().tolist() if graph.InputsLength() else []
    return not any(model.Buffers(graph.Tensors(i).Buffer()).DataLength() for i in inputs)


def _has_scales(content: bytes) -> bool:
    """Whether all scales are such that stock's integer arithmetic is defined."""
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    low, high = SCALES
    for i in range(graph.TensorsLength()):
        quantization = graph.Tensors(i).Quantization()
        if quantization is None or not quantization.ScaleLength():
            continue
        scales = quantization.ScaleAsNumpy()
        if not ((scales >= low) & (scales <= high)).all():
            return False
    return True


def _has_biases(content: bytes) -> bool:
    """Whether all constants of int64 are such that stock's multiplication is defined."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        buffer = model.Buffers(tensor.Buffer())
        if tensor.Type() != tflite.TensorType.INT64 or buffer.DataLength() % 8:
            continue
        if buffer.DataLength() and not (abs(buffer.DataAsNumpy().view("<i8")) < BIAS).all():
            return False
    return True


def _has_known_activations(content: bytes) -> bool:
    """Whether no node has a fused activation that stock kernels silently ignore."""
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    left_out = {tflite.ActivationFunctionType.TANH, tflite.ActivationFunctionType.SIGN_BIT}
    names = {code: name for name, code in vars(tflite.BuiltinOptions).items()}
    for k in range(graph.OperatorsLength()):
        node = graph.Operators(k)
        kind = getattr(tflite, str(names.get(node.BuiltinOptionsType())), None)
        table = node.BuiltinOptions()
        if not hasattr(kind, "FusedActivationFunction") or table is None:
            continue
        options = kind()
        options.Init(table.Bytes, table.Pos)
        if options.FusedActivationFunction() in left_out:
            return False
    return True


def _has_results_of_one_type(content: bytes) -> bool:
    """Whether no node writes its input's type into a larger one, leaving bytes unwritten."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    names = ["RESHAPE", "SQUEEZE", "EXPAND_DIMS", "REDUCE_ANY", "REDUCE_ALL", "REDUCE_MIN"]
    names += ["REDUCE_MAX", "REDUCE_PROD", "SUM", "MEAN"]
    codes = {getattr(tflite.BuiltinOperator, name) for name in names}
    for k in range(graph.OperatorsLength()):
        node = graph.Operators(k)
        code = model.OperatorCodes(node.OpcodeIndex())
        if max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) not in codes:
            continue
        if graph.Tensors(node.Inputs(0)).Type() != graph.Tensors(node.Outputs(0)).Type():
            return False
    return True


def _outputs(interpreter: Any, item: str) -> list[Any]:
    interpreter.allocate_tensors()
    rng = np.random.default_rng(int(item))
    for detail in interpreter.get_input_details():
        shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
        if int(np.prod([int(d) for d in shape], dtype=object)) > 1_000_000:
            message = "the input is too large for this campaign"
            raise MemoryError(message)
        values = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 4, shape)
        interpreter.set_tensor(detail["index"], values.astype(dtype))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    # Text, which the delegate does not handle, as bytes: objects cannot be stored in files.
    return [y.astype("S") if y.dtype.kind == "O" else y for y in outputs]


def _scale(interpreter: Any) -> float:
    """The largest root mean square of a float tensor, without its infinities and NaNs."""
    scale = 1.0
    for detail in interpreter.get_tensor_details():
        if np.dtype(detail["dtype"]).kind != "f":
            continue
        try:
            values = interpreter.get_tensor(detail["index"]).astype(np.float64)
        except ValueError:  # it has no memory
            continue
        values = values[np.isfinite(values)]
        if values.size:
            scale = max(scale, float(np.sqrt(np.mean(values**2))))
    return scale


def _is_hybrid(content: bytes) -> bool:
    """Whether floats are multiplied by weights of int8."""
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    for k in range(graph.OperatorsLength()):
        node = graph.Operators(k)
        ids = node.InputsAsNumpy().tolist() if node.InputsLength() else []
        types = [graph.Tensors(i).Type() for i in ids[:2] if i >= 0]
        if types == [tflite.TensorType.FLOAT32, tflite.TensorType.INT8]:
            return True
    return False


def _difference(wanted: list[Any], got: list[Any], scale: float, allowed: float) -> str:
    for i, (its, ours) in enumerate(zip(wanted, got)):
        if its.shape != ours.shape or its.dtype != ours.dtype:
            return f"output {i} is {ours.dtype} {ours.shape}, stock's is {its.dtype} {its.shape}"
        w, g = its.ravel()[:COMPARED], ours.ravel()[:COMPARED]
        if w.dtype.kind != "f":
            if (w != g).any():
                return f"output {i}: {int((w != g).sum())} of {w.size} values differ"
            continue
        if not np.isfinite(scale) or scale > 1e18:
            continue  # sums of such numbers depend on their order
        with np.errstate(all="ignore"):
            same = (w == g) | (np.isnan(w) & np.isnan(g))
            error = np.where(same, 0, np.abs(w.astype(np.float64) - g))
        largest = float(np.sqrt(np.mean(error**2))) / scale if error.size else 0.0
        if not largest <= allowed:
            return f"output {i}: error {largest:.2e} of {scale:.2g}"
    return ""


def main() -> int:
    """Serve numbers, or try the file of one."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if sys.argv[1:] == ["serve"]:
        if folder := os.environ.get("CLGPU_CAMPAIGN_STOCK"):
            children.serve(lambda item: stock_one(item, folder))
        else:
            folder = os.environ["CLGPU_CAMPAIGN_OURS"]
            children.serve(lambda item: our_one(item, folder))
        return 0
    (item,) = sys.argv[1:]
    Path(f"{item}.tflite").write_bytes(made(item))
    with tempfile.TemporaryDirectory() as folder:
        print("stock:", *stock_one(item, folder), flush=True)
        print("with the delegate:", *our_one(item, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
