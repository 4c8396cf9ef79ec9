"""The cache of compiled programs and tuned choices."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from clgpu_delegate.doctor import paths
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "cache"
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "sshfs", "fuse.sshfs", "lustre", "gpfs")
_ELSEWHERE = 'export CLGPU_CACHE="/var/tmp/clgpu-$(id -u)/cache.sqlite"'
_SLOW = "every process compiles its kernels again"


def path(env: Environment) -> Path | None:
    """The file of the option ``cache="auto"``; None where it is off."""
    home = env.environ.get("HOME") or "~"
    named = env.environ.get("CLGPU_CACHE", "")
    if named == "off":
        return None
    if named:
        return Path(home + named[1:] if named.startswith("~/") else named)
    base = env.environ.get("XDG_CACHE_HOME", "").strip() or str(Path(home, ".cache").expanduser())
    return Path(base, "clgpu_delegate", "cache.sqlite")


def check(survey: Survey) -> Iterator[Finding]:
    """Check that the file can be written and is intact."""
    env = survey.env
    file = path(env)
    if file is None:
        yield Finding(_CHECK, "ok", "off, by CLGPU_CACHE", _SLOW)
        return
    folder = next(parent for parent in file.parents if paths.exists(parent))
    if not paths.is_folder(folder):
        yield _unusable(env, file, f"{folder} is a file, not a folder")
    elif not env.access(folder, os.W_OK | os.X_OK):
        yield _unusable(env, file, f"{folder} cannot be written to")
    elif paths.exists(file) and not env.access(file, os.R_OK | os.W_OK):
        yield _unusable(env, file, f"{file} cannot be read and written")
    elif paths.is_folder(file):
        yield _unusable(env, file, f"{file} is a folder")
    elif why := env.why_untrusted(str(file)):
        what = f"the cache {file} is not used"
        yield Finding(_CHECK, "warning", what, f"{why}; {_SLOW}", _own(file))
    else:
        yield _contents(env, file)
        yield from _network(env, folder)


def _unusable(env: Environment, file: Path, what: str) -> Finding:
    fix = "unset CLGPU_CACHE"
    if not env.environ.get("CLGPU_CACHE"):
        fix = _ELSEWHERE
        if paths.is_folder(file.parent):
            fix = f"sudo chown -R $USER {shlex.quote(str(file.parent))}"
    return Finding(_CHECK, "warning", what, f"nothing is kept: {_SLOW}", fix)


def _own(file: Path) -> str:
    """The command that makes a cache private again; it deletes what others may have written."""
    folder = file.parent
    with contextlib.suppress(OSError):
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & stat.S_ISVTX:
            quoted = shlex.quote(str(file))
            return f"rm -f {quoted} {quoted}-*; chmod go-w {shlex.quote(str(folder))}"
    return _ELSEWHERE


def _contents(env: Environment, file: Path) -> Finding:
    if not paths.exists(file):
        return Finding(_CHECK, "ok", f"{file} will be created")
    outcome = env.call("store_probe.py", "examine", str(file))
    error = outcome.failure or outcome.answer["error"]
    if error:
        return Finding(
            _CHECK, "warning", f"{file} is damaged", f"{error}; it will be replaced by a new one",
            "clgpu cache clear",
        )  # fmt: skip
    answer = outcome.answer
    rows = f"{answer['rows']} row{'' if answer['rows'] == 1 else 's'}"
    what = f"{file}: {rows}, {file.stat().st_size / 2**20:.1f} MiB"
    if answer["damaged"]:
        return Finding(
            _CHECK, "warning", f"{what}, of which {answer['damaged']} are damaged",
            "they are not used", "clgpu cache clear",
        )  # fmt: skip
    return Finding(_CHECK, "ok", what)


def _network(env: Environment, folder: Path) -> Iterator[Finding]:
    best, kind = "", ""
    for line in env.read("/proc/mounts").splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        place = fields[1].rstrip("/") + "/"
        if f"{folder}/".startswith(place) and len(place) >= len(best):
            best, kind = place, fields[2]
    if kind in _NETWORK:
        yield Finding(
            _CHECK, "warning", f"{folder} is on a network file system ({kind})",
            "databases there are slow, and may be damaged when two machines write",
            _ELSEWHERE,
        )  # fmt: skip
