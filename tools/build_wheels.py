"""Build the wheels of a release: ``python tools/build_wheels.py``, or ``make wheels``.

One wheel for each CPython that pyproject.toml names and each architecture, made and checked by
tools/build_wheel.py. What does not know of Python is compiled once for each architecture. A Python
that this machine lacks is named, with the line that installs it, and the others are built.
``--try`` then installs each wheel of this machine's architecture, and runs a model.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))  # make starts this file

from tools import build_wheel
from tools.build_wheel import ARCHITECTURES, ROOT

# Run by a Python that may be the one looked for.
SUITS = """
import json, os, sys, sysconfig
wanted = tuple(map(int, sys.argv[1].split(".")))
wrong = None
if sys.implementation.name != "cpython" or sys.version_info[:2] != wanted:
    wrong = "is %s %d.%d" % ((sys.implementation.name,) + sys.version_info[:2])
elif sysconfig.get_config_var("Py_GIL_DISABLED"):
    wrong = "is free-threaded"
elif not os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")):
    wrong = "has no headers"
else:
    try:
        import ensurepip, venv
    except ImportError:
        wrong = "has no venv module"
print(json.dumps(wrong))
"""


def main(words=None):
    arguments = parse(words)
    pythons, lacking = {}, {}
    for version in arguments.pythons:
        try:
            pythons[version] = find(version, arguments.python)
        except LookupError as reason:
            lacking[version] = str(reason)
    tell(f"Python {', '.join(pythons) or 'none'}; not here: {', '.join(lacking) or 'none'}")
    wheels, failed = [], []

    def fails(what):
        failed.append(what)
        tell(what)  # now, and again at the end

    for arch in arguments.arch:
        for version, python in pythons.items():
            begin = time.monotonic()
            try:
                wheel = build_wheel.make(python, arch, arguments.glibc, arguments.out)
            except SystemExit as error:
                fails(f"{version} {arch}: {error}")
                continue
            seconds = time.monotonic() - begin
            wheels.append(wheel)
            tell(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {seconds:.0f} s")
            if arguments.do_try and arch == platform.machine():
                try:
                    tell(use(python, wheel))
                except SystemExit as error:
                    fails(f"{wheel.name} was built, and does not work: {error}")
    for line in report(wheels, lacking, failed, arguments):
        print(line)
    if lacking or failed:
        raise SystemExit(1)


def parse(words):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0].split(":")[0], allow_abbrev=False
    )
    parser.add_argument(
        "--pythons", type=chosen(supported()), default=supported(), metavar="3.11,3.12",
        help="versions, those that pyproject.toml names",
    )  # fmt: skip
    parser.add_argument(
        "--arch", type=chosen(ARCHITECTURES), default=list(ARCHITECTURES), metavar="x86_64,aarch64",
        help="architectures, both",
    )  # fmt: skip
    parser.add_argument(
        "--python", action="append", default=[], metavar="FILE",
        help="a Python that is looked at first; may be repeated",
    )  # fmt: skip
    parser.add_argument("--try", dest="do_try", action="store_true", help="install and run each")
    parser.add_argument("--glibc", default="2.17", help="oldest glibc to run with; 2.17")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder; dist")
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def chosen(allowed):
    """A function that takes apart a list with commas, of allowed words."""

    def words(text):
        found = text.split(",")
        if wrong := [word for word in found if word not in allowed]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r}; allowed: {', '.join(allowed)}")
        return found

    return words


def supported():
    """Versions in the classifiers of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def find(version, named=()):
    """A CPython of a version, with headers and venv: a named one, this one, or an installed one.

    Raises
    ------
    LookupError
        With what was found instead, and the line that installs one.
    """
    wrong = []
    for path in candidates(version, named):
        reason = defect(path, version)
        if reason is None:
            return path
        # These two may well be of another version.
        if path not in (*named, sys.executable):
            wrong.append(f"{path} {reason}")
    found = f" ({'; '.join(wrong)})" if wrong else ""
    raise LookupError(
        f"no CPython {version} with headers was found{found}. To install one: "
        f"{sys.executable} -m pip install uv && {sys.executable} -m uv python install {version}; "
        "or name one: --python FILE"
    )


def candidates(version, named):
    """Paths of Pythons that may have the version, each once."""
    name = f"python{version}"
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python")
    paths = [*named, sys.executable]
    paths += [f"{folder}/{name}" for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for folder, pattern in ((pyenv, f"{version}.*"), (uv, f"cpython-{version}.*-linux-*")):
        paths += sorted(map(str, folder.glob(f"{pattern}/bin/{name}")), key=numbers, reverse=True)
    return list(dict.fromkeys(path for path in paths if os.access(path, os.X_OK)))


def numbers(path):
    """The numbers in a path: 3.13.10 is newer than 3.13.9."""
    return [int(part) for part in re.findall(r"\d+", path)]


def defect(python, version):
    """Why a Python is not the one that is looked for, or None."""
    command = [python, "-c", SUITS, version]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return "does not start"  # pyenv's shims are such


def use(python, wheel):
    """Install a wheel in a new environment, as CI does, and run a model; say what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        ours = Path(folder, "env/bin/python")
        build_wheel.run([python, "-m", "venv", Path(folder, "env")])
        extras = f"{wheel}[commands,litert,tflite,quantize]"
        build_wheel.run([ours, "-m", "pip", "install", "-q", "--only-binary=:all:", extras])
        model = Path(folder, "model.tflite")
        build_wheel.run([ours, ROOT / "tests/wheel/model.py", model])
        smoke = [ours, "-I", ROOT / "tests/wheel/smoke.py", model]
        told = build_wheel.run(smoke, cwd=folder).strip()
        return "\n".join(line for line in told.splitlines() if not line.startswith("INFO:"))


def report(wheels, lacking, failed, arguments):
    """Lines that say which wheels there are now, and which are missing for what reason."""
    size = sum(wheel.stat().st_size for wheel in wheels) / 1e6
    asked = len(arguments.pythons) * len(arguments.arch)
    yield f"{len(wheels)} of {asked} wheels, {size:.1f} MB together, in {arguments.out}"
    yield from failed
    for version, reason in lacking.items():
        yield f"{version}: {reason}"


def tell(text):
    print(f"wheels: {text}", flush=True)


if __name__ == "__main__":
    main()
