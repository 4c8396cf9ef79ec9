"""A cache contains machine code: it is used only if no other user can have written it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import stat
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import clgpu_delegate
from clgpu_delegate import ClgpuError, FileError, _core, cache, cli
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
STRANGER = 54321


@pytest.fixture
def path(tmp_path):
    """A cache with one row that no process has open, with the usual permissions."""
    path = tmp_path / "home" / "cache.sqlite"
    _core.Store(str(path)).put("tuning", "k", b"v")
    return path


@contextlib.contextmanager
def sql(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


def refusal(path) -> str:
    """Why a store is off; it must have left all files as they were."""
    folder = path.parent
    before = {p.name: p.lstat() for p in folder.iterdir()} if folder.is_dir() else {}
    store = _core.Store(str(path))
    assert store.get("tuning", "k") is None
    store.put("tuning", "k", b"new")
    assert not store.is_on
    (note,) = store.notes()
    after = {p.name: p.lstat() for p in folder.iterdir()} if folder.is_dir() else {}
    assert {n: (s.st_mode, s.st_size, s.st_uid) for n, s in after.items()} == {
        n: (s.st_mode, s.st_size, s.st_uid) for n, s in before.items()
    }
    with pytest.raises(FileError):
        cache.clear(path, "tuning")
    return note


def is_used(path) -> bool:
    store = _core.Store(str(path))
    return store.is_on and store.get("tuning", "k") == b"v" and store.notes() == []


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_files_and_folders_that_are_made_are_for_the_user_alone(mask, tmp_path):
    path = tmp_path / "a" / "b" / "cache.sqlite"
    before = os.umask(mask)
    try:
        store = _core.Store(str(path))
        store.put("tuning", "k", b"v")
        assert {mode(p) for p in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) == 3, "with -wal and -shm"
    finally:
        os.umask(before)
    assert (mode(path.parent), mode(path.parent.parent)) == (0o700, 0o700)
    assert store.notes() == []


def test_caches_of_earlier_versions_are_adopted(path):
    path.chmod(0o644)
    path.parent.chmod(0o755)
    assert is_used(path)


@pytest.mark.parametrize("rights", [0o666, 0o602])
def test_file_that_others_can_write_is_refused(path, rights):
    path.chmod(rights)
    note = refusal(path)
    assert f"other users can write to {path} (mode 0{rights:o})" in note
    assert f"chmod go-w '{path}'" in note
    path.chmod(0o600)
    assert is_used(path)


@pytest.mark.parametrize("rights", [0o777, 0o1777, 0o702])
def test_folder_that_others_can_write_is_refused(path, rights):
    path.parent.chmod(rights)
    note = refusal(path)
    assert f"other users can write to the folder {path.parent}" in note
    # A folder like /tmp must stay open.
    assert ("chmod go-w" in note) == (not rights & 0o1000)
    path.unlink()
    assert not _core.Store(str(path)).is_on
    assert list(path.parent.iterdir()) == []


def test_folder_above_may_be_sticky_but_not_open_to_all(path):
    deep = path.parent / "deep" / "cache.sqlite"
    path.parent.chmod(0o1777)
    _core.Store(str(deep)).put("tuning", "k", b"v")
    assert is_used(deep)
    path.parent.chmod(0o777)
    assert str(path.parent) in refusal(deep)


def test_folders_above_home_are_the_administrator_s(path, monkeypatch):
    home = path.parent / "user"
    deep = home / ".cache" / "cache.sqlite"
    _core.Store(str(deep)).put("tuning", "k", b"v")
    path.parent.chmod(0o777)
    assert str(path.parent) in refusal(deep)
    monkeypatch.setenv("HOME", str(home))
    assert is_used(deep)
    home.chmod(0o777)
    assert str(home) in refusal(deep)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_companion_that_others_can_write_is_refused(path, suffix):
    companion = path.with_name(path.name + suffix)
    companion.touch()
    companion.chmod(0o666)
    assert f"can write to {companion}" in refusal(path)
    companion.unlink()
    companion.symlink_to("elsewhere")
    assert f"{companion} is not a regular file" in refusal(path)


def test_links_are_followed_to_what_is_judged(path, tmp_path):
    link, folder = tmp_path / "link.sqlite", tmp_path / "folder"
    link.symlink_to(path)
    folder.symlink_to("home")
    assert is_used(link)
    assert is_used(folder / path.name)
    assert is_used(tmp_path / "folder" / ".." / "home" / path.name)
    path.chmod(0o666)
    for name in (link, folder / path.name):
        assert not _core.Store(str(name)).is_on
    round_ = tmp_path / "round"
    round_.symlink_to(round_)
    assert not _core.Store(str(round_ / "cache.sqlite")).is_on


@pytest.mark.parametrize("relative", [True, False])
def test_folders_on_the_way_of_links_are_judged(relative, path, tmp_path):
    """A user who can write to one of them can redirect the link."""
    between = tmp_path / "between"
    between.mkdir()
    (between / "second").symlink_to(path)
    first = tmp_path / "first"
    first.symlink_to("between/second" if relative else between / "second")
    assert is_used(first)
    between.chmod(0o777)
    (note,) = _core.Store(str(first)).notes()
    assert f"other users can write to the folder {between} " in note


def test_pipe_is_refused_and_not_waited_for(path):
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    assert "is not a regular file" in refusal(pipe)


@as_root
def test_what_belongs_to_another_user_is_refused(path, tmp_path):
    os.chown(path, STRANGER, STRANGER)
    assert f"{path} belongs to another user (uid {STRANGER})" in refusal(path)
    os.chown(path, 0, 0)
    os.chown(path.parent, STRANGER, STRANGER)
    assert f"the folder {path.parent} belongs to another user" in refusal(path)
    os.chown(path.parent, 0, 0)
    link = tmp_path / "link"
    link.symlink_to(path)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert f"the link {link} belongs to another user" in _core.Store(str(link)).notes()[0]
    assert is_used(path)


def test_rights_of_a_group_count_unless_it_is_the_user_s_own(path):
    """Systems with a group per user let it write to new files (umask 002)."""
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    user = pwd.getpwuid(os.geteuid())
    group = grp.getgrgid(user.pw_gid)
    if group.gr_name != user.pw_name or set(group.gr_mem) - {user.pw_name}:
        pytest.skip("this user has no own group")
    for file in (path, path.parent):
        os.chown(file, -1, user.pw_gid)
        file.chmod(file.stat().st_mode | 0o060)
    assert is_used(path)
    other = next(n for n in (*os.getgroups(), STRANGER) if n != user.pw_gid)
    if other == STRANGER and os.geteuid() != 0:
        return  # this user is in no other group
    os.chown(path, -1, other)
    assert f"can write to {path} (mode 0660)" in refusal(path)
    os.chown(path, -1, user.pw_gid)
    os.chown(path.parent, -1, other)
    assert f"can write to the folder {path.parent}" in refusal(path)


def test_model_runs_without_a_cache_that_is_refused(path):
    path.chmod(0o666)
    delegate = clgpu_delegate.load(cache=str(path))
    interpreter = make_interpreter("auto", models.chain(), [delegate])
    run_interpreter(interpreter, [np.ones((2, 5), np.float32)])
    assert delegate.explain().claimed > 0
    (note,) = (note for note in delegate.explain().notes if "cache" in note)
    assert note.startswith(f"the cache {path} is off: other users can write to {path}")


@pytest.mark.parametrize("variable", ["CLGPU_CACHE", "CLGPU_PROGRAMS"])
def test_variables_name_no_file_of_others(path, variable):
    path.chmod(0o666)
    before = path.read_bytes()
    script = """
