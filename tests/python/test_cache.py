"""A defective cache costs time, but never a result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import clgpu_delegate
from clgpu_delegate import ClgpuError, _core, cache, cli
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter

# One process: loads a model and prints counters.
START = """
import json, sys
import numpy as np
import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter
settings = json.loads(sys.argv[1])
delegate = clgpu_delegate.load(**settings)
interpreter = make_interpreter("auto", models.image(), [delegate])
(y,) = run_interpreter(interpreter, [np.ones((1, 7, 6, 3), np.float32)])
load = delegate.stats()["load"]
print(json.dumps({
    "built": load["programs_built"], "loaded": load["programs_loaded"], "y": y.tolist(),
    "notes": delegate.explain().notes,
}))
"""


def start(environment: dict[str, str] | None = None, **settings: object) -> dict:
    # Without the programs that the tests share.
    result = run_python(
        START, json.dumps(settings), **{"CLGPU_PROGRAMS": "", **(environment or {})}
    )
    assert_succeeds(result)
    return dict(json.loads(result.stdout))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "cache.sqlite"


@pytest.fixture
def filled(path):
    """A cache of ten rows that no process has open."""
    store = _core.Store(str(path))
    for i in range(10):
        store.put("tuning", f"key {i}", bytes([i]) * 5000, "label")
    assert store.notes() == []
    del store
    with sql(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@contextlib.contextmanager
def sql(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 10_000])
def test_sha256_is_that_of_python(size, rng):
    data = rng.bytes(size)
    assert _core.sha256(data) == hashlib.sha256(data).hexdigest()


def test_rows_come_back_from_another_process(path):
    store = _core.Store(str(path))
    store.put("program", "k", b"a\0b", "label")
    store.put("tuning", "k", b"")
    script = """
import sys
from clgpu_delegate import _core
store = _core.Store(sys.argv[1])
assert store.get("program", "k") == b"a\\0b", store.notes()
assert store.get("tuning", "k") == b""
assert store.get("tuning", "l") is None
store.put("tuning", "k", b"new")
store.erase("program", "k")
"""
    assert_succeeds(run_python(script, str(path)))
    assert store.get("tuning", "k") == b"new"
    assert store.get("program", "k") is None
    assert store.notes() == []


def test_longest_unused_rows_go_when_the_limit_is_reached(path):
    store = _core.Store(str(path), limit=1000)
    for i in range(5):
        store.put("tuning", str(i), bytes(300))
    store.put("tuning", "too large for all", bytes(1001))
    assert [entry.key for entry in cache.entries(path)] == ["2", "3", "4"]


def test_row_that_was_used_stays_longer_than_a_newer_one(path):
    store = _core.Store(str(path), limit=1000)
    for i in range(3):
        store.put("tuning", str(i), bytes(300))
    with sql(path) as database:
        database.execute("UPDATE rows SET used = used - 100000 WHERE key = '1'")
    store.put("tuning", "3", bytes(300))
    assert [entry.key for entry in cache.entries(path)] == ["0", "2", "3"]


def test_reading_makes_a_row_young_again(filled):
    with sql(filled) as database:
        database.execute("UPDATE rows SET used = used - 100000")
    assert _core.Store(str(filled)).get("tuning", "key 3") is not None
    used = {entry.key: entry.used for entry in cache.entries(filled)}
    assert used["key 3"] > used["key 4"]


def test_damaged_row_is_dropped_alone(filled, capfd):
    with sql(filled) as database:
        database.execute("UPDATE rows SET value = x'00' WHERE key = 'key 4'")
    store = _core.Store(str(filled))
    assert store.get("tuning", "key 4") is None
    assert store.get("tuning", "key 5") == b"\5" * 5000
    (note,) = store.notes()
    assert "damaged; it was dropped" in note
    assert note in capfd.readouterr().err
    assert len(cache.entries(filled)) == 9


def flip(data: bytes) -> bytes:
    """Damage every page except the first: rows contain nonsense."""
    return data[:4096] + bytes(byte ^ 0x55 for byte in data[4096:])


@pytest.mark.parametrize(
    ("damage", "suffix"),
    [
        (lambda data: data[: len(data) // 2], "damaged"),
        (flip, "damaged"),
        (lambda data: data[:16] + b"\xff" * (len(data) - 16), "foreign"),
        (lambda data: b"not a database\n" * len(data), "foreign"),
    ],
    ids=["truncated", "flipped", "header", "garbage"],
)
def test_damaged_file_is_put_aside_and_begun_anew(filled, damage, suffix):
    data = damage(filled.read_bytes())
    filled.write_bytes(data)
    store = _core.Store(str(filled))
    assert store.get("tuning", "key 3") is None
    store.put("tuning", "key 3", b"new")
    assert store.get("tuning", "key 3") == b"new"
    assert store.is_on
    (note,) = store.notes()
    assert "a new one was created" in note
    assert filled.with_name(f"{filled.name}.{suffix}").read_bytes() == data


def test_empty_file_is_as_good_as_none(path):
    path.parent.mkdir()
    path.touch()
    store = _core.Store(str(path))
    store.put("tuning", "k", b"v")
    assert (store.get("tuning", "k"), store.notes()) == (b"v", [])


def test_database_of_another_application_is_never_lost(path):
    path.parent.mkdir()
    for number in (1, 2):
        with sql(path) as database:
            database.execute(f"PRAGMA application_id={number}")
            database.execute("CREATE TABLE rows (thing)")
        store = _core.Store(str(path))
        store.put("tuning", "k", b"v")
        assert "is a database of another application" in store.notes()[0]
        del store
        path.unlink()
    for number, suffix in ((1, ""), (2, "-2")):
        with sql(path.with_name(f"{path.name}.foreign{suffix}")) as database:
            assert database.execute("PRAGMA application_id").fetchone() == (number,)


@pytest.mark.parametrize("version", [0, 99])
def test_file_of_another_format_is_put_aside(filled, version):
    with sql(filled) as database:
        database.execute(f"PRAGMA user_version={version}")
    store = _core.Store(str(filled))
    assert store.is_on
    assert store.get("tuning", "key 3") is None
    (note,) = store.notes()
    assert f"has format {version}" in note
    aside = filled.with_name(f"{filled.name}.format-{version}")
    with sql(aside) as database:
        assert database.execute("SELECT count(*) FROM rows").fetchone() == (10,)


@pytest.mark.parametrize("folder", ["/dev/null/x", "/proc/x"])
def test_place_where_no_file_can_be_turns_the_store_off(folder, capfd):
    delegate = clgpu_delegate.load(cache=f"{folder}/cache.sqlite")
    run_interpreter(make_interpreter("auto", models.chain(), [delegate]), [np.ones((2, 5), "f4")])
    (note,) = (note for note in delegate.explain().notes if "cache" in note)
    assert note.startswith(f"the cache {folder}/cache.sqlite is off: ")
    assert capfd.readouterr().err.count(note) == 1


# Runs as a user who may read all and write nothing below a folder of files.
READ_ONLY = """
import os, pathlib, sys
from clgpu_delegate import _core
if os.geteuid() == 0:
    os.setuid(65534)
