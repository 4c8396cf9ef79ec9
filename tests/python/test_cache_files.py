"""The cache where SQLite cannot be loaded: a file for each row."""

from __future__ import annotations

import os
import shutil
import stat

import pytest

from clgpu_delegate import _core
from tests.python.subprocesses import assert_succeeds, run_python

OLD = 2 * 24 * 60 * 60  # seconds


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "cache.sqlite"


@pytest.fixture
def rows(path):
    """The folder of the rows."""
    return path.with_name("cache.sqlite.rows")


@pytest.fixture
def store(path):
    return _core.FileStore(str(path))


def file_of(rows, key: str):
    """The only file with this key in it."""
    (file,) = (file for file in rows.iterdir() if key.encode() in file.read_bytes())
    return file


def age(file) -> None:
    seconds = file.stat().st_mtime - OLD
    os.utime(file, (seconds, seconds))


def test_rows_come_back_from_another_process(path, store, rows):
    store.put("program", "k", b"a\0b", "label")
    store.put("tuning", "k", b"")
    script = """
import sys
from clgpu_delegate import _core
store = _core.FileStore(sys.argv[1])
assert store.get("program", "k") == b"a\\0b", store.notes()
assert store.get("tuning", "k") == b""
assert store.get("tuning", "l") is None
store.put("tuning", "k", b"new")
store.erase("program", "k")
store.erase("program", "k")
assert not store.notes()
"""
    assert_succeeds(run_python(script, str(path)))
    assert store.get("tuning", "k") == b"new"
    assert store.get("program", "k") is None
    assert store.notes() == []
    (file,) = rows.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(rows.stat().st_mode) == 0o700


def test_keys_that_run_together_are_different_rows(store):
    store.put("a", "bc", b"1")
    store.put("ab", "c", b"2")
    assert (store.get("a", "bc"), store.get("ab", "c")) == (b"1", b"2")


def test_least_recently_used_rows_go_when_the_limit_is_reached(path, rows):
    store = _core.FileStore(str(path), limit=1600)
    for i in range(4):
        store.put("tuning", f"key {i}", bytes(300))
    age(file_of(rows, "key 1"))
    left = rows / "left.1-1.tmp"
    left.write_bytes(b"of a process that was killed")
    age(left)
    (rows / "new.1-1.tmp").write_bytes(b"of one that writes")
    store.put("tuning", "too large for all", bytes(1601))
    store.put("tuning", "key 4", bytes(300))
    values = [store.get("tuning", f"key {i}") for i in range(5)]
    assert [value is None for value in values] == [False, True, False, False, False]
    assert sorted(p.name for p in rows.glob("*.tmp")) == ["new.1-1.tmp"]
    assert store.notes() == []


def test_reading_makes_a_row_young_again(store, rows):
    store.put("tuning", "k", b"v")
    (file,) = rows.iterdir()
    age(file)
    before = file.stat().st_mtime
    assert store.get("tuning", "k") == b"v"
    assert file.stat().st_mtime > before + OLD / 2


def flipped(at: int):
    def damage(data: bytes) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return damage


