"""A wheel for old systems: made by tools/build_wheel.py, read, and used in a clean environment."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
# Parts of the repository that neither a wheel nor a source distribution takes to its users.
OURS = {".ci", ".github", "bench", "docs", "examples", "tests", "tools"}

README_SNIPPET = """
import sys
import clgpu_delegate
from ai_edge_litert.interpreter import Interpreter

delegate = clgpu_delegate.load()
interpreter = Interpreter(sys.argv[1], experimental_delegates=[delegate])
interpreter.allocate_tensors()
print(delegate.explain().summary())
"""

README_COMPILED_MODEL = """
import sys
import clgpu_delegate
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.hardware_accelerator import HardwareAccelerator

with clgpu_delegate.litert_environment(precision="fp16") as environment:
    model = CompiledModel.from_file(
        sys.argv[1], HardwareAccelerator.GPU, environment=environment
    )
print("fully accelerated:", model.is_fully_accelerated())
(delegate,) = clgpu_delegate.litert_delegates()
print(delegate.explain().summary())
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
        reason="wheels are for Linux on x86-64 and ARM64",
    ),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for this Python and machine, from the objects that earlier builds left."""
    for tool in ("ziglang", "auditwheel", "elftools", "scikit_build_core"):
        pytest.importorskip(tool)
    out = tmp_path_factory.mktemp("dist")
    told = run(sys.executable, ROOT / "tools/build_wheel.py", "--out", out)
    (path,) = out.glob("*.whl")
    assert told.splitlines()[-1] == str(path)
    return path


def test_it_is_for_systems_with_glibc_2_27_and_older(wheel):
    name, _, python, abi, platforms = wheel.stem.split("-")
    assert (name, python, abi) == ("clgpu_delegate", PYTHON, PYTHON)
    tags = [re.fullmatch(r"manylinux_2_(\d+)_(.*)", tag) for tag in platforms.split(".")]
    named = [(int(tag[1]), tag[2]) for tag in tags if tag]
    assert named
    for minor, machine in named:
        assert (minor <= 27, machine) == (True, platform.machine())
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel)
    floor = re.search(r'platform\s+tag:\s+"manylinux_2_(\d+)_', shown)
    assert floor, shown
    assert int(floor[1]) <= 27


def test_it_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
    assert {name.split("/")[0] for name in names} == {"clgpu_delegate", info}
    assert f"{info}/licenses/LICENSE" in names
    package = {name for name in names if name.startswith("clgpu_delegate/")}
    extension, accelerator = sorted(name for name in package if name.endswith(".so"))
    assert re.fullmatch(r"clgpu_delegate/_core\.cpython-\d+-\w+-linux-gnu\.so", extension)
    assert accelerator == "clgpu_delegate/libLiteRtGpuAccelerator.so"
    program = "clgpu_delegate/clgpu_compile"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.getinfo(program).external_attr >> 16 & 0o111, "it can be started"
    assert "clgpu_delegate/py.typed" in package
    if (ROOT / ".git").exists():
        assert package == {
            *run("git", "ls-files", "clgpu_delegate").split(),
            extension,
            accelerator,
            program,
        }


def test_it_works_in_a_clean_environment(wheel, tmp_path):
    pytest.importorskip("tflite")
    model = tmp_path / "model.tflite"
    run(sys.executable, HERE / "model.py", model)
    python = tmp_path / "env/bin/python"
    run(sys.executable, "-m", "venv", tmp_path / "env")
    extras = f"commands,cpu,{'litert' if sys.version_info >= (3, 10) else 'tflite'}"
    wanted = f"clgpu_delegate[{extras}] @ {wheel.as_uri()}"
    run(python, "-I", "-m", "pip", "install", "-q", wanted)
    nothing = {"PATH": os.defpath, "HOME": str(tmp_path)}
    told = run(python, "-I", HERE / "smoke.py", model, env=nothing, cwd=tmp_path)
    assert "right by load() and by load_delegate()" in told
    # In the clone, where Python finds the sources first.
    told = run(python, "-c", README_SNIPPET, model, env=nothing, cwd=ROOT)
    assert "claimed" in told
    if "litert" in extras:
        told = run(python, "-c", README_COMPILED_MODEL, model, env=nothing, cwd=ROOT)
        assert "fully accelerated: True" in told
        assert "claimed" in told
    assert "cpu" in run(python, "-m", "clgpu_delegate", "devices", env=nothing, cwd=ROOT)


@pytest.mark.usefixtures("wheel")
def test_the_source_distribution_holds_all_that_a_build_takes(tmp_path):
    script = "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    run(sys.executable, "-c", script, tmp_path)
    (path,) = tmp_path.glob("*.tar.gz")
    run("tar", "-xf", path, "-C", tmp_path)
    source = tmp_path / path.name.removesuffix(".tar.gz")
    assert not OURS & {entry.name for entry in source.iterdir()}
    assert {"LICENSE", "README.md", "PKG-INFO"} <= {entry.name for entry in source.iterdir()}
    # The same sources are compiled, with the same macros, as in the wheel's build.
    configure = ["cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja"]
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run(*configure, f"-DPython_EXECUTABLE={sys.executable}", env={**os.environ, **tools})
    parts = (f"core-{platform.machine()}", sysconfig.get_config_var("SOABI"))
    core, python = (compiled(ROOT / f"build/wheel/{part}-glibc2.17", ROOT) for part in parts)
    assert not core.keys() & python.keys()
    assert compiled(tmp_path / "build", source) == {**core, **python}


def test_the_source_distribution_is_built_without_a_network(tmp_path):
    pytest.importorskip("scikit_build_core")
    alone = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("this system gives no process a network of its own (unshare)")
    script = "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    run(sys.executable, "-c", script, tmp_path)
    (path,) = tmp_path.glob("*.tar.gz")
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if shutil.which("ccache"):
        tools |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_NOHASHDIR": "1"}
        tools |= {"CCACHE_BASEDIR": str(tmp_path)}
    pip = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    folders = ["-C", f"build-dir={tmp_path / 'build'}", "-w", tmp_path / "out"]
    # Half the time: what is built is tested elsewhere.
    fast = ["-C", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0"]
    run(*alone, *pip, *folders, *fast, path, env={**os.environ, **tools}, cwd=tmp_path)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
    assert len(libraries) == 2


def compiled(build: Path, source: Path) -> dict[str, list[str]]:
    """Macros by source file of a build folder; precompiled headers are how, not what is built."""
    commands = json.loads((build / "compile_commands.json").read_text())
    return {
        Path(command["file"]).relative_to(source).as_posix()
        if Path(command["file"]).is_relative_to(source / "src_cpp")
        else Path(command["file"]).name: sorted(re.findall(r"-D\S+", command["command"]))
        for command in commands
        if not Path(command["file"]).name.startswith("cmake_pch")
    }


def run(*command: object, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Output of a command that succeeds."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # pip tells of attempts that it then repeats with success, too.
    if result.returncode and re.search(r"NewConnectionError|name resolution", result.stdout):
        pytest.skip("needs packages from an index, and none is reached")
    assert result.returncode == 0, result.stdout
    return result.stdout