import clgpu_delegate
from tests.python import models
from tests.runtimes import make_interpreter
delegate = clgpu_delegate.load()
make_interpreter("auto", models.chain(), [delegate])
print(delegate.stats()["load"]["programs_loaded"], *delegate.explain().notes, sep="\\n")
"""
    others = {"CLGPU_CACHE": "off", "CLGPU_PROGRAMS": ""}
    result = run_python(script, **{**others, variable: str(path)})
    assert_succeeds(result)
    loaded, note = result.stdout.splitlines()
    assert loaded == "0"
    assert note.startswith(f"the cache {path} is off: ")
    assert path.read_bytes() == before


ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r) SELECT"
COLUMNS = (
    "'tuning' AS kind, 'k' AS key, '' AS label, 1 AS bytes, 1 AS created, 1 AS used, "
    "x'00' AS checksum"
)
HOSTILE = {
    "view without end": [f"CREATE VIEW rows AS {ENDLESS} {COLUMNS}, x AS value FROM r"],
    "view that is huge": [f"CREATE VIEW rows AS SELECT {COLUMNS}, zeroblob(900000000) AS value"],
    "trigger without end": [
        _core.store_table(),
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN INSERT INTO rows SELECT 'x', "
        "hex(randomblob(8)), '', 1, 1, 1, x'00', zeroblob(100000) FROM ("
        f"{ENDLESS} x FROM r); END",
    ],
    "trigger that stops": [
        _core.store_table(),
        "CREATE TRIGGER t BEFORE INSERT ON rows BEGIN SELECT RAISE(ABORT,'no'); END",
    ],
    "other columns": ["CREATE TABLE rows (kind, key)"],
    "computed column": [
        _core.store_table().replace("value BLOB NOT NULL", "value BLOB AS (zeroblob(900000000))")
    ],
    "another table": [_core.store_table(), "CREATE TABLE more (x)"],
    "an index": [_core.store_table(), "CREATE INDEX i ON rows (abs(bytes))"],
}


@pytest.fixture(params=HOSTILE)
def hostile(tmp_path, request):
    path = tmp_path / "hostile.sqlite"
    with sql(path) as database:
        database.execute(f"PRAGMA application_id={cache.APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={cache.FORMAT}")
        for statement in HOSTILE[request.param]:
            database.execute(statement)
    path.chmod(0o600)
    return path


def test_schema_of_a_stranger_is_damage(hostile):
    content, start = hostile.read_bytes(), time.monotonic()
    store = _core.Store(str(hostile))
    assert store.get("tuning", "k") is None
    store.put("tuning", "k", b"v")
    assert store.get("tuning", "k") == b"v"
    (note,) = store.notes()
    assert "is damaged" in note
    assert hostile.with_name(f"{hostile.name}.damaged").read_bytes() == content
    assert time.monotonic() - start < 5


@pytest.mark.slow
def test_lock_that_someone_else_holds_for_ever_is_not_waited_for(path):
    path.write_bytes(path.read_bytes()[:1000])
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        result = run_python(
            "import sys; from clgpu_delegate import _core; print(_core.Store(sys.argv[1]).is_on)",
            str(path), timeout=60,
        )  # fmt: skip
    finally:
        os.close(folder)
    assert_succeeds(result)
    assert result.stdout.strip() == "True"


def test_schema_of_a_stranger_is_not_imported(hostile, path):
    start = time.monotonic()
    with pytest.raises(ClgpuError, match="it was not read"):
        cache.import_file(hostile, path)
    assert time.monotonic() - start < 5
    assert is_used(path)


def test_cache_in_use_is_imported_and_nothing_is_left_beside_it(path, tmp_path):
    folder = tmp_path / "theirs"
    theirs = _core.Store(str(folder / "cache.sqlite"))
    theirs.put("tuning", "new", b"in the log of writes")
    before = sorted(p.name for p in folder.iterdir())
    assert "cache.sqlite-wal" in before
    assert cache.import_file(folder / "cache.sqlite", path).added == 1
    assert _core.Store(str(path)).get("tuning", "new") == b"in the log of writes"
    assert sorted(p.name for p in folder.iterdir()) == before


def test_rows_that_lie_are_not_imported(path, tmp_path):
    for i in range(7):
        _core.Store(str(path)).put("tuning", f"k{i}", b"value")
    other, exported = tmp_path / "other.sqlite", tmp_path / "exported"
    cache.export_file(exported, path)
    with sql(exported) as database:
        for i, change in enumerate(
            ["bytes=-9000000000000000000", "bytes=9000000000000000000", "created='x'",
             "created=9000000000000000000", "used=-1", "label=x'00'"]
        ):  # fmt: skip
            database.execute(f"UPDATE rows SET {change} WHERE key='k{i}'")
    merged = cache.import_file(exported, other)
    assert (merged.added, merged.damaged) == (2, 6)
    assert sorted(entry.key for entry in cache.entries(other)) == ["k", "k6"]


def test_tree_that_names_pages_twice_is_not_imported(path, tmp_path):
    """Twenty pages that each name the next one many times would be rows without end."""
    exported = tmp_path / "exported"
    for i in range(50):
        _core.Store(str(path)).put("tuning", f"key {i}", bytes(900))
    cache.export_file(exported, path)
    content = bytearray(exported.read_bytes())
    with sql(exported) as database:
        (size,) = database.execute("PRAGMA page_size").fetchone()
        (root,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name='rows'"
        ).fetchone()
    page = (root - 1) * size
    assert content[page] == 5, "an inner page of a table"
    cells = int.from_bytes(content[page + 3 : page + 5], "big")
    first = int.from_bytes(content[page + 12 : page + 14], "big")
    for i in range(1, cells):
        at = int.from_bytes(content[page + 12 + 2 * i : page + 14 + 2 * i], "big")
        content[page + at : page + at + 4] = content[page + first : page + first + 4]
    exported.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        cache.import_file(exported, tmp_path / "other.sqlite")


def test_programs_are_imported_only_where_that_is_asked_for(path, tmp_path):
    _core.Store(str(path)).put("program", "p", b"machine code")
    exported, other = tmp_path / "exported", tmp_path / "other.sqlite"
    assert cache.export_file(exported, path) == 2
    assert cache.import_file(exported, other) == cache.Merged(1, 0, 0, programs=1)
    assert [entry.kind for entry in cache.entries(other)] == ["tuning"]
    words = ["cache", "import", str(exported), "--cache", str(other)]
    said = CliRunner().invoke(cli.app, words).stdout
    assert "1 program left out (--programs)" in said
    given = CliRunner().invoke(cli.app, [*words, "--programs", "--json"]).stdout
    assert json.loads(given) == {"added": 1, "kept": 1, "damaged": 0, "programs": 0}
    assert sorted(entry.kind for entry in cache.entries(other)) == ["program", "tuning"]
