"""AHardwareBuffers and OpenGL's objects as inputs and outputs, on emulated drivers.

Results are those of the copying way, bit for bit. Real drivers have not been tried.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.limits.build import LayerError, environment, shared_library
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

HERE = Path(__file__).parent
IMPORTING = ["mali_g78", "adreno_660"]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what stands for libnativewindow.so."""
    sources = [HERE / "nativewindow.c"]
    try:
        made = shared_library("nativewindow", sources, ROOT / "build" / "limits", "a test needs")
    except LayerError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("window")
    (folder / "libnativewindow.so").symlink_to(made)
    return folder


@pytest.fixture
def run(library: Path, runtime: str, window: Path):
    """Return a function that runs a script on an emulated device."""

    def run(profile: str, script: str, *, has_window: bool = True, **changes: str) -> None:
        try:
            variables = environment(profile, ROOT / "build" / "limits")
        except LayerError as error:
            pytest.skip(str(error))
        if has_window:
            variables["LD_LIBRARY_PATH"] = str(window)
        arguments = [str(library), runtime, *(["window"] if has_window else [])]
        text = f"from tests.library.bound import *\nrng = np.random.default_rng(0)\n{script}"
        assert_succeeds(run_python(text, *arguments, **{**variables, **changes}))

    return run


BUFFERS = """
delegate = Delegate()
direct, copying = Model(model(), delegate), Model(model(), Delegate())
frames = [HardwareBuffer(576), HardwareBuffer(640)]  # one is larger than the tensor
result = HardwareBuffer(576)
memories = [delegate.hardware_buffer(frame) for frame in frames]
output = delegate.hardware_buffer(result)
assert all(b.references == 2 for b in (*frames, result))
delegate.bind(direct.y, output)
for turn in range(6):
    frame = frames[turn % 2]
    x = rng.standard_normal((1, 6, 8, 3), np.float32)
    frame.array[:576] = x.view(np.uint8).ravel()
    delegate.bind(direct.x, memories[turn % 2])
    direct.invoke()
    found = result.array.view(np.float32).reshape(x.shape)
    assert (found == copying(x)).all()
    assert (frame.array[:576].view(np.float32) == x.ravel()).all(), "an input is not changed"

# What is bound stays so after its release, and is given back once.
for memory in (*memories, output):
    release(memory)
assert [b.references for b in (*frames, result)] == [1, 2, 2]
x = rng.standard_normal((1, 6, 8, 3), np.float32)
frames[1].array[:576] = x.view(np.uint8).ravel()
direct.invoke()
assert (result.array.view(np.float32).reshape(x.shape) == copying(x)).all()
delegate.bind(direct.x, None)
assert frames[1].references == 1
result.array[:] = 0
x = rng.standard_normal((1, 6, 8, 3), np.float32)
direct.interpreter.set_tensor(direct.x, x)
direct.invoke()
assert (result.array.view(np.float32).reshape(x.shape) == copying(x)).all()
delegate.bind(direct.y, None)
assert result.references == 1
assert layer.limits_imported() == 0
result.array[:] = 7
assert (direct(x) == copying(x)).all()
assert (result.array == 7).all()
for buffer in (*frames, result):
    buffer.release()
assert window.fake_living() == 0
"""


@pytest.mark.parametrize("profile", IMPORTING)
def test_buffers_equal_the_copying_way(run, profile):
    run(profile, BUFFERS)


ENDS = """
import gc
delegate = Delegate()
direct = Model(model(), delegate)
frame, result = HardwareBuffer(576), HardwareBuffer(576)
for tensor, buffer in ((direct.x, frame), (direct.y, result)):
    memory = delegate.hardware_buffer(buffer)
    delegate.bind(tensor, memory)
    release(memory)
direct.invoke()
assert (frame.references, result.references) == (2, 2)
if "delegate" in sys.argv[3:]:
    delegate.destroy()
    direct.invoke()
del direct
gc.collect()
assert (frame.references, result.references) == (1, 1)
"""


