"""Bad input, for every command: one clear line, the right exit code, and no half-written file."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import flatbuffers
import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import FileError, ModelError, _core, cli
from clgpu_delegate.base import files
from clgpu_delegate.cli import exits
from clgpu_delegate.runtimes import find_runtime
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.subprocesses import ROOT, run_python
from tests.python.test_cli import ALL


def signature_of(function) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:  # of an exception of the core
        return {}


IMAGE = models.image()
BAD_MODELS = {
    "missing": None,
    "folder": "folder",
    "empty": b"",
    "text": b"this is not a model",
    "mark alone": IMAGE[:8],
    "cut off": IMAGE[: len(IMAGE) // 3],
    "short of its end": IMAGE[:-40],
    "garbage with the mark": b"\xfe\xca\xad\xde" + b"TFL3" + bytes(range(256)) * 4096,
}
# What commands read and write, by the names of their parameters.
MODELS = {"model", "models"}
CAPSULES = {"file"}
ARRAYS = {"inputs", "calibration", "samples"}
OUTPUTS = {"out", "output", "html", "csv", "trace", "plot"}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "image.tflite"
    path.write_bytes(IMAGE)
    return str(path)


def fails(capfd, code: int, words: list[str]) -> str:
    assert exits.answer(cli.app, words) == code, capfd.readouterr().err
    output = capfd.readouterr()
    assert output.out == ""
    ours = [line for line in output.err.splitlines() if line.startswith("clgpu: ")]
    assert len(ours) == 1, output.err
    assert "Traceback" not in output.err
    return ours[0]


def arguments(command, model: str, tmp_path, **instead: str) -> list[str]:
    """Valid arguments of the command, except for the named one."""
    good = dict.fromkeys(MODELS | CAPSULES, model)
    good |= dict.fromkeys(OUTPUTS, str(tmp_path / "written"))
    words = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            assert parameter.name in good, f"tell the sweep what {parameter.name!r} is"
            words.append(instead.get(parameter.name, good[parameter.name]))
        elif parameter.name in instead:
            words += [parameter.opts[0], instead[parameter.name]]
        elif parameter.name in ("calibration", "samples"):
            np.save(tmp_path / "samples.npy", np.zeros((2, 7, 6, 3), np.float32))
            words += [parameter.opts[0], str(tmp_path / "samples.npy")]
        elif parameter.name == "max_error":  # without it, tune takes no samples and writes nothing
            words += [parameter.opts[0], "0.1"]
    return words


def named(command, names: set[str]) -> list[str]:
    return [p.name for p in command.params if p.name in names]


WITH_MODEL = [p for p in ALL if named(p.values[0], MODELS)]
READING = [p for p in ALL if p.id == "replay"]
WITH_ARRAYS = [
    pytest.param(*p.values, name, id=f"{p.id} {name}")
    for p in WITH_MODEL
    for name in named(p.values[0], ARRAYS)
]
WRITING = [
    pytest.param(*p.values, name, id=f"{p.id} {name}")
    for p in WITH_MODEL
    for name in named(p.values[0], OUTPUTS)
]


@pytest.mark.parametrize(("command", "words"), ALL)
def test_sweep_knows_all_paths(command, words):
    others = {
        "cache": {"path"}, "profile": {"against"}, "quickstart": {"folder"}, "tune": {"start"},
    }.get(words[0], set())  # fmt: skip
    for name, parameter in inspect.signature(command.callback).parameters.items():
        if "Path" in str(parameter.annotation):
            assert name in MODELS | OUTPUTS | CAPSULES | ARRAYS | others


@pytest.mark.parametrize("bad", BAD_MODELS)
@pytest.mark.parametrize(("command", "words"), [*WITH_MODEL, *READING])
def test_bad_model(command, words, bad, tmp_path, capfd, monkeypatch):
    # Typer checks paths with this, but the function must report the error.
    monkeypatch.setattr(os, "access", lambda _, right: right != os.R_OK)
    path = tmp_path / "bad.tflite"
    if bad == "folder":
        path.mkdir()
    elif bad != "missing":
        path.write_bytes(BAD_MODELS[bad])
    said = fails(capfd, exits.FILE, [*words, *arguments(command, str(path), tmp_path)])
    assert str(path) in said
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(("command", "words", "name"), WITH_ARRAYS)
@pytest.mark.parametrize("bad", ["missing", "folder", "text"])
def test_bad_file_of_arrays(command, words, name, bad, model, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, right: right != os.R_OK)
    path = tmp_path / "bad.npz"
    if bad == "folder":
        path.mkdir()
    elif bad == "text":
        path.write_text("1 2 3")
    given = arguments(command, model, tmp_path, **{name: str(path)})
    assert str(path) in fails(capfd, exits.FILE, [*words, *given])


@pytest.mark.parametrize(("command", "words", "name"), WRITING)
@pytest.mark.parametrize("bad", ["no such folder", "a folder", "no right"])
def test_output_that_cannot_be_written_is_told_before_the_work(
    command, words, name, bad, model, tmp_path, capfd, monkeypatch
):
    path = tmp_path / "there" / "written"
    if bad == "a folder":
        path.mkdir(parents=True)
    elif bad == "no right":
        path.parent.mkdir()

    # Root may write anywhere; of reading see test_bad_model.
    rights = 0 if bad == "no right" else os.W_OK
    monkeypatch.setattr(os, "access", lambda _, right: right & rights == right)

    def work(*_):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(_core, "NativeDelegate", work)
    given = arguments(command, model, tmp_path, **{name: str(path)})
    assert str(path) in fails(capfd, exits.FILE, [*words, *given])


@pytest.fixture
def _interruptible():
    """Python's own handler, also where the tests were started with interrupts ignored.

    Processes that a test starts then inherit no ignored signal.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize(("command", "words"), WITH_MODEL)