store = _core.Store(sys.argv[1])
value = store.get("tuning", "key 3")
store.put("tuning", "k", b"v")
assert store.get("tuning", "k") is None
print(store.is_on, value == b"\\3" * 5000, len(store.notes()))
"""


@pytest.fixture
def read_only():
    """A folder that can be made read-only, and be read by others."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.mark.parametrize("name", ["new.sqlite", "new folder/new.sqlite"])
def test_folder_that_cannot_be_written_turns_the_store_off(read_only, name):
    read_only.chmod(0o555)
    result = run_python(READ_ONLY, str(read_only / name))
    assert_succeeds(result)
    assert result.stdout.split() == ["False", "False", "1"]


def test_exported_file_serves_where_nothing_can_be_written(read_only, filled):
    file = read_only / "exported.sqlite"
    cache.export_file(file, filled)
    file.chmod(0o444)
    read_only.chmod(0o555)
    result = run_python(READ_ONLY, str(file))
    assert_succeeds(result)
    assert result.stdout.split() == ["True", "True", "1"]


def test_exported_file_serves_as_a_cache(filled, tmp_path):
    file = tmp_path / "exported.sqlite"
    cache.export_file(file, filled)
    store = _core.Store(str(file))
    store.put("tuning", "k", b"v")
    assert (store.get("tuning", "k"), store.notes()) == (b"v", [])
    with sql(file) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_full_disk_leaves_a_store_that_is_read(filled):
    script = """
import resource, signal, sys
from clgpu_delegate import _core
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store = _core.Store(sys.argv[1])
for i in range(20):
    store.put("tuning", "big", bytes(90_000 + i))
assert store.get("tuning", "key 3") == b"\\3" * 5000
assert store.is_on
print(*store.notes(), sep="\\n")
"""
    result = run_python(script, str(filled))
    assert_succeeds(result)
    assert result.stdout.count("\n") == 1
    assert "read-only from now on" in result.stdout


def test_file_deleted_under_a_store_harms_nobody(path):
    store = _core.Store(str(path))
    shutil.rmtree(path.parent)
    store.put("tuning", "k", b"v")
    store.get("tuning", "k")
    again = run_python(
        "import sys; from clgpu_delegate import _core; s = _core.Store(sys.argv[1]);"
        "s.put('tuning', 'k', b'v'); assert s.get('tuning', 'k') == b'v'",
        str(path),
    )
    assert_succeeds(again)


