"""Make models and expected outputs from TensorFlow Lite's own generators of operation tests.

``python tests/op_zoo/make.py CHECKOUT OUT [--only NAMES] [--cases N] [--seed S]``, with a Python
that has TensorFlow and, for recurrent cells, tf_keras; of this project nothing is needed. CHECKOUT
is one of google-ai-edge/LiteRT: the modules of its folder ``tflite/testing/op_tests`` are imported
as they are. In place of modules from the build of that checkout they find functions of this file,
which draw a sample of the parameters, evaluate the graph in a TensorFlow session and convert it.

OUT/<operation>/<number>.tflite is a model, and the .npz beside it has the values of its inputs and
TensorFlow's outputs. OUT/<operation>/cases.jsonl has one line for each case: its parameters, the
names of inputs and outputs, and what became of it (`STARTED`, ... below). Finished generators are
skipped when the command runs again; OUT/generators has how each ended, and its messages.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import types
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

GENERATORS = Path("tflite") / "testing" / "op_tests"
CASES = 12  # of an operation
LIMIT_S = 900  # of a generator, which may have several operations
STARTS = 6  # of a generator whose process ends at a case, which is left out then
TRIES = 5  # parameters that are drawn for each case wanted; TensorFlow refuses some
CALIBRATIONS = 20  # runs that find the ranges of a quantized model

# What became of a case.
STARTED = "started"  # and nothing more: the process ended
REFUSED = "refused"  # TensorFlow does not compute it; generators rely on that
NOT_CONVERTED = "not converted"
CONVERTED = "converted"


class Options:
    """What generators read and change; the names are those of LiteRT's class."""

    def __init__(self, operation: str = "") -> None:
        self.operation = operation  # what the cases are for: not LiteRT's
        self.run_with_flex = False
        self.skip_high_dimension_inputs = False
        self.enable_dynamic_update_slice = False
        self.unfold_batchmatmul = False
        self.experimental_low_bit_qat = False
        self.tflite_convert_function = convert


class ExtraConvertOptions:
    """More of a generator's options for the converter."""

    def __init__(self) -> None:
        self.drop_control_dependency = False
        self.allow_custom_ops = False
        self.rnn_states = None
        self.split_tflite_lstm_inputs = None
        self.inference_input_type = None
        self.inference_output_type = None


