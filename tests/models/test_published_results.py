"""Models that another project has published together with its inputs and results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter

ROOT = Path(__file__).resolve().parents[2].parent / "shared" / "models" / "more"
SEANET = ROOT / "tflm_seanet_int16"
KINDS = sorted(path.name for path in SEANET.iterdir()) if SEANET.is_dir() else [""]


def numbers(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=1)


def published(model: Path, what: str) -> Path:
    """Of an input or the result, in the file whose name tells the type."""
    (path,) = model.parent.glob(f"{model.stem}_{what}_*.csv")
    return path


@pytest.mark.skipif(not SEANET.is_dir(), reason=f"there is no {SEANET}")
@pytest.mark.parametrize("kind", KINDS)
def test_int16_operations_give_the_published_results(kind, device):
    """Nodes of a speech codec: in TensorFlow Lite Micro's suite, with expected results."""
    models = sorted((SEANET / kind).glob("*.tflite"))
    assert models
    for path in models:
        delegate = clgpu_delegate.load(device=device)
        interpreter = make_interpreter(op_runtime(), path.read_bytes(), [delegate])
        interpreter.allocate_tensors()
        for i, detail in enumerate(interpreter.get_input_details()):
            given = numbers(published(path, f"input{i}"))
            value = given.reshape(detail["shape"]).astype(detail["dtype"])
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        want = numbers(published(path, "golden"))
        np.testing.assert_array_equal(got.reshape(-1), want, err_msg=path.name)
        left = [node.reason for node in delegate.explain().nodes if not node.claimed]
        wanted = ["the output shape is computed at run time"] if kind == "transpose_conv" else []
        assert left == wanted, path.name