def test_many_processes_write_at_once(path):
    script = """
import os, sys
from clgpu_delegate import _core
children = []
for child in range(6):
    if (pid := os.fork()) == 0:
        store = _core.Store(sys.argv[1])  # all begin with no file
        for i in range(30):
            store.put("tuning", f"shared {i}", b"x" * 1000)
            store.put("tuning", f"of {child}: {i}", bytes([child]) * 1000)
            assert store.get("tuning", f"shared {i}") == b"x" * 1000
        os._exit(len(store.notes()))
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
"""
    result = run_python(script, str(path))
    assert_succeeds(result)
    assert "clgpu_delegate:" not in result.stderr
    assert len(cache.entries(path)) == 30 + 6 * 30
    assert sorted(p.name for p in path.parent.iterdir() if "-" not in p.name) == [path.name]


def test_many_processes_find_a_damaged_file_at_once(filled):
    filled.write_bytes(flip(filled.read_bytes()))
    script = """
import os, sys
from clgpu_delegate import _core
children = []
for child in range(6):
    if (pid := os.fork()) == 0:
        store = _core.Store(sys.argv[1])
        for i in range(20):
            store.get("tuning", f"key {i}")
            store.put("tuning", f"{child}: {i}", b"x")
        os._exit(0 if store.is_on else 1)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
"""
    assert_succeeds(run_python(script, str(filled)))
    assert cache.entries(filled)


def test_forked_child_has_a_connection_of_its_own(path):
    script = """
import os, sys
from clgpu_delegate import _core
store = _core.Store(sys.argv[1])
store.put("tuning", "parent", b"1")
if (pid := os.fork()) == 0:
    assert store.get("tuning", "parent") == b"1"
    store.put("tuning", "child", b"2")
    os._exit(len(store.notes()))
assert os.waitpid(pid, 0)[1] == 0
assert store.get("tuning", "child") == b"2"
assert store.notes() == []
"""
    assert_succeeds(run_python(script, str(path)))


def test_second_start_builds_nothing(device, precision, path):
    settings = {"device": device, "precision": precision, "cache": str(path)}
    first, second = (start(**settings) for _ in range(2))
    assert first["built"] > 0
    assert first["loaded"] == 0
    assert second["built"] == 0
    assert second["loaded"] == first["built"]
    assert second["y"] == first["y"]
    assert second["notes"] == []
    assert {entry.kind for entry in cache.entries(path)} >= {"program"}


def test_binary_that_the_driver_rejects_is_compiled_anew(device, path):
    settings = {"device": device, "cache": str(path)}
    first = start(**settings)
    store = _core.Store(str(path))
    for entry in cache.entries(path):
        if entry.kind == "program":
            store.put("program", entry.key, b"\0no binary of any driver", entry.label)
    second, third = (start(**settings) for _ in range(2))
    assert second["built"] == first["built"]
    assert second["y"] == first["y"]
    assert any("rejects a program of the cache" in note for note in second["notes"])
    assert (third["built"], third["notes"]) == (0, [])


def test_cache_that_is_off_keeps_nothing(device, tmp_path):
    environment = {"CLGPU_CACHE": str(tmp_path / "x"), "XDG_CACHE_HOME": str(tmp_path / "y")}
    for _ in range(2):
        run = start(environment, device=device, cache="off")
        assert (run["loaded"], run["notes"]) == (0, [])
        assert run["built"] > 0
    assert not (tmp_path / "x").exists()
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize("off", [{"cache": "off"}, {}])
def test_programs_alone_may_be_kept_where_the_cache_is_off(device, path, off):
    environment = {"CLGPU_CACHE": "off", "CLGPU_PROGRAMS": str(path)}
    first, second = (
        start(environment, device=device, verify="first", **off) for _ in range(2)
    )  # fmt: skip
    assert first["built"] > 0
    assert (second["y"], second["notes"]) == (first["y"], first["notes"])
    # PoCL keeps them itself.
    is_pocl = "Portable" in clgpu_delegate.devices()[int(device)].platform
    assert (second["built"] == 0) == (not is_pocl)
    assert {entry.kind for entry in cache.entries(path)} == (set() if is_pocl else {"program"})
    own = path.with_name("own.sqlite")
    assert start(environment, device=device, cache=str(own))["loaded"] == 0


def test_variable_names_the_cache_and_may_turn_it_off(path, tmp_path):
    assert start({"CLGPU_CACHE": str(path)})["built"] > 0
    assert start({"CLGPU_CACHE": str(path)})["loaded"] > 0
    folder = str(tmp_path / "user")
    assert start({"CLGPU_CACHE": "off", "XDG_CACHE_HOME": folder})["loaded"] == 0
    assert not list(Path(folder).glob("clgpu*"))


