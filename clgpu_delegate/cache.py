"""The file that keeps tuned choices and compiled programs from process to process.

It is an SQLite database that any number of processes share; ``clgpu cache`` is the command for what
these functions do. Where ``path`` is None they mean the file of the option ``cache="auto"``. They
raise `FileError` where a file cannot be used, `ClgpuError` where the cache is off.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from clgpu_delegate import _core
from clgpu_delegate.base import children
from clgpu_delegate.base.files import check_writable
from clgpu_delegate.errors import ClgpuError, FileError, OptionError

if TYPE_CHECKING:
    import sqlite3

# As in src_cpp/store/database.cpp, which creates the table.
APPLICATION_ID = 0x434C4750
FORMAT = 1

KINDS = (
    "program", "tuning", "probe", "peaks", "placement", "verification", "precision", "crash",
)  # fmt: skip

_DAY = 24 * 60 * 60  # by which the clocks of two machines may differ

_COLUMNS = "kind, key, label, bytes, created, used, checksum, value"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of the cache."""

    kind: str
    """One of `KINDS`."""

    key: str
    label: str
    """Description for people."""

    bytes: int
    created: int
    """Seconds since 1970; also ``used``, which may be off by a day."""

    used: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Merged:
    """What `import_file` did with the rows of a file."""

    added: int
    kept: int
    """Rows that the cache has, as new or newer."""

    damaged: int
    """Rows left out, since their checksums are wrong, or they are not as this package writes."""

    programs: int = 0
    """Rows left out, since they are programs and ``programs=True`` was not given."""


def default_path() -> str:
    """What the option ``cache="auto"`` stands for.

    The environment variable ``CLGPU_CACHE`` (a path or ``off``), else a file in the user's cache
    folder.
    """
    named = os.environ.get("CLGPU_CACHE")
    if named:
        return named if named == "off" else str(Path(named).expanduser())
    return str(platformdirs.user_cache_path("clgpu_delegate", appauthor=False) / "cache.sqlite")


def resolve(path: str | os.PathLike[str] | None = None) -> Path:
    """The file that ``path`` means, whether it exists or not."""
    name = default_path() if path is None or os.fspath(path) == "auto" else os.fspath(path)
    if name == "off":
        raise ClgpuError("the cache is off; name a file, or unset the variable CLGPU_CACHE")
    return Path(name).expanduser()


def entries(path: str | os.PathLike[str] | None = None) -> list[Entry]:
    """List the rows by kind and label; none where there is no file yet."""
    file = resolve(path)
    if not file.exists():
        return []
    with _open(file) as database:
        rows = database.execute(
            "SELECT kind, key, label, bytes, created, used FROM rows ORDER BY kind, label, key"
        )
        return [Entry(*row) for row in rows]