def test_interrupt(command, words, model, tmp_path, capfd, monkeypatch):
    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(find_runtime().module.Interpreter, "allocate_tensors", interrupted)
    # Commands whose work runs in other processes.
    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    monkeypatch.setattr("clgpu_delegate.capsule.trials.receive", interrupted)
    before = sorted(tmp_path.iterdir())
    words = [*words, *arguments(command, model, tmp_path)]
    assert fails(capfd, exits.INTERRUPTED, words) == "clgpu: interrupted"
    left = {path.name for path in set(tmp_path.iterdir()) - set(before)}
    assert left <= {"samples.npy"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("words", [["devices"], ["devices", "--json"], ["--help"]], ids=" ".join)
def test_reader_that_goes_away_is_no_error(words):
    script = "import sys; from clgpu_delegate.cli import main; sys.argv[0] = 'clgpu'; main()"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = run_python(script, *words, stdout=writer, PYTHONUNBUFFERED="")
    finally:
        os.close(writer)
    assert result.returncode == exits.READER_GONE
    assert "Error" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["devices"], ["devices", "--json"]], ids=" ".join)
def test_full_disk_behind_the_output_is_told(words):
    script = "import sys; from clgpu_delegate.cli import main; sys.argv[0] = 'clgpu'; main()"
    with Path("/dev/full").open("w") as full:
        result = run_python(script, *words, stdout=full, PYTHONUNBUFFERED="")
    assert result.returncode == exits.FILE
    assert "cannot write the output: No space left on device" in result.stderr
    assert "mistake" not in result.stderr
    assert "Exception" not in result.stderr


