"""The container files: what they copy exists, what they install exists, and their command runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.python.test_cli import clgpu
from tools.arm64 import common, system

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "examples/docker").glob("*Dockerfile"))
MIRROR = "MIRROR"  # stands for the address that this machine has for Debian
# Of each image: what apt reads there, and packages of its own.
ARCHIVES = {
    "ubuntu:24.04": [
        f"deb [trusted=yes] http://archive.ubuntu.com/ubuntu {suite} main universe"
        for suite in ("noble", "noble-updates")
    ],
    "debian:12": [f"deb [trusted=yes] {MIRROR} bookworm main"],
}


def stages(file: Path) -> dict[str, list[str]]:
    """Instructions by stage; each begins with those of the stages that it is made from."""
    found: dict[str, list[str]] = {}
    now: list[str] = []
    for line in file.read_text().splitlines():
        if match := re.fullmatch(r"FROM (\S+)(?: AS (\w+))?", line):
            now = found[match[2] or "last"] = [*found.get(match[1], [line])]
        elif line and not line.startswith("#"):
            now.append(line)
    return found


def test_there_is_a_target_for_each_kind_of_host():
    targets = stages(ROOT / "examples/docker/Dockerfile")
    assert {"intel", "amd", "nvidia"} <= targets.keys()
    documented = (ROOT / "docs/containers.md").read_text()
    for name in ("intel", "amd", "nvidia"):
        assert f"| `{name}` |" in documented
        assert targets[name].count('CMD ["clgpu", "quickstart", "/tmp/quickstart"]') == 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_copied_exists(file):
    lines = re.findall(r"^COPY (?!--from)(.+) (/source\S*)$", file.read_text(), re.MULTILINE)
    copied = {Path(word) for words, _ in lines for word in words.split()}
    assert all((ROOT / path).exists() for path in copied)
    needed = {"CMakeLists.txt", "pyproject.toml", "include", "kernels", "src_cpp"}
    assert needed <= {str(path) for path in copied}
    for words, target in lines:  # COPY puts the content of a folder into its target
        folders = [word for word in words.split() if (ROOT / word).is_dir()]
        assert folders == ([] if target == "/source/" else [Path(target).name])


def test_the_command_runs(tmp_path):
    (command,) = re.findall(r"^CMD (.*)$", (ROOT / "examples/docker/Dockerfile").read_text(), re.M)
    name, *words = json.loads(command)
    assert name == "clgpu"
    assert "1. A device" in clgpu(*words[:-1], str(tmp_path / words[-1].strip("/")), "--runs", "1")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt is not installed")
@pytest.mark.parametrize("image", ARCHIVES)
def test_packages_exist_for_their_image(image, tmp_path):
    wanted = {
        package
        for file in FILES
        for lines in stages(file).values()
        if lines[0].split()[1] == image
        for line in lines
        for words in re.findall(r"apt-get install (.*?)(?: &&|$)", line)
        for package in words.split()
        if not package.startswith("-")
    }
    assert wanted
    for folder in ("lists/partial", "archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    try:
        archives = [
            line.replace(MIRROR, system.mirror()) if MIRROR in line else line
            for line in ARCHIVES[image]
        ]
    except common.Missing as missing:
        pytest.skip(str(missing))
    (tmp_path / "sources.list").write_text("\n".join(archives) + "\n")
    options = {
        "Dir::Etc::sourcelist": tmp_path / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State": tmp_path, "Dir::State::status": "/dev/null", "Dir::Cache": tmp_path,
        "APT::Architecture": "amd64", "Acquire::Retries": 0,
    }  # fmt: skip
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    read = subprocess.run(
        ["apt-get", *words, "update"], capture_output=True, text=True, check=False, timeout=300
    )
    if read.returncode or "Failed to fetch" in read.stderr:
        pytest.skip(f"the archive of {image} is not reached")
    listed = subprocess.run(
        ["apt-cache", *words, "pkgnames"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert wanted <= set(listed)
