"""Write the model that smoke.py runs: ``python model.py MODEL.tflite``."""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.model_maker import ModelMaker


def model() -> bytes:
    """A convolution, a pooling and a softmax over (1, 8, 8, 3) floats."""
    rng = np.random.default_rng(3)
    m = ModelMaker()
    x = m.input("x", (1, 8, 8, 3), np.float32)
    weights = m.constant(rng.standard_normal((4, 3, 3, 3), dtype=np.float32))
    bias = m.constant(rng.standard_normal(4, dtype=np.float32))
    x = m.op("CONV_2D", [x, weights, bias], (1, 8, 8, 4), stride_h=1, stride_w=1, padding="SAME")
    x = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 4))
    m.output(m.op("SOFTMAX", [x], (1, 4), beta=1.0))
    return m.build()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(model())