@pytest.mark.parametrize("profile", IMPORTING)
@pytest.mark.parametrize("first", ["interpreter", "delegate"])
def test_memory_goes_with_the_interpreter(run, profile, first):
    run(profile, ENDS.replace("sys.argv[3:]", repr([first])))


PIXELS = """
DTYPE, CHANNELS, FORM, SCALE, OFFSET = {case}
shape = (1, 6, 8, CHANNELS)
delegate = Delegate()
direct, copying = Model(model(shape, DTYPE), delegate), Model(model(shape, DTYPE), Delegate())
frame = HardwareBuffer(8, 6, FORM)
memory = delegate.hardware_buffer(frame)
for _ in range(3):
    delegate.bind(direct.x, memory, (SCALE, OFFSET))
    frame.array[:] = rng.integers(0, 256, frame.array.shape, np.uint8)
    direct.invoke()
    wanted = frame.array[..., :CHANNELS].astype(np.float64) * SCALE + OFFSET
    if DTYPE != np.float32:
        kind = np.iinfo(DTYPE)
        wanted = np.clip(np.rint(wanted), kind.min, kind.max)
    found = direct.interpreter.get_tensor(direct.y)
    assert (found == copying(wanted.astype(DTYPE)[np.newaxis])).all()
delegate.bind(direct.x, None)
release(memory)
assert frame.references == 1
assert layer.limits_imported() == 0
"""


@pytest.mark.parametrize("profile", IMPORTING)
@pytest.mark.parametrize(
    "case",
    [
        "np.float32, 3, RGBA, 1 / 128, -1",
        "np.float32, 4, RGBA, 2, 0.5",
        "np.float32, 3, RGBX, -0.25, 3",
        "np.uint8, 3, RGBA, 1, 0",
        "np.uint8, 4, RGBA, 1.5, -20",
        "np.int8, 3, RGBX, 1, -128",
    ],
)
def test_pixels_equal_the_copying_way(run, profile, case):
    run(profile, PIXELS.replace("{case}", case))


IMAGE_OUT = """
delegate = Delegate()
m = ModelMaker()
x = m.input("x", (1, 6, 8, CHANNELS))
m.output(m.op("RELU", [x], (1, 6, 8, CHANNELS)))
direct = Model(m.build(), delegate)
image = HardwareBuffer(8, 6, RGBA)
memory = delegate.hardware_buffer(image)
delegate.bind(direct.y, memory, (1 / 128, -1))
for _ in range(2):
    values = rng.uniform(-1, 1.5, (1, 6, 8, CHANNELS)).astype(np.float32)
    direct.interpreter.set_tensor(direct.x, values)
    direct.invoke()
    wanted = np.clip(np.rint((np.maximum(values[0], 0) + 1) * 128), 0, 255)
    assert (image.array[..., :CHANNELS] == wanted).all()
    assert CHANNELS == 4 or (image.array[..., 3] == 255).all()
"""


@pytest.mark.parametrize("profile", IMPORTING)
@pytest.mark.parametrize("channels", [3, 4])
def test_output_is_written_as_pixels(run, profile, channels):
    run(profile, IMAGE_OUT.replace("CHANNELS", str(channels)))


OPTIONS = """
delegate = Delegate(OPTIONS)
direct, copying = Model(model(), delegate), Model(model(), Delegate(OPTIONS))
frame, image, result = HardwareBuffer(576), HardwareBuffer(8, 6, RGBA), HardwareBuffer(576)
memories = [delegate.hardware_buffer(b) for b in (frame, image, result)]
delegate.bind(direct.y, memories[2])
for turn in range(4):
    x = rng.integers(0, 256, (1, 6, 8, 3)).astype(np.float32)
    frame.array[:] = x.view(np.uint8).ravel()
    image.array[..., :3] = x[0]
    delegate.bind(direct.x, memories[turn % 2])
    result.array[:] = 0
    direct.invoke()
    assert (result.array.view(np.float32).reshape(x.shape) == copying(x)).all()
"""


