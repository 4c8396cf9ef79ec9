"""Inputs and outputs of compiled models in OpenCL buffers, by LiteRT's C interface."""

from __future__ import annotations

import gc
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import Options, _core, native
from clgpu_delegate.base import embedded
from tests.limits.build import LayerError, environment
from tests.litert import opencl
from tests.litert.compiled import chain, needs_litert
from tests.litert.host import (
    HOST,
    OPENCL,
    READ,
    WRITE,
    Buffer,
    Environment,
    LiteRtError,
    Model,
    litert,
)
from tests.model_maker import ModelMaker
from tests.python import models, subprocesses
from tests.python.subprocesses import assert_succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    needs_litert,
    pytest.mark.skipif(litert() is None, reason="this LiteRT has no library of its own"),
]
SIZE = 1000
KINDS = pytest.mark.parametrize("kinds", [(HOST, OPENCL), (OPENCL, HOST), (OPENCL, OPENCL)])


def a_row(size: int = SIZE, scale: float = 2.0) -> np.ndarray:
    return np.linspace(-scale, scale, size, dtype=np.float32)[None]


def wanted(x: np.ndarray) -> np.ndarray:
    return np.tanh(np.abs(x))


class Scene:
    """An environment, and what a test makes in it, destroyed in the order of making."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        options = Options.from_settings(**settings)
        self.folder = folder
        _core.litert_offer(str(folder), native.texts_of(options))
        self.environment = Environment(folder)
        self.made: list[Any] = []

    def model(self, content: bytes, hardware: int = 2) -> Model:
        self.made.append(Model(self.environment, content, hardware))
        return self.made[-1]

    def buffer(
        self, kind: int = OPENCL, size: int = SIZE, shape: tuple[int, ...] = (), **options: Any
    ) -> Buffer:
        self.made.append(Buffer(self.environment, shape or (1, size), kind, **options))
        return self.made[-1]

    def end(self) -> None:
        for made in self.made:
            made.destroy()
        self.environment.destroy()
        _core.litert_withdraw(str(self.folder))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Any]:
    scenes: list[Scene] = []

    def make(**settings: Any) -> Scene:
        folder = tmp_path / str(len(scenes))
        folder.mkdir()
        scenes.append(Scene(folder, **settings))
        return scenes[-1]

    gc.collect()  # delegates of other tests
    yield make
    for made in scenes:
        made.end()


def stats() -> list[dict[str, Any]]:
    return [delegate.stats() for delegate in clgpu_delegate.litert_delegates()]


# "off": as on a GPU of its own memory, so that every transfer is a copy that is counted.
@pytest.mark.parametrize("zero_copy", ["auto", "off"])
@KINDS
def test_result_is_that_of_host_memory(device, scene, zero_copy, kinds):
    s = scene(device=device, zero_copy=zero_copy)
    model = s.model(chain(SIZE))
    found = []
    for source, target in [(HOST, HOST), kinds, (HOST, HOST), kinds]:
        x, y = s.buffer(source), s.buffer(target)
        x.write(a_row())
        y.write(np.full((1, SIZE), 7, np.float32))
        model.run([x], [y])
        np.testing.assert_array_equal(x.read(), a_row())
        found.append(y.read())
    np.testing.assert_allclose(found[0], wanted(a_row()), atol=1e-6)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_default_is_host_memory(scene):
    model = scene().model(chain(SIZE))
    assert model.kinds(is_input=True) == [HOST, OPENCL]
    assert model.kinds(is_input=False) == [HOST, OPENCL]


def test_chain_of_models_stays_on_the_device(device, scene):
    s = scene(device=device, zero_copy="off")
    first, second = s.model(chain(SIZE)), s.model(chain(SIZE))
    x, y, z = s.buffer(), s.buffer(), s.buffer()
    x.write(a_row())
    for _ in range(3):
        first.run([x], [y])
        second.run([y], [z])
    assert [(each["bytes_up"], each["bytes_down"]) for each in stats()] == [(0, 0), (0, 0)]
    assert all(each["last_invoke"]["objects_created"] == 0 for each in stats())
    np.testing.assert_allclose(z.read(), wanted(wanted(a_row())), atol=1e-6)
    h = s.buffer(HOST)
    second.run([y], [h])
    assert [(each["bytes_up"], each["bytes_down"]) for each in stats()] == [(0, 0), (0, 4 * SIZE)]
    np.testing.assert_array_equal(h.read(), z.read())


def test_road_of_a_lent_buffer_is_told(scene):
    s = scene(zero_copy="off")
    model, x, y = s.model(chain(SIZE)), s.buffer(), s.buffer(HOST)
    model.run([x], [y])
    assert [tensor["road"] for tensor in stats()[0]["tensors"]] == ["lent", "copy"]
    model.run([y], [x])
    assert [tensor["road"] for tensor in stats()[0]["tensors"]] == ["copy", "lent"]


def test_buffers_take_turns(device, scene):
    s = scene(device=device)
    model = s.model(chain(SIZE))
    pairs = [(s.buffer(), s.buffer()) for _ in range(3)]
    for i, (x, _) in enumerate(pairs):
        x.write(a_row(scale=i + 1))
    for _ in range(2):
        for x, y in pairs:
            model.run([x], [y])
    for i, (_, y) in enumerate(pairs):
        np.testing.assert_allclose(y.read(), wanted(a_row(scale=i + 1)), atol=1e-6)


KHR = "cl_khr_command_buffer"


def launches_with_lists(s: Scene) -> list[int]:
    """Kernels started by inferences: three with each of three pairs of buffers, then in turns."""
    model = s.model(models.chain((1, SIZE)))
    launches = []

    def run(x: Buffer, y: Buffer, scale: float) -> None:
        x.write(a_row(scale=scale))
        model.run([x], [y])
        want = np.exp(np.tanh(a_row(scale=scale)))
        np.testing.assert_allclose(y.read(), want / want.sum(), rtol=1e-5)
        launches.append(stats()[0]["last_invoke"]["launches"])

    for scale in range(1, 4):
        pair = (s.buffer(), s.buffer())
        for _ in range(3):
            run(*pair, scale)
        for made in pair:
            s.made.remove(made)
            made.destroy()
    pairs = [(s.buffer(), s.buffer()) for _ in range(2)]
    for i in range(4):
        run(*pairs[i % 2], i + 1)
    return launches


def test_command_list_with_lent_buffers(device, scene):
    """Recorded when the same buffers come again, and dropped before one of them goes."""
    launches = launches_with_lists(scene(device=device, command_list="on"))
    extension = stats()[0]["command_lists"][0]["extension"]
    usual = [2, 2, 2] * 3 + [2] * 4
    assert launches == ([2, 1, 1] * 3 + [2] * 4 if extension == KHR else usual)


@pytest.mark.parametrize("keeps", ["0", "1"])
def test_command_list_of_adreno_gets_other_buffers(keeps):
    """They are arguments that replace the recorded ones, even in the first inference."""
    try:
        variables = environment("adreno_660", subprocesses.ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    code = """
        from tests.litert.test_opencl_buffers import launches_with_lists
        s = Scene(folder, command_list="on")
        launches = launches_with_lists(s)
        assert launches == [1] * 13, (launches, stats()[0]["command_lists"])
        s.end()
    """
    changes = {"LIMITS_EXTENSIONS": "cl_qcom_recordable_queues", "LIMITS_RECORDABLE_MAX": "8"}
    assert_succeeds(run_python(code, **{**variables, **changes, "LIMITS_RECORDING_KEEPS": keeps}))


@pytest.mark.parametrize("kind", [HOST, OPENCL])
@pytest.mark.parametrize("zero_copy", ["auto", "off"])
def test_one_buffer_is_input_and_output(device, scene, kind, zero_copy):
    s = scene(device=device, zero_copy=zero_copy)
    model, x = s.model(chain(SIZE)), s.buffer(kind)
    x.write(a_row())
    model.run([x], [x])
    np.testing.assert_allclose(x.read(), wanted(a_row()), atol=1e-6)


def two_inputs() -> bytes:
    """``(x + y, x)`` with an addition that may be written over an input."""
    m = ModelMaker()
    x, y = m.input("x", (1, SIZE)), m.input("y", (1, SIZE))
    total = m.op("ADD", [m.op("ABS", [x], (1, SIZE)), y], (1, SIZE))
    m.output(total)
    m.output(m.op("MUL", [total, x], (1, SIZE)))
    return m.build()


@pytest.mark.parametrize("zero_copy", ["auto", "off"])
def test_several_inputs_and_outputs_of_any_kind(device, scene, zero_copy):
    s = scene(device=device, zero_copy=zero_copy)
    model = s.model(two_inputs())
    a, b = a_row(), a_row(scale=5)
    for number in range(16):
        kinds = [OPENCL if number >> bit & 1 else HOST for bit in range(4)]
        x, y, total, product = [s.buffer(kind) for kind in kinds]
        x.write(a)
        y.write(b)
        model.run([x, y], [total, product])
        np.testing.assert_allclose(total.read(), np.abs(a) + b, rtol=1e-6, err_msg=str(kinds))
        np.testing.assert_allclose(product.read(), (np.abs(a) + b) * a, rtol=1e-5)
        np.testing.assert_array_equal(x.read(), a)
        np.testing.assert_array_equal(y.read(), b)
    # One buffer for both inputs.
    model.run([x, x], [total, product])
    np.testing.assert_allclose(total.read(), np.abs(a) + a, rtol=1e-6)


def test_input_is_never_written(device, scene):
    """The plan writes the sine over the input, which the application may use again."""
    m, rows = ModelMaker(), SIZE // 10
    y = m.op("SIN", [m.input("x", (1, rows, 10))], (1, rows, 10))
    m.output(m.op("SUM", [y, m.constant(np.array([2], np.int32))], (1, rows)))
    s = scene(device=device, zero_copy="off")
    model = s.model(m.build())
    x, y = s.buffer(shape=(1, rows, 10)), s.buffer(size=rows)
    given = a_row().reshape(1, rows, 10)
    x.write(given)
    for _ in range(2):
        model.run([x], [y])
        np.testing.assert_allclose(y.read(), np.sin(given).sum(axis=2), atol=1e-5)
    np.testing.assert_array_equal(x.read(), given)
    assert (stats()[0]["bytes_up"], stats()[0]["bytes_down"]) == (0, 0)


def test_half_precision_reads_floats(device, scene):
    s = scene(device=device, precision="fp16", half_io=True, zero_copy="off")
    model, x, y, h = s.model(chain(SIZE)), s.buffer(), s.buffer(), s.buffer(HOST)
    x.write(a_row())
    model.run([x], [y])
    model.run([x], [h])
    np.testing.assert_allclose(y.read(), wanted(a_row()), atol=2e-3)
    np.testing.assert_array_equal(y.read(), h.read())


def test_nodes_of_the_cpu_get_mapped_buffers(device, scene):
    s = scene(device=device, exclude=["TANH"])
    model, x, y = s.model(chain(SIZE), hardware=3), s.buffer(), s.buffer()
    assert model.kinds(is_input=True) == [HOST, OPENCL]
    assert model.kinds(is_input=False) == [HOST]
    x.write(a_row())
    model.run([x], [y])
    np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)


@pytest.mark.parametrize("verify", ["first", 1])
def test_verified_inferences_see_the_buffers(device, scene, verify):
    s = scene(device=device, verify=verify)
    model, x, y = s.model(chain(SIZE)), s.buffer(), s.buffer()
    x.write(a_row())
    for _ in range(3):
        model.run([x], [y])
        np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)
    (delegate,) = clgpu_delegate.litert_delegates()
    verification = delegate.explain().verification
    assert verification is not None
    assert [part.checked for part in verification.partitions] == [1 if verify == "first" else 3]


def test_profile_lists_launches_without_transfers(scene):
    s = scene(profile=True, zero_copy="off")
    model, x, y = s.model(chain(SIZE)), s.buffer(), s.buffer()
    x.write(a_row())
    for _ in range(3):
        model.run([x], [y])
    np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)
    (delegate,) = clgpu_delegate.litert_delegates()
    assert delegate.profile().launches


def test_lock_clear_and_views(device, scene):
    s = scene(device=device)
    s.model(chain(SIZE))
    x = s.buffer()
    x.write(a_row())
    view = x.lock(READ)
    np.testing.assert_array_equal(view, a_row())
    with pytest.raises(LiteRtError, match="LockTensorBuffer"):
        x.lock(WRITE)
    x.unlock()
    x.clear()
    assert not x.read().any()


def test_buffer_before_any_model_is_usable(scene):
    s = scene()
    x, y = s.buffer(), s.buffer()
    x.write(a_row())
    model = s.model(chain(SIZE))
    model.run([x], [y])
    np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)


@pytest.mark.parametrize("kind", [HOST, OPENCL])
def test_output_that_is_too_small_is_an_error(device, scene, kind, capfd):
    s = scene(device=device)
    model, x, y = s.model(chain(SIZE)), s.buffer(), s.buffer(kind, size=SIZE // 2)
    with pytest.raises(LiteRtError, match="RunCompiledModel"):
        model.run([x], [y])
    assert f"has a buffer of {2 * SIZE} bytes; it needs {4 * SIZE}" in capfd.readouterr().err
    good = s.buffer()
    x.write(a_row())
    model.run([x], [good])
    np.testing.assert_allclose(good.read(), wanted(a_row()), atol=1e-6)


def test_input_that_is_locked_is_an_error(scene, capfd):
    s = scene(zero_copy="off", precision="fp16", half_io=True)  # halves are made on the host
    model, x, y = s.model(chain(SIZE)), s.buffer(), s.buffer()
    x.lock(READ)
    with pytest.raises(LiteRtError, match="RunCompiledModel"):
        model.run([x], [y])
    assert "cannot be locked; it may be locked already" in capfd.readouterr().err
    x.unlock()
    model.run([x], [y])


def test_application_buffers_are_used_in_place(device, scene):
    s = scene(device=device, zero_copy="off")
    model = s.model(chain(SIZE))
    context = s.environment.option(4)
    assert context is not None
    source, target = [opencl.buffer(context, 4 * SIZE) for _ in range(2)]
    x, y = s.buffer(memory=source), s.buffer(memory=target)
    assert x.memory == source
    x.write(a_row())
    model.run([x], [y])
    np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)
    assert (stats()[0]["bytes_up"], stats()[0]["bytes_down"]) == (0, 0)
    opencl.release(source)
    opencl.release(target)
    model.run([x], [y])  # LiteRT's buffers keep them


def test_application_buffer_that_does_not_fit_is_told(scene, capfd):
    s = scene()
    s.model(chain(SIZE))
    context = s.environment.option(4)
    assert context is not None
    small = opencl.buffer(context, 2 * SIZE)
    with pytest.raises(LiteRtError, match="FromOpenClMemory"):
        s.buffer(memory=small)
    assert f"has {2 * SIZE} bytes; the tensor needs {4 * SIZE}" in capfd.readouterr().err
    other = opencl.context_beside(context)
    foreign = opencl.buffer(other, 4 * SIZE)
    with pytest.raises(LiteRtError, match="FromOpenClMemory"):
        s.buffer(memory=foreign)
    assert "belongs to another context than LiteRT's environment" in capfd.readouterr().err
    opencl.release(small)
    opencl.release(foreign)


def run_python(code: str, **environment: str) -> subprocesses.subprocess.CompletedProcess[str]:
    head = """
        import ctypes, pathlib, sys, tempfile
        import numpy as np
        import clgpu_delegate
        from clgpu_delegate import _core
        from tests.litert import opencl
        from tests.litert.compiled import chain
        from tests.litert.host import *
        from tests.litert.test_opencl_buffers import SIZE, Scene, a_row, stats, wanted
        folder = pathlib.Path(tempfile.mkdtemp())
    """
    return subprocesses.run_python(textwrap.dedent(head) + textwrap.dedent(code), **environment)


@pytest.mark.parametrize("profile", ["adreno_660", "powervr_bxm"])
def test_sub_buffers_of_the_application_are_copied_where_they_are_no_images(profile):
    try:
        variables = environment(profile, subprocesses.ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    code = """
        import os
        from tests.model_maker import ModelMaker
        layer = ctypes.CDLL(os.environ["CLGPU_OPENCL_LIBRARY"])
        opencl._library = lambda: layer  # it refuses images over sub-buffers that it has made
        shape, size = (1, 8, 8, 8), 4 * 512
        m = ModelMaker()
        weights = m.constant(np.full((8, 1, 1, 8), 0.125, np.float32))
        operands = [m.input("x", shape), weights, m.constant(np.zeros(8, np.float32))]
        m.output(m.op("CONV_2D", operands, shape, padding=1, stride_w=1, stride_h=1))
        s = Scene(folder, zero_copy="off", engines={"conv2d": "quads_image"})
        model = s.model(m.build())
        whole = opencl.buffer(s.environment.option(CONTEXT), 4096 + size)
        part = opencl.part(whole, 4096, size)
        x, y = s.buffer(shape=shape, memory=part), s.buffer(shape=shape)
        x.write(np.full(shape, 3, np.float32))
        for _ in range(2):
            model.run([x], [y])
            np.testing.assert_allclose(y.read(), 3, rtol=1e-5)
        assert stats()[0]["bytes_up"] == 0
        s.end()
    """
    assert_succeeds(run_python(code, **variables))


@pytest.mark.parametrize("order", ["mxy", "xym", "xmy", "none"])
def test_any_order_of_ends(order):
    """In a separate process, because errors here end the process."""
    code = f"""
        s = Scene(folder, zero_copy="off")
        objects = dict(m=s.model(chain(SIZE)), x=s.buffer(), y=s.buffer())
        objects["x"].write(a_row())
        objects["m"].run([objects["x"]], [objects["y"]])
        for name in {order!r}:
            if {order!r} == "none":
                sys.exit()
            objects[name].destroy()
            if name == "m":
                for other in "xy":
                    if {order!r}.index(other) > {order!r}.index("m"):
                        objects[other].read()
        s.environment.destroy()
    """
    assert_succeeds(run_python(code))


def test_context_of_the_application_is_used():
    code = """
        platform_device = opencl.any_device()
        context = opencl.context_of(platform_device)
        _core.litert_offer(str(folder), {"zero_copy": "off"})
        link = Environment(folder, device=platform_device, context=context)
        source, target = [opencl.buffer(context, 4 * SIZE) for _ in range(2)]
        x = Buffer(link, (1, SIZE), memory=source)  # before any model
        model = Model(link, chain(SIZE))
        assert link.option(CONTEXT) == context
        y = Buffer(link, (1, SIZE), memory=target)
        x.write(a_row())
        model.run([x], [y])
        np.testing.assert_allclose(y.read(), wanted(a_row()), atol=1e-6)
        assert (stats()[0]["bytes_up"], stats()[0]["bytes_down"]) == (0, 0)
        for each in (x, y, model, link):
            each.destroy()
    """
    assert_succeeds(run_python(code))


def test_wrong_objects_of_the_application_harm_nothing_else():
    if opencl.loader() is None or not embedded.libraries():
        pytest.skip("needs devices of two OpenCL drivers")
    code = """
        assert len(clgpu_delegate.devices()) > 1  # finds those of both drivers
        mine, other = opencl.any_device(), opencl.embedded_device()
        _core.litert_offer(str(folder), {})
        wrong = Environment(folder, device=mine, context=opencl.embedded_context(other))
        try:
            Model(wrong, chain(SIZE)).destroy()
            raise SystemExit("a context of another device was taken")
        except LiteRtError:
            pass
        wrong.destroy()
        for device in (mine, other):  # both are as before
            alone = Environment(folder, device=device)
            model = Model(alone, chain(SIZE))
            assert alone.option(DEVICE) == device
            model.destroy()
            alone.destroy()
    """
    assert_succeeds(run_python(code))


EVENTS = """
    s = Scene(folder, zero_copy="off")
    first, second = s.model(chain(SIZE)), s.model(chain(SIZE))
    x, y, z = s.buffer(), s.buffer(), s.buffer()
    for turn in range(3):
        x.write(a_row(scale=turn + 1))
        gate = opencl.user_event(s.environment.option(CONTEXT))
        x.attach(s.environment, gate)
        assert first.run_async([x], [y]) and y.has_event()
        assert second.run_async([y], [z]) and z.has_event()
        assert not opencl.is_done(gate)
        opencl.open_gate(gate)
        z.wait()
        np.testing.assert_allclose(z.read(), wanted(wanted(a_row(scale=turn + 1))), atol=1e-6)
        for buffer in (x, y, z):
            buffer.forget_event()
        opencl.release_event(gate)
    h = s.buffer(HOST)
    assert not first.run_async([x], [h]), "host memory is written before the call returns"
    np.testing.assert_allclose(h.read(), wanted(x.read()), atol=1e-6)
    assert first.run_async([x], [y])
    first.destroy()  # an inference may be under way
    np.testing.assert_allclose(y.read(), wanted(x.read()), atol=1e-6)
    assert [each["bytes_up"] for each in stats()] == [0]
