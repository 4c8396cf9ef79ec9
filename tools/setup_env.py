"""Make the virtual environment .venv of this checkout and install the project into it.

Run by make with the system's Python: ``python3 tools/setup_env.py demo|test|bench|docs|lint|wheel``
(that last one installs only what building wheels takes). Does nothing when nothing has changed
since the last time.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = VENV / "clgpu_setup.json"
OLDEST = (3, 9)

# Sources of a build, besides pyproject.toml.
SOURCES = ("CMakeLists.txt", "include", "src_cpp", "kernels")
BUILD_TOOLS = ("scikit-build-core>=0.11", "pybind11>=3.0.1", "cmake>=3.20", "ninja")

# Requirements: (the part, the package in Debian and Ubuntu, the package in Fedora).
VENV_MODULE = ("Python's venv module", "python3-venv", "python3")
HEADERS = ("the headers of Python", "python3-dev", "python3-devel")
COMPILER = ("a C++17 compiler", "g++", "gcc-c++")


def main():
    purpose = sys.argv[1] if len(sys.argv) > 1 else "demo"
    if sys.version_info < OLDEST:
        fail(
            f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed, and {sys.executable} is "
            f"{platform.python_version()}; name another with: make PYTHON=..."
        )
    check_system()
    make_venv()
    state = read_state()
    project = fingerprint(["pyproject.toml"])
    wanted = sorted({*extras(purpose), *state.get("extras", ())})
    sources = fingerprint(["pyproject.toml", *SOURCES])
    ready = {"project": project, "extras": wanted}
    if not state.get("project") and purpose != "wheel":
        install_all(wanted)
        write_state({**ready, "sources": sources})
        return
    if any(state.get(key) != value for key, value in ready.items()):
        install_requirements(wanted)
        state = ready
        write_state(state)
    if purpose == "wheel":
        return  # it compiles everything for another system
    if state.get("sources") != sources:
        install_project()
        write_state({**state, "sources": sources})


def extras(purpose):
    """Names of the extras, and of the dependency group "dev", that a purpose takes."""
    if purpose == "wheel":
        return ["cross"]
    version = sys.version_info[:2]
    names = ["commands"]
    if platform.system() == "Linux" and platform.machine() == "x86_64":
        names.append("cpu")
    # The newer runtime if it supports this Python; tests run in both.
    if version >= (3, 10):
        names.append("litert")
    if version < (3, 10) or (purpose == "test" and version < (3, 12)):
        names.append("tflite")
    names.append("bench")  # it builds the networks that the demo runs
    if purpose == "test":
        names += ["test", "examples", "cross"]
    if purpose == "test" and (3, 10) <= version < (3, 14):
        names.append("ray")
    # mkdocstrings needs Python 3.10.
    if purpose in ("test", "docs") and version >= (3, 10):
        names += ["docs", "examples"]
    if purpose == "lint":
        names += ["test", "examples", "dev"]
    return names


def check_system():
    """Stop with one message that names everything that is missing."""
    missing = []
    try:
        import ensurepip  # noqa: F401, PLC0415  # Debian ships venv without it
        import venv  # noqa: F401, PLC0415
    except ImportError:
        missing.append(VENV_MODULE)
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append(HEADERS)
    if not compiles():
        missing.append(COMPILER)
    if not missing:
        return
    parts = " and ".join(part for part, _, _ in missing)
    debian = " ".join(package for _, package, _ in missing)
    fedora = " ".join(package for _, _, package in missing)
    if shutil.which("apt-get"):
        advice = f"sudo apt-get install {debian}"
    elif shutil.which("dnf"):
        advice = f"sudo dnf install {fedora}"
    else:
        advice = f"Debian and Ubuntu: {debian}; Fedora: {fedora}"
    fail(f"missing, with Python being {sys.executable}: {parts}; install: {advice}")


def compiles():
    """Whether there is a compiler with C++17 and its library."""
    candidates = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("#include <optional>\nint main() { return *std::optional<int>(0); }\n")
        for candidate in candidates:
            if not candidate or not shutil.which(candidate.split()[0]):
                continue
            command = [*candidate.split(), "-std=c++17", "-fsyntax-only", str(source)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return True
    return False


def make_venv():
    version = platform.python_version()
    if python().exists() and read_state().get("python") == version:
        return
    with step(f"making the environment .venv with Python {version}"):
        run([sys.executable, "-m", "venv", "--clear", str(VENV)])
        # Dependency groups need pip 25.1.
        run([str(python()), "-m", "pip", "install", "-q", "--upgrade", "pip"])
    write_state({})


def install_all(names):
    """Fill a new environment; downloads run beside the compiler, because they need few cores."""
    with step("installing what the compiler needs"):
        run([str(python()), "-m", "pip", "install", "-q", *BUILD_TOOLS])
    optional = ",".join(name for name in names if name != "dev")
    what = f"compiling clgpu_delegate and installing what clgpu_delegate[{optional}] needs"
    with step(f"{what} (minutes the first time)"), ThreadPoolExecutor() as pool:
        for task in [pool.submit(pip_install, names), pool.submit(pip_install_project)]:
            task.result()


def install_requirements(names):
    """Everything but the project itself, so that a change of its source installs nothing else."""
    optional = ",".join(name for name in names if name != "dev")
    with step(f"installing what clgpu_delegate[{optional}] needs"):
        pip_install(names)


def pip_install(names):
    group = ["--group", "dev"] if "dev" in names else []
    requirements = project_requirements([name for name in names if name != "dev"])
    run([str(python()), "-m", "pip", "install", "-q", *BUILD_TOOLS, *requirements, *group])


def project_requirements(optional):
    """The dependencies of the project with some extras, as pip takes them."""
    script = """
import json, sys
try:
    import tomllib
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib
project = tomllib.loads(open("pyproject.toml", encoding="utf-8").read())["project"]
extras = project["optional-dependencies"]
print(json.dumps(project["dependencies"] + [r for name in sys.argv[1:] for r in extras[name]]))
"""
    return json.loads(run([str(python()), "-c", script, *optional]))


def install_project():
    with step("compiling clgpu_delegate (minutes the first time)"):
        pip_install_project()


def pip_install_project():
    command = [str(python()), "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
    folder = ["-C", "build-dir=build/{wheel_tag}"]  # kept, so that only changes are compiled
    library = ["-C", "cmake.define.CLGPU_BUILD_LIBRARY=ON"]  # linked only: tests use it
    run([*command, *folder, *library, "-e", str(ROOT)])


def fingerprint(paths):
    digest = hashlib.sha256()
    for path in paths:
        top = ROOT / path
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for file in files:
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def python():
    return VENV / "bin" / "python"


def read_state():
    try:
        return json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}


def write_state(state):
    STATE.write_text(json.dumps({**state, "python": platform.python_version()}))


def run(command):
    """Run a command quietly; show its output only if it fails."""
    # The tools of the environment, ninja among them, must be found.
    env = {**os.environ, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    env.pop("PYTHONPATH", None)
    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    if result.returncode != 0:
        output = (result.stdout + result.stderr).decode(errors="replace")
        print(file=sys.stderr)
        print(output[-6000:], file=sys.stderr)
        fail(f"this command failed: {' '.join(command)}")
    return result.stdout.decode()


class step:
    """Prints what is being done, and then how long it took."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        print(f"setup: {self.what} ...", end=" ", flush=True)
        self.start = time.monotonic()

    def __exit__(self, kind, value, traceback):
        if kind is None:
            print(f"{time.monotonic() - self.start:.0f} s", flush=True)


def fail(message):
    print(f"setup: {message}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