@pytest.mark.parametrize(
    "options",
    [
        'precision="fp16", half_io="on"',  # the host converts
        'verify="first"',  # kernels of the CPU see the values, too
        'profile="on"',
        'chain="on"',
    ],
)
def test_options_change_nothing(run, options):
    run("mali_g78", OPTIONS.replace("OPTIONS", options))


GL = """
frame, result = aligned((6, 8, 4), np.uint8), aligned((576,), np.uint8)
drawn = aligned((6, 8, 4), np.uint8)
gl_texture(5, frame)
gl_buffer(6, result)
gl_texture(7, drawn)
delegate = Delegate(gl=GL_CONTEXT)
direct, copying = Model(model(), delegate), Model(model(), Delegate())
x, y, image = delegate.gl_texture(5), delegate.gl_buffer(6), delegate.gl_texture(7)
delegate.bind(direct.x, x, (1 / 64, -2))
for turn in range(4):
    delegate.bind(direct.y, image if turn == 3 else y, (1 / 256, 0))
    frame[:] = rng.integers(0, 256, frame.shape, np.uint8)
    direct.invoke()
    wanted = copying((frame[..., :3] / np.float32(64) - 2)[np.newaxis])
    if turn < 3:
        assert (result.view(np.float32).reshape(wanted.shape) == wanted).all()
    else:
        assert (drawn[..., :3] == np.clip(np.rint(wanted[0] * 256), 0, 255)).all()
    assert layer.limits_gl_acquires() == layer.limits_gl_releases() == 2 * (turn + 1)
    assert layer.limits_gl_in_use() == 0

# An inference that fails gives OpenGL its objects back.
delegate.bind(direct.y, y)
direct.interpreter.resize_tensor_input(direct.x, (1, 6, 9, 3))
direct.interpreter.allocate_tensors()
with refused("the OpenGL texture 5 has 8 x 6 pixels", "needs 9 x 6"):
    direct.invoke()
assert layer.limits_gl_in_use() == 0
direct.interpreter.resize_tensor_input(direct.x, (1, 6, 8, 3))
direct.interpreter.allocate_tensors()
direct.invoke()
assert (result.view(np.float32).reshape(1, 6, 8, 3)
        == copying((frame[..., :3] / np.float32(64) - 2)[np.newaxis])).all()
assert layer.limits_gl_acquires() == layer.limits_gl_releases() == 10
assert layer.limits_imported() == 3
release(image)
assert layer.limits_imported() == 2

# The same context serves two delegates.
other = Delegate(gl=GL_CONTEXT)
also = Model(model(), other)
other.bind(also.x, x)
other.destroy()
with refused("create it by clgpu_delegate_create_with_gl"):
    Delegate().gl_buffer(6)
with refused("GL_RGBA8"):
    floats = aligned((6, 8, 4), np.float32)
    gl_texture(8, floats)
    delegate.gl_texture(8)
with refused("the OpenGL texture 99 cannot be imported", "CL_INVALID_GL_OBJECT (-60)"):
    delegate.gl_texture(99)
with refused("CL_INVALID_VALUE", "GL_TEXTURE_EXTERNAL_OES must be drawn into"):
    delegate.gl_texture(5, TEXTURE_EXTERNAL)
with refused("the OpenGL buffer 5 cannot be imported", "glBufferData"):
    delegate.gl_buffer(5)
with refused("another device or OpenGL context"):
    plain = Delegate()
    third = Model(model(), plain)
    plain.bind(third.x, x)
"""