"""


def test_asynchronous_inferences_wait_for_events(tmp_path):
    loader = opencl.loader()
    if loader is None:
        pytest.skip("no OpenCL loader of the system")
    # The name under which LiteRT looks for its OpenCL functions.
    (tmp_path / "libOpenCL.so").symlink_to(loader)
    assert_succeeds(run_python(EVENTS, LD_LIBRARY_PATH=str(tmp_path)))


def test_asynchronous_inferences_where_litert_finds_no_opencl_loader(tmp_path):
    code = """
        s = Scene(folder, zero_copy="off")
        first, second = s.model(chain(SIZE)), s.model(chain(SIZE))
        x, y, z = s.buffer(), s.buffer(), s.buffer()
        for turn in range(3):
            x.write(a_row(scale=turn + 1))
            assert first.run_async([x], [y]) and y.has_event()
            assert second.run_async([y], [z]) and z.has_event()
            z.wait()
            np.testing.assert_allclose(z.read(), wanted(wanted(a_row(scale=turn + 1))), atol=1e-6)
            for buffer in (y, z):
                buffer.forget_event()
        assert first.run_async([x], [y])
        first.destroy()
        np.testing.assert_allclose(y.read(), wanted(x.read()), atol=1e-6)
        assert [each["bytes_up"] for each in stats()] == [0]
    """
    (tmp_path / "libOpenCL.so").write_text("no library")
    assert_succeeds(run_python(code, LD_LIBRARY_PATH=str(tmp_path)))
