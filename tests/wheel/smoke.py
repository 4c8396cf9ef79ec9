"""Smoke test of an installed wheel: ``python smoke.py [MODEL.tflite]``.

Run it with the Python of an environment that has the wheel, from any folder except the checkout.
Without a model it needs no device and no runtime. Used by tests/wheel/test_wheel.py and by
cibuildwheel.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import clgpu_delegate
from clgpu_delegate import _core

RUNTIMES = ("ai_edge_litert", "tflite_runtime")


def main():
    places = {Path(module.__file__).parent for module in (clgpu_delegate, _core)}
    assert len(places) == 1, places
    (place,) = places
    assert "site-packages" in place.parts, place
    check_commands()
    if len(sys.argv) > 1:
        check_model(sys.argv[1])
    print(f"{platform.machine()}, Python {platform.python_version()}: works")


def check_commands():
    version = importlib.metadata.version("clgpu_delegate")
    assert _core.__version__ == clgpu_delegate.__version__ == version
    code, text = clgpu("--version")
    assert (code, text) == (0, f"clgpu_delegate {version}\n"), text
    code, text = clgpu("devices")
    print(f"clgpu devices: {text.strip()}")
    # Without a device there is one sentence, but no crash and no traceback.
    assert code == 0 or (code > 0 and re.match(r"clgpu: [A-Z].*", text)), (code, text)


def check_model(path):
    """Run a model on the CPU and through both entries of the delegate."""
    x = np.random.default_rng(7).standard_normal((1, 8, 8, 3), dtype=np.float32)
    ran = 0
    for name in RUNTIMES:
        try:
            runtime = __import__(f"{name}.interpreter", fromlist=["Interpreter"])
        except ImportError:
            continue
        want = outputs(runtime, path, x, [])
        delegate = clgpu_delegate.load(precision="fp32")
        np.testing.assert_allclose(outputs(runtime, path, x, [delegate]), want, atol=1e-5)
        assert delegate.stats()["launches"] > 0, "nothing ran on the device"
        plugin = runtime.load_delegate(clgpu_delegate.plugin_path(), {"precision": "fp32"})
        np.testing.assert_allclose(outputs(runtime, path, x, [plugin]), want, atol=1e-5)
        print(f"{name}: right by load() and by load_delegate()")
        ran += 1
    assert ran, f"none of {', '.join(RUNTIMES)} is installed"


def outputs(runtime, path, x, delegates):
    interpreter = runtime.Interpreter(path, experimental_delegates=delegates, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def clgpu(*words):
    """Exit code and output of a command, started like a user."""
    command = shutil.which("clgpu", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    assert command, "the command clgpu is not installed"
    result = subprocess.run(
        [command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return result.returncode, result.stdout


if __name__ == "__main__":
    main()
