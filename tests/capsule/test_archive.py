"""Capsules are untrusted: an error is one line, and nothing is extracted."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from clgpu_delegate import FileError, ModelError
from clgpu_delegate.capsule import archive, capture, replay
from clgpu_delegate.capsule.privacy import scrub
from tests.python import models


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("capsule") / "good.clgpu.zip"
    capture(models.chain(), path)
    return path.read_bytes()


def rewritten(content: bytes, **changes: object) -> bytes:
    """A capsule with other members or another manifest, and correct hashes."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    del manifest["files"]
    for name, value in changes.items():
        if name in manifest:
            manifest[name] = value
        else:
            members[name.replace("__", ".")] = value
    return archive.pack(members, manifest)


def message(tmp_path, content: bytes) -> str:
    path = tmp_path / "bad.clgpu.zip"
    path.write_bytes(content)
    with pytest.raises(ModelError) as error:
        replay(path)
    assert "\n" not in str(error.value)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.clgpu.zip"]
    return str(error.value)


def test_damage_is_told(tmp_path, good):
    for cut in range(0, len(good), len(good) // 17):
        assert "not a capsule" in message(tmp_path, good[:cut])
    path, flipped, harmless = tmp_path / "bad.clgpu.zip", bytearray(good), 0
    path.write_bytes(good)
    whole = archive.unpack(path)
    for at in range(0, len(good), 7):
        flipped[at] ^= 0x5A
        path.write_bytes(flipped)
        flipped[at] ^= 0x5A
        try:
            assert archive.unpack(path) == whole
        except ModelError:
            continue
        harmless += 1  # dates and rights of the zip's directory
    assert harmless < len(good) // 7 // 10


def test_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        replay(tmp_path / "none.clgpu.zip")
    with pytest.raises(FileError):
        replay(tmp_path)


def test_newer_format_is_told_with_its_version(tmp_path, good):
    assert "reads up to 1" in message(tmp_path, rewritten(good, format=2))


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": {"kind": "harmless"}},
        {"outcome": {"kind": "wrong", "max_abs": "a lot"}},
        {"outcome": []},
        {"nodes": [{"op": "ADD"}]},
        {"tolerance": "none"},
        {"runtime": 3},
        {"model__tflite": b"not a model"},
        {"inputs__npz": b"not arrays"},
        {"inputs__npz": b""},
        {"options__json": b"{}"},
        {"options__json": b'{"used": {"speed": "high"}}'},
        {"options__json": b"[" * 100_000},
        {"device__json": b"3"},
        {"explain__json": b'{"nodes": 3}'},
    ],
    ids=lambda change: next(iter(change)),
)
def test_manifest_and_members_may_hold_anything(tmp_path, good, change):
    message(tmp_path, rewritten(good, **change))


def test_bombs_and_paths_are_refused(tmp_path, good):
    assert "is not a member of capsules" in message(tmp_path, rewritten(good, **{"../evil": b"x"}))
    assert "is not a member of capsules" in message(tmp_path, rewritten(good, **{"/evil": b"x"}))
    bomb = {"options__json": b" " * (2 << 20)}
    assert "more than 1 MiB" in message(tmp_path, rewritten(good, **bomb))