def clear(path: str | os.PathLike[str] | None = None, kind: str | None = None) -> int:
    """Delete the rows of a kind, or all; returns how many there were."""
    if kind is not None and kind not in KINDS:
        raise OptionError(f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
    file = resolve(path)
    if kind in (None, "crash"):
        _clear_attempts(file)
    files = _clear_files(file, kind)
    if not file.exists():
        return files
    with _open(file) as database:
        count = database.execute("DELETE FROM rows WHERE ? IN (kind, '')", (kind or "",)).rowcount
        with contextlib.suppress(_sqlite().OperationalError):  # another process reads it
            database.execute("VACUUM")
        return files + int(count)


def _clear_attempts(file: Path) -> None:
    """Delete what processes that ended have left (src_cpp/store/attempt.cpp)."""
    real = os.path.realpath(file)
    for attempt in [*Path(f"{real}-attempts").glob("*"), *Path(f"{real}.rows-attempts").glob("*")]:
        with contextlib.suppress(OSError):
            attempt.unlink()


def _clear_files(file: Path, kind: str | None) -> int:
    """Delete the rows that are files, where SQLite was missing (src_cpp/store/files.hpp)."""
    count = 0
    for row in Path(f"{os.path.realpath(file)}.rows").glob("*.row"):
        with contextlib.suppress(OSError):
            content = row.read_bytes()
            its_kind = content[72 : 72 + int.from_bytes(content[40:48], "little")]
            if kind is None or its_kind == kind.encode():
                row.unlink()
                count += 1
    return count


def export_file(target: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> int:
    """Write all intact rows to a new file, as `import_file` reads it; returns how many."""
    file, target = resolve(path), check_writable(target)
    if not file.exists():
        raise FileError(f"there is no cache {file} yet")
    if target.exists():
        raise FileError(f"{target} exists already")
    with (
        _open(file) as database,
        _reporting(target),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder,
    ):
        part = Path(folder, "part")
        rows = [row for row in database.execute(f"SELECT {_COLUMNS} FROM rows") if _is_intact(row)]
        (schema,) = database.execute("SELECT sql FROM sqlite_master WHERE name='rows'").fetchone()
        with contextlib.closing(_sqlite().connect(part, isolation_level=None)) as copy:
            copy.execute(f"PRAGMA application_id={APPLICATION_ID}")
            copy.execute(f"PRAGMA user_version={FORMAT}")
            copy.execute("BEGIN")
            copy.execute(schema)
            copy.executemany(f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            copy.execute("COMMIT")
        part.replace(target)  # whole, or not at all
    return len(rows)


def import_file(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    programs: bool = False,
) -> Merged:
    """Add the rows of an exported file; newer rows replace those with the same key.

    Parameters
    ----------
    source
        The file. Nothing in it is executed during the import.
    path
        The cache.
    programs
        Whether to take compiled programs, too. They are machine code, which the driver runs in the
        processes that use the cache: take them from someone you trust only. Without them all that
        was measured and verified is taken, and programs are compiled when they are first needed.
    """
    file, source = resolve(path), Path(source)
    if not source.is_file():
        raise FileError(f"there is no file {source}")
    with _reporting(source), tempfile.TemporaryDirectory(prefix="clgpu-") as folder:
        # A copy is checked, because the file may change between the checks and the reading.
        copy = Path(folder, "copy")
        for suffix in ("", "-wal"):  # of a cache that is in use
            part = source.with_name(source.name + suffix)
            if part.is_file():
                shutil.copyfile(part, copy.with_name(copy.name + suffix))
        with contextlib.closing(_sqlite().connect(copy, isolation_level=None)) as database:
            _check_source(database, source)
            rows = database.execute(f"SELECT {_COLUMNS} FROM rows").fetchall()
    intact = [row for row in rows if _is_intact(row) and _is_plausible(row)]
    wanted = [row for row in intact if programs or row[0] != "program"]
    with _open(file) as database:
        database.execute("BEGIN IMMEDIATE")
        before = database.total_changes
        database.executemany(
            f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (kind, key) DO UPDATE SET label=excluded.label, bytes=excluded.bytes, "
            "created=excluded.created, used=excluded.used, checksum=excluded.checksum, "
            "value=excluded.value WHERE excluded.created > rows.created",
            wanted,
        )
        added = database.total_changes - before
        database.execute("COMMIT")
    kept, damaged = len(wanted) - added, len(rows) - len(intact)
    return Merged(added, kept, damaged, len(intact) - len(wanted))


def _sqlite() -> Any:
    try:
        import sqlite3  # noqa: PLC0415  # some builds of Python lack it
    except ImportError as error:
        raise ClgpuError(f"this Python has no SQLite: {error}") from None
    return sqlite3


@contextlib.contextmanager
def _reporting(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"{file}: {error.strerror}") from None
    except _sqlite().Error as error:
        raise FileError(f"{file}: {error}") from None


@contextlib.contextmanager
def _open(file: Path) -> Iterator[sqlite3.Connection]:
    why = _core.why_untrusted(os.fspath(file))
    if why:
        raise FileError(f"the cache {file} is not used: {why}")
    _check_header(file)
    # The core creates a missing file, and replaces one that is damaged or has another format.
    store = _core.Store(str(file))
    if not store.is_on:
        raise FileError("; ".join(store.notes()))
    with (
        _reporting(file),
        contextlib.closing(_sqlite().connect(file, isolation_level=None, timeout=10)) as database,
    ):
        yield database


def _check_header(file: Path) -> None:
    """Refuse a file that was named by mistake, which the core would replace."""
    try:
        with file.open("rb") as content:
            header = content.read(100)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot read the cache {file}: {error.strerror}") from None
    application = int.from_bytes(header[68:72], "big")
    log = file.with_name(file.name + "-wal")  # the number may still be there
    ours = application == APPLICATION_ID or (application == 0 and log.exists())
    if header and not (ours and header.startswith(b"SQLite format 3\0")):
        raise FileError(f"{file} is not a cache of clgpu_delegate")


def _check_source(database: sqlite3.Connection, file: Path) -> None:
    """Check an untrusted file before it is read; a FileError if it is not a cache.

    A schema is code that SQLite runs, and a view may never end, so only the schema of an exported
    file is allowed. `quick_check` finds pages that are used twice, in a time that is bounded by the
    size of the file; such pages could give a small file rows and values without end.
    """
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA cell_size_check=ON")
    _check_format(database, file)
    for kind, name, text in database.execute("SELECT type, name, sql FROM sqlite_master"):
        if (kind, name, text) not in (
            ("table", "rows", _core.store_table()),
            ("index", "sqlite_autoindex_rows_1", None),
        ):
            raise FileError(f"{file} has tables that a cache does not have; it was not read")
    (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise FileError(f"{file} is damaged: {answer}")


def _check_format(database: sqlite3.Connection, file: Path) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise FileError(f"{file} is not a cache of clgpu_delegate")
    if version != FORMAT:
        raise FileError(f"{file} has format {version}; this version reads {FORMAT}")


def _is_intact(row: tuple[Any, ...]) -> bool:
    kind, key, *_, checksum, value = row
    if not (isinstance(kind, str) and isinstance(key, str) and isinstance(value, bytes)):
        return False
    text = f"{kind}\0{key}\0".encode()
    return bool(checksum == hashlib.sha256(text + value).digest())


def _is_plausible(row: tuple[Any, ...]) -> bool:
    """Whether the columns that no checksum covers are as this package writes them."""
    kind, _, label, size, created, used, _, value = row
    times = all(isinstance(at, int) and 0 <= at <= time.time() + _DAY for at in (created, used))
    return times and kind in KINDS and isinstance(label, str) and size == len(value)


def _tell_core_of_sqlite() -> None:
    """Register the SQLite library that Python uses; it may differ from the system's."""
    # Not `importlib.util.find_spec`, which would find a library in the current folder.
    module = PathFinder.find_spec("_sqlite3", children.import_path())
    if module is not None and module.origin is not None and Path(module.origin).is_file():
        with contextlib.suppress(ImportError):  # of the extension; `clgpu doctor` reports it
            _core.add_sqlite_library(module.origin)


_tell_core_of_sqlite()