DAMAGES = {
    **{f"byte {at}": flipped(at) for at in (0, 8, 39, 40, 47, 48, 64, 71, 72, 78, -1)},
    "empty": lambda data: data[:0],
    "head only": lambda data: data[:72],
    "shorter": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "another row": lambda data: data.replace(b"key 0", b"key 1"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_row_is_dropped_alone(path, store, rows, name):
    for i in range(3):
        store.put("tuning", f"key {i}", bytes([i]) * 50)
    file = file_of(rows, "key 0")
    file.write_bytes(DAMAGES[name](file.read_bytes()))
    other = _core.FileStore(str(path))
    assert other.get("tuning", "key 0") is None
    (note,) = other.notes()
    assert "a row of kind 'tuning'" in note
    assert "was damaged; it was dropped" in note
    assert not file.exists()
    assert other.get("tuning", "key 1") == bytes([1]) * 50
    other.put("tuning", "key 0", b"new")
    assert store.get("tuning", "key 0") == b"new"


def test_many_processes_write_at_once(path, rows):
    script = """
import os, sys
from clgpu_delegate import _core
children = []
for child in range(4):
    if (pid := os.fork()) == 0:
        store = _core.FileStore(sys.argv[1])  # all begin with no folder
        for i in range(30):
            store.put("tuning", f"shared {i}", b"x" * 1000)
            store.put("tuning", f"of {child}: {i}", bytes([child]) * 1000)
            assert store.get("tuning", f"shared {i}") == b"x" * 1000
        os._exit(len(store.notes()))
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
"""
    assert_succeeds(run_python(script, str(path)))
    assert len(list(rows.iterdir())) == 30 + 4 * 30


def test_full_disk_leaves_a_store_that_is_read(path, store, rows):
    store.put("tuning", "k", b"v")
    script = """
import resource, signal, sys
from clgpu_delegate import _core
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store = _core.FileStore(sys.argv[1])
for i in range(3):
    store.put("tuning", "big", bytes(200_000))
assert store.get("tuning", "k") == b"v"
assert store.is_on
print(*store.notes(), sep="\\n")
"""
    result = run_python(script, str(path))
    assert_succeeds(result)
    assert result.stdout.count("\n") == 1
    assert "read-only from now on: a row cannot be written: " in result.stdout
    assert len(list(rows.iterdir())) == 1


def test_folder_deleted_under_a_store_harms_nobody(path, store):
    store.put("tuning", "k", b"v")
    shutil.rmtree(path.parent)
    assert store.get("tuning", "k") is None
    store.put("tuning", "k", b"v")
    again = _core.FileStore(str(path))
    again.put("tuning", "k", b"v")
    assert again.get("tuning", "k") == b"v"


def test_place_where_no_folder_can_be_turns_the_store_off(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in ("/proc/x/cache", str(tmp_path / "file" / "cache")):
        store = _core.FileStore(path)
        assert not store.is_on
        assert store.notes()[0].startswith(f"the cache {path}.rows is off: ")


def test_folder_that_others_can_write_is_not_used(path, store, rows):
    store.put("tuning", "k", b"v")
    rows.chmod(0o777)
    other = _core.FileStore(str(path))
    assert not other.is_on
    assert other.get("tuning", "k") is None
    assert "other users can write to the folder" in other.notes()[0]


def test_row_that_others_could_write_is_dropped(store, rows):
    store.put("program", "k", b"v")
    (file,) = rows.iterdir()
    file.chmod(0o666)
    assert store.get("program", "k") is None
    assert not file.exists()


def test_link_in_the_folder_is_not_followed(tmp_path, store, rows):
    store.put("program", "k", b"v")
    (file,) = rows.iterdir()
    target = tmp_path / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    assert store.get("program", "k") is None
    store.put("program", "k", b"new")  # replaces the link
    assert store.get("program", "k") == b"new"
    assert target.read_bytes().endswith(b"v")


def test_name_of_an_unfinished_file_may_be_taken(path):
    """By a process of this number that was killed."""
    script = """
import os, sys
from pathlib import Path
from clgpu_delegate import _core
store = _core.FileStore(sys.argv[1])
store.put("tuning", "k", b"v")
(row,) = Path(sys.argv[1] + ".rows").iterdir()
for i in range(2, 5):
    row.with_name(f"{row.name}.{os.getpid()}-{i}.tmp").write_bytes(b"")
store.put("tuning", "k", b"new")
assert (store.get("tuning", "k"), store.notes()) == (b"new", [])
"""
    assert_succeeds(run_python(script, str(path)))


def test_store_that_is_only_read_leaves_damaged_rows(path, store, rows):
    for i in range(2):
        store.put("tuning", f"key {i}", b"v")
    for file in rows.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    script = """
import resource, signal, sys
from clgpu_delegate import _core
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store = _core.FileStore(sys.argv[1])
store.put("tuning", "big", bytes(2000))
for _ in range(3):
    assert store.get("tuning", "key 0") is None
assert len(store.notes()) == 1, store.notes()
"""
    assert_succeeds(run_python(script, str(path)))
    assert len(list(rows.iterdir())) == 2


def test_processes_find_a_damaged_row_at_once(path, store, rows):
    store.put("tuning", "k", b"v")
    (file,) = rows.iterdir()
    script = """
import os, sys
from pathlib import Path
from clgpu_delegate import _core
file = Path(sys.argv[2])
intact = file.read_bytes()
for _ in range(50):
    file.write_bytes(intact[:-1])
    children = []
    for child in range(3):
        if (pid := os.fork()) == 0:
            store = _core.FileStore(sys.argv[1])
            assert store.get("tuning", "k") is None
            store.put("tuning", f"of {child}", b"v")
            os._exit(any("read-only" in note for note in store.notes()))
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 3
"""
    assert_succeeds(run_python(script, str(path), str(file)))


def test_value_that_only_its_file_makes_too_large_is_not_stored(path):
    store = _core.FileStore(str(path), limit=1000)
    store.put("tuning", "small", bytes(500))
    store.put("tuning", "large", bytes(990))
    assert store.get("tuning", "large") is None
    assert store.get("tuning", "small") == bytes(500)