def listed(content: bytes, compression: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    """A capsule with further members and correct hashes."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        all_members = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(all_members.pop("manifest.json"))
    all_members |= {name.replace("__", "."): value for name, value in members.items()}
    hashes = {name: hashlib.sha256(value).hexdigest() for name, value in all_members.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        file.writestr("manifest.json", json.dumps({**manifest, "files": hashes}))
        for name, value in all_members.items():
            file.writestr(name, value)
    return out.getvalue()


def test_small_file_unpacks_to_little(tmp_path, good, monkeypatch):
    monkeypatch.setattr(archive, "_SMALL_BYTES", 8 << 20)
    bomb = listed(good, got__npz=bytes(9 << 20))
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        assert "unpacks to more than 8 MiB" in message(tmp_path, bomb)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    monkeypatch.undo()  # the default limits
    assert archive._most_bytes(2 << 20) == 256 << 20
    assert archive._most_bytes(100 << 20) == 3200 << 20
    assert archive._most_bytes(1 << 40) == 4 << 30


def test_capsule_of_zeros_is_written_so_that_it_is_read(tmp_path, good, monkeypatch):
    monkeypatch.setattr(archive, "_SMALL_BYTES", 1 << 20)
    path = tmp_path / "zeros.clgpu.zip"
    path.write_bytes(rewritten(good, got__npz=archive.to_npz({"0": np.zeros(1 << 20)})))
    _, members = archive.unpack(path)
    assert archive.from_npz(members["got.npz"])["0"].sum() == 0


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_without_a_bound_are_refused(tmp_path, good, compression):
    assert "has another compression than in capsules" in message(
        tmp_path, listed(good, compression)
    )


@pytest.mark.parametrize("size", [0, 10, 1 << 20, 1 << 31])
def test_sizes_that_lie_are_told(tmp_path, good, size):
    content = bytearray(good)
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)  # after the manifest's
    content[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    message(tmp_path, bytes(content))


def test_arrays_that_lie_over_each_other_are_refused():
    content = bytearray(npz(npy(np.zeros(1000))))
    entry, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    record = bytes(content[entry:end])
    count = 100
    content[entry:end] = record * count
    end = content.index(b"PK\x05\x06")
    content[end + 8 : end + 12] = count.to_bytes(2, "little") * 2
    content[end + 12 : end + 16] = (len(record) * count).to_bytes(4, "little")
    with pytest.raises(ModelError, match="its arrays overlap"):
        archive.from_npz(bytes(content))


@pytest.mark.parametrize(
    "head",
    ["(" * 30000 + ")" * 30000, "-" * 60000 + "1", "1" + "+1j" * 20000,
     "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
     "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
     "{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,)}"],
    ids=["nested", "minus", "sum", "object", "pickle", "huge", "empty items"],
)  # fmt: skip
def test_headers_of_arrays_may_hold_anything(head):
    text = head.encode() + b"\n"
    array = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text
    with pytest.raises(ModelError):
        archive.from_npz(npz(array))


def test_pipe_is_no_capsule(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="is not a regular file"):
        replay(tmp_path / "pipe")


def npz(member: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        file.writestr("0.npy", member)
    return out.getvalue()


def npy(array, *, pickles: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=pickles)
    return out.getvalue()


def test_arrays_are_believed_as_far_as_their_bytes_go():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(archive.from_npz(npz(npy(x)))["0"], x)
    lie = npy(x).replace(b"(2, 3), ", b"(2, 10**9)")
    huge = npy(x).replace(b"(2, 3)", b"(9,9e9)")
    for bad in (lie, huge, npy(x)[:-1], npy(np.array([{}]), pickles=True), b""):
        with pytest.raises(ModelError):
            archive.from_npz(npz(bad))
    with pytest.raises(ModelError):
        archive.from_npz(npz(npy(np.zeros(1 << 20)), zipfile.ZIP_DEFLATED))


def test_texts_lose_what_is_personal():
    here = os.path.realpath(os.getcwd())  # noqa: PTH109
    assert scrub(f"in {here}/file.cl:3") == "in file.cl:3"
    assert scrub("node /model/conv1/Relu of softmax/softmax.cl") == (
        "node /model/conv1/Relu of softmax/softmax.cl"
    )
    assert scrub("at 0x7f00deadbeef") == "at 0x..."
    assert scrub(r"C:\Users\ada\x.cl") == "x.cl"


def test_terminals_tables_and_files_are_safe_from_what_is_recorded(tmp_path, good):
    nodes = [{"original": 0, "op": "\x1b]0;gotcha\x07ADD|<b>\u202e"}]
    path = tmp_path / "loud.clgpu.zip"
    used = json.dumps({"used": {"cache": str(tmp_path / "evil"), "device": "none"}}).encode()
    path.write_bytes(rewritten(good, nodes=nodes, options__json=used))
    replayed = replay(path)
    assert [p.name for p in tmp_path.iterdir()] == ["loud.clgpu.zip"]
    assert replayed.nodes == ((0, " ]0;gotcha ADD|<b> "),)
    assert "ADD\\|&lt;b>" in replayed.summary()