class Maker:
    """Draws the cases of one operation and writes them to a folder."""

    def __init__(self, folder: Path, cases: int, seed: int) -> None:
        self.folder, self.cases, self.seed = folder, cases, seed
        folder.mkdir(parents=True, exist_ok=True)
        self.known = {case["number"]: case for case in read_cases(folder)}
        self.grids = 0

    def make_zip_of_tests(  # the name and the arguments are LiteRT's
        self,
        options: Options,
        test_parameters: Sequence[dict[str, Sequence[Any]]],
        make_graph: Callable[..., Any],
        make_test_inputs: Callable[..., Any],
        extra_convert_options: ExtraConvertOptions | None = None,
        use_frozen_graph: bool = False,
        expected_tf_failures: int = 0,
    ) -> None:
        """Make a sample of the cases that the product of the parameters has."""
        del use_frozen_graph, expected_tf_failures
        sizes = [math.prod(map(len, parameters.values())) for parameters in test_parameters]
        rng = random.Random(f"{self.seed} {self.folder.name} {self.grids}")
        order = rng.sample(range(sum(sizes)), min(sum(sizes), TRIES * self.cases))
        # A generator may call this twice: its cases count on.
        first, self.grids = self.grids * 10_000, self.grids + 1
        done = 0
        for number, drawn in enumerate(order, first):
            if done == self.cases:
                break
            case = self.known.get(number)
            if case is None:
                parameters = chosen(test_parameters, sizes, drawn)
                case = self._make(
                    number, parameters, options, make_graph, make_test_inputs, extra_convert_options
                )
            done += case["outcome"] != REFUSED

    def _make(
        self,
        number: int,
        parameters: dict[str, Any],
        options: Options,
        make_graph: Callable[..., Any],
        make_test_inputs: Callable[..., Any],
        extra: ExtraConvertOptions | None,
    ) -> dict[str, Any]:
        case = {
            "number": number,
            "operation": self.folder.name,
            "parameters": {key: str(value) for key, value in parameters.items()},
            "outcome": STARTED,
        }
        self._note(case)
        # The same values whichever cases were made before.
        seed = zlib.crc32(f"{self.seed} {self.folder.name} {number}".encode())
        name = str(self.folder / str(number))
        try:
            case.update(build(name, seed, parameters, options, make_graph, make_test_inputs, extra))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            case.update(outcome=NOT_CONVERTED, why=text[:2000])
        self._note(case)
        return case

    def _note(self, case: dict[str, Any]) -> None:
        with (self.folder / "cases.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(case) + "\n")


def read_cases(folder: Path) -> Iterator[dict[str, Any]]:
    """The cases of an operation, each as it was noted last."""
    path = folder / "cases.jsonl"
    cases = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            cases[case["number"]] = case
    yield from cases.values()


def chosen(
    grids: Sequence[dict[str, Sequence[Any]]], sizes: Sequence[int], drawn: int
) -> dict[str, Any]:
    """The parameters at a position of all grids."""
    for grid, size in zip(grids, sizes):
        if drawn < size:
            values = next(itertools.islice(itertools.product(*grid.values()), drawn, None))
            return dict(zip(grid, values))
        drawn -= size
    raise IndexError(drawn)


def build(
    name: str,
    seed: int,
    parameters: dict[str, Any],
    options: Options,
    make_graph: Callable[..., Any],
    make_test_inputs: Callable[..., Any],
    extra: ExtraConvertOptions | None,
) -> dict[str, Any]:
    """Evaluate and convert one graph; write NAME.npz and NAME.tflite; returns the outcome."""
    import numpy as np  # noqa: PLC0415 (as TensorFlow, only children need it)
    import tensorflow as tf  # noqa: PLC0415

    np.random.seed(seed)  # noqa: NPY002 (generators draw from it, too)
    tf.compat.v1.reset_default_graph()
    refusals = (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError, ValueError)
    folder = tempfile.mkdtemp("_op_zoo")
    try:
        with tf.Graph().as_default(), tf.device("/cpu:0"), tf.compat.v1.Session() as session:
            try:
                inputs, outputs = make_graph(parameters)
                inputs = [tensor for tensor in inputs if tensor is not None]
                given, wanted = make_test_inputs(parameters, session, inputs, outputs)
                given = [value for value in given if value is not None]
            except refusals as error:
                return {"outcome": REFUSED, "why": f"{type(error).__name__}: {error}"[:500]}
            names = save(session, folder, inputs, outputs)
            tensors = [(n, t.shape, t.dtype) for n, t in zip(names["inputs"], inputs)]
        arrays = {f"input {i}": storable(value) for i, value in enumerate(given)}
        arrays |= {f"output {i}": storable(value) for i, value in enumerate(wanted)}
        model, log = options.tflite_convert_function(
            options,
            folder,
            tensors,
            names["outputs"],
            extra_convert_options=extra or ExtraConvertOptions(),
            test_params=parameters,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if model is None:
        return {"outcome": NOT_CONVERTED, "why": log[:2000]}
    np.savez(name + ".npz", **arrays)
    Path(name + ".tflite").write_bytes(model)
    return {"outcome": CONVERTED, **names}


def storable(value: Any) -> Any:
    """An array that .npz files take without pickling: strings of one length, no bfloat16."""
    import numpy as np  # noqa: PLC0415

    array = np.asarray(value)
    if array.dtype.kind == "O":
        return array.astype(np.bytes_)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def save(
    session: Any, folder: str, inputs: Sequence[Any], outputs: Sequence[Any]
) -> dict[str, list[str]]:
    """Write a saved model; returns the names that its signature has for inputs and outputs."""
    import tensorflow as tf  # noqa: PLC0415

    info = tf.compat.v1.saved_model.utils.build_tensor_info
    names = {
        # Outputs may be one tensor twice.
        "inputs": [f"input_{i}" for i in range(len(inputs))],
        "outputs": [f"output_{i}" for i in range(len(outputs))],
    }
    signature = tf.compat.v1.saved_model.signature_def_utils.build_signature_def(
        inputs=dict(zip(names["inputs"], map(info, inputs))),
        outputs=dict(zip(names["outputs"], map(info, outputs))),
        method_name="op_zoo",
    )
    # Its own folder: the builder takes none that exists.
    builder = tf.compat.v1.saved_model.builder.SavedModelBuilder(f"{folder}/model")
    builder.add_meta_graph_and_variables(
        session,
        [tf.saved_model.SERVING],
        signature_def_map={tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        strip_default_attrs=True,
    )
    builder.save(as_text=False)
    return names


def convert(
    options: Options,
    folder: str,
    tensors: Sequence[tuple[str, Any, Any]],
    outputs: Sequence[str],
    extra_convert_options: ExtraConvertOptions,
    test_params: dict[str, Any],
) -> tuple[bytes | None, str]:
    """Convert a saved model as the parameters of its test say; returns it, or None and why not."""
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415

    del outputs
    converter = tf.lite.TFLiteConverter.from_saved_model(f"{folder}/model")
    converter.allow_custom_ops = extra_convert_options.allow_custom_ops
    converter.unfold_batchmatmul = options.unfold_batchmatmul
    # Attributes of the converter that have no public names.
    converter._experimental_enable_dynamic_update_slice = options.enable_dynamic_update_slice
    converter._experimental_low_bit_qat = options.experimental_low_bit_qat
    if test_params.get("dynamic_range_quantize"):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if test_params.get("fully_quantize"):
        low, high = test_params.get("input_range", (-1, 1))
        rng = np.random.default_rng(0)

        def values() -> Iterator[dict[str, Any]]:
            for _ in range(CALIBRATIONS):
                yield {
                    name: np.asarray(
                        rng.uniform(low, high, [n or 1 for n in shape.as_list()])
                    ).astype(dtype.as_numpy_dtype)
                    for name, shape, dtype in tensors
                    if shape.rank is not None
                }

        sets = tf.lite.OpsSet
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = values
        converter.target_spec.supported_ops = [
            sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            if test_params.get("quant_16x8")
            else sets.TFLITE_BUILTINS_INT8
        ]
        if extra_convert_options.inference_input_type:
            converter.inference_input_type = extra_convert_options.inference_input_type
        if extra_convert_options.inference_output_type:
            converter.inference_output_type = extra_convert_options.inference_output_type
    try:
        return converter.convert(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def create_tensor_data(dtype: Any, shape: Any, min_value: Any = -100, max_value: Any = 100) -> Any:
    """Random values of a type of NumPy or TensorFlow; of integers, the maximum is one of them."""
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415

    dtype = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
    shape = tuple(int(n) for n in np.atleast_1d(shape)) if shape is not None else ()
    draw = np.random  # seeded for each case, and generators draw from it, too
    if dtype.kind == "b":
        value = draw.randint(0, 2, shape)
    elif dtype.kind in "iu":
        value = draw.randint(min_value, max_value + 1, shape)
    elif dtype.kind in "SO":
        letters = draw.randint(ord("A"), ord("Z") + 1, shape)
        value, dtype = np.vectorize(chr, otypes="U")(letters), np.dtype(np.bytes_)
    else:
        value = draw.uniform(min_value, max_value, shape)
        if dtype.kind == "c":
            value = value + 1j * draw.uniform(min_value, max_value, shape)
    return np.asarray(value).astype(dtype)


def create_scalar_data(dtype: Any, min_value: Any = -100, max_value: Any = 100) -> Any:
    """Draw one value, as an array without dimensions."""
    return create_tensor_data(dtype, (), min_value, max_value)


def stand_in(checkout: Path, out: Path, cases: int, seed: int) -> dict[str, Callable[..., Any]]:
    """Give the generators what they import; returns the functions that they register, by name."""
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415
    from tensorflow.lite.python import lite  # noqa: PLC0415

    registered: dict[str, Callable[..., Any]] = {}
    makers: dict[str, Maker] = {}

    def register_make_test_function(name: str | None = None) -> Callable[..., Any]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            registered[name or function.__name__] = function
            return function

        return register

    def make_zip_of_tests(options: Options, *arguments: Any, **named: Any) -> None:
        name = options.operation
        if name not in makers:
            makers[name] = Maker(out / name, cases, seed)
        makers[name].make_zip_of_tests(options, *arguments, **named)

    # Imports of packages find these; submodules are found in the checkout.
    for package in ("tflite", "tflite.testing", "tflite.testing.op_tests", "tflite.python"):
        module = types.ModuleType(package)
        module.__path__ = [str(checkout / package.replace(".", "/"))]
        sys.modules[package] = module
    utils = types.ModuleType("tflite.testing.zip_test_utils")
    utils.__dict__.update(
        create_tensor_data=create_tensor_data,
        create_scalar_data=create_scalar_data,
        register_make_test_function=register_make_test_function,
        make_zip_of_tests=make_zip_of_tests,
        ExtraConvertOptions=ExtraConvertOptions,
        MAP_TF_TO_NUMPY_TYPE={
            dtype: np.dtype(dtype.as_numpy_dtype).type
            for dtype in (
                *(tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.bool),
                *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32),
            )
        }
        | {tf.string: np.bytes_},
    )
    sys.modules["tflite.testing.zip_test_utils"] = utils
    sys.modules["tflite.testing"].zip_test_utils = utils  # type: ignore[attr-defined]
    sys.modules["tflite.python.lite"] = lite
    sys.modules["tflite.python"].lite = lite  # type: ignore[attr-defined]
    return registered


def generate(name: str, checkout: Path, out: Path, cases: int, seed: int) -> None:
    """In the child: make the cases of one generator, all its operations."""
    log = (out / "generators" / f"{name}.txt").open("a", encoding="utf-8")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    registered = stand_in(checkout, out, cases, seed)
    importlib.import_module(f"tflite.testing.op_tests.{name}")
    errors = {}
    for function, make in registered.items():
        operation = function.removeprefix("make_").removesuffix("_tests")
        try:
            make(Options(operation))
        except Exception as error:
            errors[operation] = f"{type(error).__name__}: {error}"[:2000]
    note = {"ending": "finished", "operations": sorted(registered), "errors": errors}
    note_path(out, name).write_text(json.dumps(note) + "\n", encoding="utf-8")


def note_path(out: Path, name: str) -> Path:
    """Where it is noted how a generator ended."""
    return out / "generators" / f"{name}.json"


def facts_path(out: Path) -> Path:
    """Where it is noted what drew the cases."""
    return out / "facts.json"


def version_of_tensorflow() -> str:
    """The version of the package that is installed; empty if none is."""
    for name in ("tensorflow", "tensorflow-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return ""


def attempt(context: Any, name: str, limit_s: float, *arguments: Any) -> str:
    """Run a generator in children until it is finished; returns how it ended."""
    out = arguments[1]
    start = time.monotonic()
    ending = ""
    for _ in range(STARTS):
        child = context.Process(target=generate, args=(name, *arguments))
        child.start()
        child.join(max(1.0, limit_s - (time.monotonic() - start)))
        if child.exitcode is None:
            child.kill()
            child.join()
            ending = f"no end within {limit_s:.0f} s"
            break
        if note_path(out, name).exists():
            return "finished"
        ending = f"its process ended with {child.exitcode}"
        if child.exitcode > 0:  # an exception, the same again
            break
    note_path(out, name).write_text(json.dumps({"ending": ending}) + "\n", encoding="utf-8")
    return ending


def main() -> int:
    """Make the cases of all generators, or of those named; returns 1 if one did not finish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of google-ai-edge/LiteRT")
    parser.add_argument("out", type=Path, help="folder for the models")
    parser.add_argument("--only", default="", metavar="NAMES", help="generators, with commas")
    parser.add_argument("--cases", type=int, default=CASES, help=f"of an operation; {CASES}")
    parser.add_argument("--seed", type=int, default=0, help="what draws them; 0")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help=f"seconds each; {LIMIT_S}")
    asked = parser.parse_args()
    folder = asked.checkout / GENERATORS
    names = sorted(path.stem for path in folder.glob("*.py"))
    if not names:
        parser.error(f"{folder} has no generators: {asked.checkout} is not a checkout of LiteRT")
    only = [name for name in asked.only.split(",") if name]
    if unknown := sorted(set(only) - set(names)):
        parser.error(f"{folder} has no generator named {', '.join(unknown)}")
    out = asked.out.resolve()
    (out / "generators").mkdir(parents=True, exist_ok=True)
    facts = {"cases": asked.cases, "seed": asked.seed, "tensorflow": version_of_tensorflow()}
    facts_path(out).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 has no cells of recurrent networks
    # TensorFlow is imported once; each generator has a fork of that process.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tensorflow", "tensorflow.lite.python.lite"])
    unfinished = 0
    for name in only or names:
        if note_path(out, name).exists():
            continue
        start = time.monotonic()
        arguments = (asked.checkout.resolve(), out, asked.cases, asked.seed)
        ending = attempt(context, name, asked.limit, *arguments)
        unfinished += ending != "finished"
        print(f"{name}: {ending}, {time.monotonic() - start:.0f} s", flush=True)
    return 1 if unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
