"""A capsule may come from anyone: what is wrong with it is one line, and nothing is extracted."""

from __future__ import annotations

import io
import json
import os
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
    """A capsule with other members, or another manifest, whose hashes are right."""
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
    assert "is no part of one" in message(tmp_path, rewritten(good, **{"../evil": b"x"}))
    assert "is no part of one" in message(tmp_path, rewritten(good, **{"/evil": b"x"}))
    bomb = {"options__json": b" " * (2 << 20)}
    assert "more than 1 MiB" in message(tmp_path, rewritten(good, **bomb))


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