CONVOLUTION = """
m = ModelMaker()
weights = m.constant(rng.standard_normal((8, 1, 1, 8)).astype(np.float32))
bias = m.constant(np.zeros(8, np.float32))
x = m.input("x", (1, 6, 6, 8))
m.output(m.op("CONV_2D", [x, weights, bias], (1, 6, 6, 8), padding=1, stride_w=1, stride_h=1))
delegate = Delegate()
direct, copying = Model(m.build(), delegate), Model(m.build(), Delegate())
frame = HardwareBuffer(4 * 288)
memory = delegate.hardware_buffer(frame)
delegate.bind(direct.x, memory)
for _ in range(2):
    x = rng.standard_normal((1, 6, 6, 8), np.float32)
    frame.array[:] = x.view(np.uint8).ravel()
    direct.invoke()
    assert (direct.interpreter.get_tensor(direct.y) == copying(x)).all()
delegate.bind(direct.x, None)
release(memory)
assert (frame.references, layer.limits_imported(), layer.limits_kept_by_parts()) == (1, 0, 0)
"""


@pytest.mark.parametrize("profile", IMPORTING)
def test_kernels_read_bound_buffers_as_images_too(run, profile):
    run(profile, CONVOLUTION)


@pytest.mark.parametrize("profile", IMPORTING)
def test_opengl_shares_its_objects(run, profile):
    run(profile, GL, has_window=False)


NO_GL = """
with refused(PART):
    Delegate(gl=GL)
with refused("the window system is 3", "CLGPU_DELEGATE_GLX (2)"):
    call("create_with_gl", None, c_size_t(0), byref((c_size_t * 3)(3, 1, GL_CONTEXT)))
with refused("the OpenGL context, or its display, is null"):
    call("create_with_gl", None, c_size_t(0), None)
x = np.ones((1, 6, 8, 3), np.float32)
assert (Model(model(), Delegate())(x) == Model(model(), Delegate())(x)).all()
"""


@pytest.mark.parametrize(
    ("profile", "context", "part"),
    [
        ("powervr_bxm", "GL_CONTEXT", "does not list cl_khr_gl_sharing"),
        ("mali_g78", "5", "with this OpenGL context (clCreateContext"),
    ],
)
def test_delegate_that_cannot_share_with_opengl_is_refused(run, profile, context, part):
    run(profile, NO_GL.replace("PART", repr(part)).replace("gl=GL)", f"gl={context})"))


