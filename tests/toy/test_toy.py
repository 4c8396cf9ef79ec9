"""A new operation needs its source file, its kernels and one line: FAKE_QUANT for example.

The delegate lacks it.

The extension is linked again with these files into a folder of the test.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clgpu_delegate import _core
from tests.python.subprocesses import assert_succeeds, run_python

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

USE = """
import importlib.util, os, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("clgpu_delegate._core", sys.argv[1])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])

import numpy as np
import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check
from tests.runtimes import make_interpreter, run_interpreter

os.chdir(sys.argv[2])
device = str(clgpu_delegate.devices()[0].index)
rng = np.random.default_rng(3)
x = (rng.integers(-9, 299, 15) + rng.uniform(-0.4, 0.4, 15)).astype(np.float32)
m = ModelMaker()
settings = {"min": 0.0, "max": 255.0, "num_bits": 8}
m.output(m.op("FAKE_QUANT", [m.input("x", (15,))], (15,), **settings))
want = [np.clip(np.rint(x), 0, 255).astype(np.float32)]
# Claimed, planned and computed by each of its candidates.
check(m.build(), [x], want, device=device, precision="fp32", verify="first")
Path("toy.tflite").write_bytes(m.build())
(layer,) = clgpu_delegate.tune("toy.tflite", device=device, cache="cache").layers
print(layer.op, layer.outcome, *sorted(layer.seconds), dict(layer.problems))

# A mistake of whoever adds a family: the node is left to the CPU, and told why.
os.environ["TOY_FORGETS_EACH"] = "1"
delegate = clgpu_delegate.load(device=device, cache="off")
interpreter = make_interpreter("auto", m.build(), [delegate])
(got,) = run_interpreter(interpreter, [x])
np.testing.assert_array_equal(got, want[0])
(node,) = delegate.explain().nodes
print(node.claimed, node.reason)
"""


def tool(build: Path, name: str) -> str:
    """A program that built the extension."""
    found = re.search(rf"^{name}:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    if found is None or shutil.which(found[1]) is None:
        pytest.skip(f"what the extension was made with is gone: {name}")
    return found[1]


def compiled(commands: list[dict[str, str]], like: str, source: Path, folder: Path) -> Path:
    """Compile a file like the project's file whose name has this end."""
    (entry,) = (c for c in commands if c["file"].endswith(like) and "clgpu_objects" in c["command"])
    words = shlex.split(entry["command"])
    target = folder / f"{source.stem}.o"
    words[words.index("-o") + 1], words[words.index("-c") + 1] = str(target), str(source)
    # Before the project's own folders: the list of families is the one of the test.
    words.insert(words.index("-o"), f"-I{folder}")
    first = next(i for i, word in enumerate(words) if word.startswith("-I"))
    words.insert(first, f"-I{folder}")
    subprocess.run(words, cwd=entry["directory"], check=True)
    return target


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tag = f"cp3{sys.version_info.minor}-"
    builds = [found.parent for found in ROOT.glob(f"build/{tag}*/build.ninja")]
    if len(builds) != 1 or not (builds[0] / Path(_core.__file__).name).is_file():
        pytest.skip("the extension was not compiled in this folder, by ninja")
    (build,) = builds
    ninja, cmake = tool(build, "CMAKE_MAKE_PROGRAM"), tool(build, "CMAKE_COMMAND")
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(ROOT / "kernels", folder / "kernels")
    (folder / "kernels" / "toy").mkdir()
    shutil.copy(HERE / "toy.cl", folder / "kernels" / "toy")
    (folder / "ops").mkdir()
    listed = (ROOT / "src_cpp" / "ops" / "families.def").read_text()
    (folder / "ops" / "families.def").write_text(f"{listed}CLGPU_FAMILY(kToyFamily)\n")
    embedded = folder / "embedded_kernels.cpp"
    script = ROOT / "src_cpp" / "cmake" / "EmbedKernels.cmake"
    definitions = [f"-DKERNELS={folder / 'kernels'}", f"-DOUTPUT={embedded}"]
    subprocess.run([cmake, *definitions, "-P", script], check=True)

    commands = json.loads((build / "compile_commands.json").read_text())
    registry = ROOT / "src_cpp" / "ops" / "registry.cpp"
    new = {
        "registry.cpp.o": compiled(commands, "ops/registry.cpp", registry, folder),
        "embedded_kernels.cpp.o": compiled(commands, "embedded_kernels.cpp", embedded, folder),
    }
    toy = compiled(commands, "ops/registry.cpp", HERE / "toy.cpp", folder)
    told = subprocess.run(
        [ninja, "-C", build, "-t", "commands", "-s", Path(_core.__file__).name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    link = next(line for line in told.stdout.splitlines() if " -shared " in line)
    words = shlex.split(link.split("&&")[1])
    words = [next((str(new[n]) for n in new if word.endswith(f"/{n}")), word) for word in words]
    target = folder / Path(_core.__file__).name
    words[words.index("-o") + 1 : words.index("-o") + 2] = [str(target), str(toy)]
    subprocess.run(words, cwd=build, check=True)
    return target


@pytest.mark.slow
def test_a_family_is_its_files_and_one_line(extension, tmp_path):
    result = run_python(USE, str(extension), str(tmp_path))
    assert_succeeds(result)
    measured, forgotten = result.stdout.splitlines()[-2:]
    assert measured == "FAKE_QUANT measured plain several {}"
    assert forgotten.startswith("False ")
    assert "kernels/toy/toy.cl lacks the macro EACH" in forgotten
    assert "1.. elements of a work-item" in forgotten