@pytest.mark.parametrize("words", [["devices"], ["devices", "--json"]], ids=" ".join)
def test_closed_output_is_told(words):
    script = "import sys; from clgpu_delegate.__main__ import main; sys.argv[0] = 'clgpu'; main()"
    start = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    result = run_python(start, "-c", script, *words)
    assert result.returncode == exits.FILE, result.stderr
    assert "cannot write the output: standard output is closed" in result.stderr
    assert "report" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_closed_streams_are_for_nobody():
    script = "import sys; from clgpu_delegate.__main__ import main; sys.argv[0] = 'clgpu'; main()"
    start = (
        "import os, sys; os.close(1); os.close(2); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    result = run_python(start, "-c", script, "devices")
    assert (result.returncode, result.stdout, result.stderr) == (exits.FILE, "", "")


def test_closed_error_stream_takes_no_output():
    script = "import sys; from clgpu_delegate.__main__ import main; sys.argv[0] = 'clgpu'; main()"
    start = "import os, sys; os.close(2); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    result = run_python(start, "-c", script, "explain", "nowhere.tflite")
    assert (result.returncode, result.stdout) == (exits.FILE, "")


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("as_json", [False, True])
def test_interrupt_while_the_commands_are_imported(as_json):
    script = """
import os, signal, sys

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
sys.argv[0] = "clgpu"
from clgpu_delegate.__main__ import main
main()
"""
    result = run_python(script, "devices", *["--json"] * as_json)
    assert (result.returncode, result.stdout) == (exits.INTERRUPTED, "")
    said = json.loads(result.stderr) if as_json else result.stderr
    assert (said["error"] if as_json else said.strip()).endswith("interrupted")
    assert result.stderr.count("\n") == 1


# Python imports it before a program. It counts from the import of our first module.
INTERRUPTS_AT_AN_IMPORT = """
import os, sys

class Finder:
    left = None
    def find_spec(name, path=None, target=None):
        if Finder.left is not None:
            Finder.left -= 1
            if Finder.left == -1:
                os.kill(os.getpid(), 2)
        elif name == "clgpu_delegate.base.interrupts":
            Finder.left = int(os.environ["IMPORTS"])

sys.meta_path.insert(0, Finder)
"""
SCRIPT = "import sys; from clgpu_delegate.__main__ import main; sys.exit(main())"  # as pip's


@pytest.fixture(params=["clgpu", "module", "doctor"])
def program(request, tmp_path):
    """The words that start a command in one of its ways, and the environment for that."""
    (tmp_path / "clgpu").write_text(SCRIPT)
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS_AT_AN_IMPORT)
    words = {
        "clgpu": [str(tmp_path / "clgpu"), "devices"],
        "module": ["-m", "clgpu_delegate", "devices"],
        "doctor": ["-m", "clgpu_delegate.doctor"],
    }[request.param]
    if request.param != "clgpu" and not hasattr(sys, "orig_argv"):
        pytest.skip("Python 3.9 does not tell a package which module python -m runs")
    path = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    return [sys.executable, *words], environment


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("imports", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144])
def test_interrupt_at_an_early_moment(program, imports):
    words, environment = program
    done = subprocess.run(
        words, env={**environment, "IMPORTS": str(imports)}, cwd="/", capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (exits.INTERRUPTED, ""), done.stderr
    assert done.stderr == "clgpu: interrupted\n"


@pytest.mark.usefixtures("_interruptible")
def test_interrupt_at_any_moment_shows_no_line_of_ours(program):
    words, environment = program
    for moment in range(8):
        process = subprocess.Popen(
            words, env={**environment, "IMPORTS": "100000"}, cwd="/", text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(0.06 * moment)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        if str(ROOT / "clgpu_delegate") not in errors:  # else what follows says where
            continue
        raise AssertionError(f"after {0.06 * moment:.2f} s:\n{errors}")


@pytest.mark.usefixtures("_interruptible")
def test_library_leaves_interrupts_to_its_program():
    script = (
        "import signal, clgpu_delegate; print(signal.getsignal(2) is signal.default_int_handler)"
    )
    assert run_python(script).stdout == "True\n"


def test_pipes_and_devices_are_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            files.write_atomically(files.check_writable(path), b"content")
            assert os.read(reader, 100) == b"content"
        finally:
            os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


@pytest.mark.parametrize("words", ["list", "clear", "export {out}", "import {ours}"])
def test_cache_commands_leave_other_files_alone(words, tmp_path, capfd):
    ours, other = tmp_path / "ours.sqlite", tmp_path / "notes.txt"
    _core.Store(str(ours)).put("probe", "a", b"1")
    other.write_text("my notes")
    arguments = [word.format(ours=ours, out=tmp_path / "out") for word in words.split()]
    for path, part in [(other, "is not a cache of clgpu_delegate"), (tmp_path, "Is a directory")]:
        words = ["cache", *arguments, "--cache", str(path)]
        said = fails(capfd, exits.FILE, words)
        assert str(path) in said
        assert part in said
    assert other.read_text() == "my notes"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("bad", "part"),
    [("gone", "there is no file"), (".", "there is no file"), ("notes.txt", "not a database")],
)
def test_cache_import_of_what_is_no_cache(bad, part, tmp_path, capfd):
    (tmp_path / "notes.txt").write_text("my notes, which are longer than a header of SQLite is" * 9)
    words = ["cache", "import", str(tmp_path / bad), "--cache", str(tmp_path / "c.sqlite")]
    assert part in fails(capfd, exits.FILE, words)
    assert not (tmp_path / "c.sqlite").exists()


@pytest.mark.parametrize("place", ["no/folder", ".", "there"])
def test_cache_export_to_where_it_cannot_write(place, tmp_path, capfd):
    _core.Store(str(tmp_path / "ours")).put("probe", "a", b"1")
    (tmp_path / "there").write_text("before")
    words = ["cache", "export", str(tmp_path / place), "--cache", str(tmp_path / "ours")]
    fails(capfd, exits.FILE, words)
    assert (tmp_path / "there").read_text() == "before"


PUBLIC = [
    name
    for name in clgpu_delegate.__all__
    if callable(value := getattr(clgpu_delegate, name))
    and next(iter(signature_of(value)), "") in MODELS
    and not dataclasses.is_dataclass(value)
]


def test_sweep_finds_the_public_functions():
    assert {"Runner", "benchmark", "capture", "profile_model", "quantize", "tune"} <= set(PUBLIC)


@pytest.mark.parametrize("bad", BAD_MODELS)
@pytest.mark.parametrize("name", PUBLIC)
def test_bad_model_of_a_public_function(name, bad, tmp_path):
    path = tmp_path / "bad.tflite"
    if bad == "folder":
        path.mkdir()
    elif bad != "missing":
        path.write_bytes(BAD_MODELS[bad])
    function = getattr(clgpu_delegate, name)
    needed = {
        parameter: {"calibration": None, "scheme": "int8"}.get(parameter, tmp_path / "written")
        for parameter, how in list(signature_of(function).items())[1:]
        if how.default is how.empty and how.kind is how.POSITIONAL_OR_KEYWORD
    }
    with pytest.raises((FileError, ModelError), match=r"bad\.tflite"):
        function(path, **needed)
    assert not (tmp_path / "written").exists()


def test_no_part_of_a_model_is_taken_for_a_model():
    for content in (IMAGE, models.quantized(), models.detour(8)):
        for size in range(8, len(content) - 4):
            with pytest.raises(ModelError):
                files.check_model(content[:size], "part")


@pytest.mark.parametrize("kind", [2, 3])  # BlockwiseQuantization, MultiAxisQuantization
def test_details_of_quantisation_are_read_by_their_kind(kind):
    b = flatbuffers.Builder(0)

    def vector(*tables):
        b.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            b.PrependUOffsetTRelative(table)
        return b.EndVector()

    def table(slots, scalars=(), offsets=()):
        b.StartObject(slots)
        for slot, value in scalars:
            b.PrependInt32Slot(slot, value, 0)
        for slot, value in offsets:
            b.PrependUOffsetTRelativeSlot(slot, value, 0)
        return b.EndObject()

    b.StartVector(4, 2, 4)
    for size in (32, 1):
        b.PrependInt32(size)
    blocks = b.EndVector()
    details = table(4, [(0, 5), (1, 6), (2, 32)], [(3, blocks)])  # the numbers of two tensors first
    b.StartObject(7)
    b.PrependUint8Slot(4, kind, 0)
    b.PrependUOffsetTRelativeSlot(5, details, 0)
    tensors = vector(table(10, (), [(4, b.EndObject())]))
    b.Finish(table(8, [(0, 3)], [(2, vector(table(5, (), [(0, tensors)])))]), b"TFL3")
    content = bytes(b.Output())
    assert files.check_model(content, "whole") == content
    broken = bytearray(content)
    at = content.index(bytes([2, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0]))
    broken[at : at + 4] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(ModelError, match="beyond its end"):
        files.check_model(bytes(broken), "broken")


@pytest.mark.parametrize("words", ["run", "profile", "tune", "bench", "explain"])
def test_input_beyond_all_memory_is_one_sentence_and_no_mistake_of_ours(words, tmp_path, capfd):
    m = ModelMaker()
    shape = (2**20, 2**20, 5)  # 20 TiB
    m.output(m.op("ABS", [m.input("x", shape)], shape))
    path = tmp_path / "huge.tflite"
    path.write_bytes(m.build())
    exits.answer(cli.app, [words, str(path)])
    output = " ".join("".join(capfd.readouterr()).split())
    assert "mistake" not in output
    reasons = ("GiB cannot be allocated", "it gave no reason", "supported: 1 to 2147483647")
    assert any(reason in output for reason in reasons), output


@pytest.mark.parametrize(
    ("operand", "reason"),
    [
        (-1, "node 0 of subgraph 0, MAXIMUM, lacks its input 1"),
        (7, "node 0 of subgraph 0, MAXIMUM, names tensor 7 as its input 1; there are 2"),
        (-2, "node 0 of subgraph 0, MAXIMUM, names tensor -2 as its input 1; there are 2"),
    ],
)
def test_node_without_an_operand_is_told_before_a_runtime_dies_of_it(operand, reason):
    m = ModelMaker()
    x = m.input("x", (4,))
    m.output(m.op("MAXIMUM", [x, x], (4,)))
    files.check_model(m.build(), "the model")
    m._ops[0].inputs[1] = operand
    with pytest.raises(ModelError, match=f"the model is damaged: {reason}"):
        files.check_model(m.build(), "the model")


@pytest.mark.parametrize(
    ("inputs", "output", "reason"),
    [([0], -1, "RESHAPE, lacks its output 0"), ([0, -1], 1, "RESHAPE, lacks its input 1")],
)
def test_what_stock_kernels_read_all_the_same_may_not_be_absent(inputs, output, reason):
    m = ModelMaker()
    m.output(m.op("RESHAPE", [m.input("x", (4,))], (2, 2), new_shape=[2, 2]))
    m._ops[0].inputs, m._ops[0].outputs = inputs, [output]
    with pytest.raises(ModelError, match=reason):
        files.check_model(m.build(), "the model")


def test_model_without_a_graph_is_told():
    b = flatbuffers.Builder(0)
    b.StartObject(8)
    b.PrependInt32Slot(0, 3, 0)
    b.Finish(b.EndObject(), file_identifier=b"TFL3")
    with pytest.raises(ModelError, match="the model is damaged: it has no subgraph"):
        files.check_model(bytes(b.Output()), "the model")


def test_operation_that_is_not_in_the_file_is_told():
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (4,))], (4,)))
    m._ops[0].code = 5
    reason = "node 0 of subgraph 0 names the operator code 5; there are 1"
    with pytest.raises(ModelError, match=reason):
        files.check_model(m.build(), "the model")