REFUSALS = """
delegate = Delegate()
small, fitting, image = HardwareBuffer(572), HardwareBuffer(576), HardwareBuffer(8, 6, RGBA)
memory = delegate.hardware_buffer(fitting)
with refused("no tensor can be bound: no interpreter has partitions on the device"):
    delegate.bind(0, memory)
direct, copying = Model(model(), delegate), Model(model(), Delegate())
with refused("the AHardwareBuffer has 572 bytes; tensor 0 'x' needs 576"):
    delegate.bind(direct.x, delegate.hardware_buffer(small))
with refused("tensor 77 cannot be bound", "0 'x', "):
    delegate.bind(77, memory)
with refused("tensor -1 cannot be bound"):
    delegate.bind(-1, None)
with refused("the AHardwareBuffer is null"):
    call("import_hardware_buffer", delegate.pointer, None)
with refused("the delegate is null"):
    call("import_hardware_buffer", None, fitting.pointer)
with refused("the format 4 and 1 layers", "BLOB (33)"):
    delegate.hardware_buffer(HardwareBuffer(8, 6, RGB565))
for form, usage in ((BLOB, "GPU_DATA_BUFFER"), (RGBA, "GPU_SAMPLED_IMAGE")):
    unfit = HardwareBuffer(8, 6, form, 0)
    with refused("cannot be imported", "CL_INVALID_OPERATION (-59)", usage):
        delegate.hardware_buffer(unfit)
    assert unfit.references == 1
with refused("the AHardwareBuffer has 9 x 6 pixels (width x height)", "needs 8 x 6"):
    delegate.bind(direct.x, delegate.hardware_buffer(HardwareBuffer(9, 6, RGBA)))
pixels = delegate.hardware_buffer(image)
for scaling in ((0, 1), (float("nan"), 0), (1, float("inf"))):
    with refused("both must be finite, and scale must not be 0"):
        delegate.bind(direct.x, pixels, scaling)
with refused("this is no memory that clgpu_delegate_import_... has returned"):
    delegate.bind(direct.x, c_void_p(64))
release(c_void_p(64))
release(None)
flat = Delegate()
other = Model(model((6, 8, 3)), flat)
with refused("is float32 [6, 8, 3]", "[1, height, width, 3 or 4]"):
    flat.bind(other.x, pixels)
four = Delegate()
other = Model(model((1, 6, 8, 4)), four)
with refused("has no alpha channel"):
    four.bind(other.x, four.hardware_buffer(HardwareBuffer(8, 6, RGBX)))

# After all these refusals both ways work.
x = rng.standard_normal((1, 6, 8, 3), np.float32)
assert (direct(x) == copying(x)).all()
delegate.bind(direct.x, memory)
fitting.array[:] = x.view(np.uint8).ravel()
direct.invoke()
assert (direct.interpreter.get_tensor(direct.y) == copying(x)).all()

# What is bound and becomes too small.
direct.interpreter.resize_tensor_input(direct.x, (1, 6, 9, 3))
direct.interpreter.allocate_tensors()
with refused("the AHardwareBuffer has 576 bytes; tensor 0 'x' needs 648"):
    direct.invoke()
delegate.bind(direct.x, None)
x = rng.standard_normal((1, 6, 9, 3), np.float32)
assert direct(x).shape == x.shape

second = Model(model(), delegate)
with refused("the delegate serves several interpreters"):
    delegate.bind(second.x, memory)

# Nodes on the CPU see the interpreter's tensors only.
partly = Delegate(exclude="SOFTMAX")
shared = Model(model(), partly)
with refused(f"tensor {shared.y} cannot be bound", "nodes on the CPU use it", "0 'x'"):
    partly.bind(shared.y, memory)
partly.bind(shared.x, memory)
shared.invoke()
x = fitting.array.view(np.float32).reshape(1, 6, 8, 3)
wanted = Model(model(), Delegate(exclude="SOFTMAX"))(x)
assert (shared.interpreter.get_tensor(shared.y) == wanted).all()
"""


@pytest.mark.parametrize("profile", IMPORTING)
def test_refusals_have_their_sentences(run, profile):
    run(profile, REFUSALS)


WITHOUT = """
delegate = Delegate()
direct, copying = Model(model(), delegate), Model(model(), Delegate())
buffer = HardwareBuffer(576) if window else None
with refused(PART):
    call("import_hardware_buffer", delegate.pointer, buffer.pointer if buffer else c_void_p(64))
assert buffer is None or buffer.references == 1
x = rng.standard_normal((1, 6, 8, 3), np.float32)
assert (direct(x) == copying(x)).all()
"""


@pytest.mark.parametrize(
    ("profile", "has_window", "part"),
    [
        (
            "powervr_bxm",
            True,
            "its driver lists neither cl_arm_import_memory_android_hardware_buffer nor "
            "cl_qcom_android_ahardwarebuffer_host_ptr; lock the buffer and copy",
        ),
        ("mali_g78", False, "this system has no AHardwareBuffers, which Android has from version"),
    ],
)
def test_copying_way_stays_without_the_extension(run, profile, has_window, part):
    run(profile, WITHOUT.replace("PART", repr(part)), has_window=has_window)


def test_coherent_memory_is_named_where_the_driver_has_it(run):
    names = "cl_qcom_android_ahardwarebuffer_host_ptr cl_qcom_ext_host_ptr_iocoherent"
    run("adreno_660", BUFFERS, LIMITS_EMULATED=names)