def test_default_file_is_the_same_for_load_and_for_load_delegate(runtime, tmp_path):
    script = """
import sys
import numpy as np
import clgpu_delegate
from clgpu_delegate import cache
from tests.python import models
from tests.runtimes import interpreter_module, make_interpreter
delegate = interpreter_module(sys.argv[1]).load_delegate(clgpu_delegate.plugin_path(), {})
make_interpreter(sys.argv[1], models.image(), [delegate])
assert cache.entries(), cache.default_path()
print(cache.default_path())
"""
    environment = {"CLGPU_CACHE": "", "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    result = run_python(script, runtime, **environment)
    assert_succeeds(result)
    assert Path(result.stdout.strip()).is_relative_to(tmp_path)
    assert start(environment)["built"] == 0


@pytest.mark.parametrize("library", ["/nowhere/libsqlite3.so", _core.__file__, "./libsqlite3.so"])
def test_without_sqlite_the_cache_is_a_folder_of_files(path, library):
    without = {"CLGPU_SQLITE_LIBRARY": library}
    first, second = (start(without, cache=str(path)) for _ in range(2))
    assert first["built"] > 0
    assert (second["built"], second["loaded"]) == (0, first["built"])
    assert first["y"] == second["y"]
    for run in (first, second):
        (note,) = run["notes"]
        assert note.startswith(f"the cache is the folder {path}.rows, since the library that")
    assert not path.exists()
    assert list(path.with_name(path.name + ".rows").glob("*.row"))


def test_python_without_sqlite_still_has_a_cache(path):
    script = "import sys\nsys.modules['sqlite3'] = sys.modules['_sqlite3'] = None\n" + START
    result = run_python(script, json.dumps({"cache": str(path)}))
    assert_succeeds(result)
    assert json.loads(result.stdout)["built"] > 0


def clgpu(*arguments: object) -> str:
    result = CliRunner().invoke(cli.app, ["cache", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_command_lists_and_clears(filled):
    _core.Store(str(filled)).put("program", "p", b"1")
    listed = json.loads(clgpu("list", "--json", "--cache", filled))
    assert listed["path"] == str(filled)
    assert listed["entries"] == [entry.to_dict() for entry in cache.entries(filled)]
    assert "11 rows, 0.0 MiB" in clgpu("list", "--cache", filled).replace("\n", " ")
    clgpu("clear", "--kind", "tuning", "--cache", filled)
    assert [entry.kind for entry in cache.entries(filled)] == ["program"]
    clgpu("clear", "--cache", filled)
    assert cache.entries(filled) == []


def test_export_and_import_merge_what_is_intact(filled, tmp_path):
    exported, other = tmp_path / "exported", tmp_path / "other.sqlite"
    assert "10 rows written" in clgpu("export", exported, "--cache", filled)
    with sql(exported) as database:
        database.execute("UPDATE rows SET value = x'00' WHERE key = 'key 4'")
        database.execute("UPDATE rows SET created = created - 10 WHERE key = 'key 5'")
        database.execute("UPDATE rows SET created = created + 10 WHERE key = 'key 6'")
    for key in ("5", "6", "new"):
        _core.Store(str(other)).put("tuning", f"key {key}", b"own")
    merged = json.loads(clgpu("import", exported, "--json", "--cache", other))
    assert merged == {"added": 8, "kept": 1, "damaged": 1, "programs": 0}
    store = _core.Store(str(other))
    assert store.get("tuning", "key 3") == b"\3" * 5000
    assert store.get("tuning", "key 4") is None
    assert store.get("tuning", "key 5") == b"own"
    assert store.get("tuning", "key 6") == b"\6" * 5000
    assert store.get("tuning", "key new") == b"own"
    assert store.notes() == []


def test_functions_say_what_stands_in_their_way(filled, tmp_path, monkeypatch):
    with pytest.raises(ClgpuError, match="exists already"):
        cache.export_file(filled, filled)
    with pytest.raises(ClgpuError, match="there is no cache"):
        cache.export_file(tmp_path / "x", tmp_path / "none")
    with pytest.raises(ClgpuError, match="there is no file"):
        cache.import_file(tmp_path / "x", filled)
    other = tmp_path / "other"
    other.write_bytes(b"not a database")
    with pytest.raises(ClgpuError, match="other: file is not a database"):
        cache.import_file(other, filled)
    with sql(tmp_path / "foreign") as database:
        database.execute("CREATE TABLE rows (x)")
    with pytest.raises(ClgpuError, match="is not a cache of clgpu_delegate"):
        cache.import_file(tmp_path / "foreign", filled)
    monkeypatch.setenv("CLGPU_CACHE", "off")
    with pytest.raises(ClgpuError, match="the cache is off"):
        cache.entries()
    with pytest.raises(ClgpuError, match=f"cannot read the cache {tmp_path}: Is a directory"):
        cache.clear(tmp_path)