def test_model_without_an_output_is_told_before_a_runtime_reads_it():
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (4,))], (4,)))
    m._outputs.append(-1)
    with pytest.raises(ModelError, match="the model is damaged: subgraph 0 lacks its output 1"):
        files.check_model(m.build(), "the model")


def test_optional_operand_may_be_absent():
    m = ModelMaker()
    x, weights = m.input("x", (1, 4)), m.constant(np.ones((3, 4), np.float32))
    m.output(m.op("FULLY_CONNECTED", [x, weights, None], (1, 3)))
    files.check_model(m.build(), "the model")


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_umask_counts_for_a_written_file_and_is_never_changed(mask, tmp_path, monkeypatch):
    before, change = os.umask(mask), os.umask
    try:
        # Files that other threads create in the meantime would get the mode of another umask.
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
        files.write_atomically(tmp_path / "x", b"content")
    finally:
        change(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o666 & ~mask
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_tensor_with_two_writers_is_told_before_a_runtime_writes_beyond_its_memory():
    m = ModelMaker()
    x = m.input("x", (4,))
    y = m.op("ABS", [x], (4,))
    m.op("TILE", [x, m.constant(np.array([9], np.int32))], (36,))
    m._ops[1].outputs[0] = y
    m.output(m.op("NEG", [y], (4,)))
    reason = "node 1 of subgraph 0, TILE, writes tensor 1, which node 0 writes, too"
    with pytest.raises(ModelError, match=f"the model is damaged: {reason}"):
        files.check_model(m.build(), "the model")
