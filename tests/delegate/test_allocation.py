"""Memory of clgpu_delegate_allocate() as tensors of an interpreter."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator
from mmap import PAGESIZE
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.limits.build import LayerError, environment
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.subprocesses import ROOT, assert_succeeds, run_python
from tests.runtimes import available_runtimes, make_interpreter

# Of the runtimes, only this one exports the function.
RUNTIME = "tflite_runtime"
SET = "_ZN6tflite4impl11Interpreter28SetCustomAllocationForTensorEiRK22TfLiteCustomAllocationl"

pytestmark = pytest.mark.skipif(
    RUNTIME not in available_runtimes(), reason=f"{RUNTIME} is not installed"
)


class Custom(ctypes.Structure):
    """TfLiteCustomAllocation."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


def set_custom_allocation(interpreter: Any, tensor: int, address: int, size: int) -> None:
    """Call Interpreter::SetCustomAllocationForTensor()."""
    wrapper = pytest.importorskip(f"{RUNTIME}._pywrap_tensorflow_interpreter_wrapper")
    function = getattr(ctypes.CDLL(wrapper.__file__), SET)
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Custom), ctypes.c_int64)
    handle = interpreter._native_handle()
    assert function(handle, tensor, ctypes.byref(Custom(address, size)), 0) == 0


def array_at(address: int, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)).reshape(shape)


class Given:
    """An interpreter whose input and output are memory of the delegate: `x` and `y`."""

    def __init__(
        self, shape: tuple[int, ...], model: bytes = b"", function: Any = None, **options: Any
    ) -> None:
        self.delegate = clgpu_delegate.load(cache="off", **options)
        self.function = function or (lambda x: np.exp(np.tanh(x)))
        model = model or models.chain(shape, ("TANH", "EXP"))
        self.interpreter = make_interpreter(RUNTIME, model, [self.delegate])
        details = [self.interpreter.get_input_details(), self.interpreter.get_output_details()]
        self.tensors = [d[0]["index"] for d in details]
        self.size = int(np.prod(shape)) * 4
        self.addresses = [self.allocate(), self.allocate()]
        self.give(*self.addresses)
        self.x, self.y = (array_at(address, shape) for address in self.addresses)

    def allocate(self) -> int:
        return _core.allocate(self.delegate._native, self.size)

    def give(self, *addresses: int) -> None:
        for tensor, address in zip(self.tensors, addresses):
            set_custom_allocation(self.interpreter, tensor, address, self.size)
        self.interpreter.allocate_tensors()

    def check(self, x: np.ndarray | None = None, y: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(3)
        x = self.x if x is None else x
        y = self.y if y is None else y
        for _ in range(3):
            x[:] = rng.standard_normal(x.shape)
            y[:] = 0
            self.interpreter.invoke()
            want = self.function(x)
            np.testing.assert_allclose(y.reshape(want.shape), want, rtol=1e-5, atol=1e-6)

    def told(self) -> list[tuple[str, bool]]:
        return [(row["road"], row["pinned"]) for row in self.delegate.stats()["tensors"]]


@pytest.fixture
def given() -> Iterator[Any]:
    """Make one, and deallocate its memory at the end."""
    made: list[Given] = []

    def make(shape: tuple[int, ...], **options: Any) -> Given:
        made.append(Given(shape, **options))
        return made[-1]

    yield make
    for one in made:
        one.interpreter = None
        gc.collect()
        for address in one.addresses:
            _core.deallocate(address)


@pytest.mark.parametrize("shape", [(1, 5), (3, 50), (64, 1024)])
def test_a_device_that_shares_memory_copies_nothing(given, device, shape):
    """Also where the bytes are no multiple of a cache line."""
    one = given(shape, device=device)
    assert all(address % PAGESIZE == 0 for address in one.addresses)
    one.check()
    assert one.told() == [("host_pointer", False)] * 2
    last = one.delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"], last["objects_created"]) == (0, 0, 0)


def test_without_zero_copy_it_is_memory_like_any_other(given, device):
    one = given((3, 50), device=device, zero_copy="off")
    one.check()
    assert one.told() == [("copy", False)] * 2
    # Memory that the device shares is not pinned by the driver, but in place, if asked for.
    one = given((64, 1024), device=device, zero_copy="off", pin_tensors=True)
    one.check()


@pytest.mark.parametrize(
    "options", [{"chain": "on"}, {"verify": 1}, {"precision": "fp16"}], ids=str
)
def test_options(given, device, options):
    one = given((3, 50), device=device, **options)
    rng = np.random.default_rng(3)
    for _ in range(3):
        one.x[:] = rng.standard_normal(one.x.shape)
        one.interpreter.invoke()
        np.testing.assert_allclose(one.y, np.exp(np.tanh(one.x)), rtol=1e-2)


def test_tensors_may_move_from_one_to_another(given, device):
    shape = (3, 50)
    one = given(shape, device=device)
    one.check()
    others = [one.allocate(), one.allocate()]
    one.give(*others)
    # The first memory is not used any more.
    assert [_core.deallocate(address) for address in one.addresses] == [True, True]
    one.addresses = others
    one.check(*(array_at(address, shape) for address in others))


def test_deallocating_does_not_pull_memory_from_under_the_device(given, device):
    """An application must not do this; but until the tensors move, the memory stays."""
    one = given((3, 50), device=device)
    one.check()
    assert [_core.deallocate(address) for address in one.addresses] == [True, True]
    one.check()
    assert [_core.deallocate(address) for address in one.addresses] == [False, False]


def test_it_may_outlive_its_delegate(device):
    delegate = clgpu_delegate.load(device=device, cache="off")
    address = _core.allocate(delegate._native, 10_000)
    del delegate
    gc.collect()
    memory = array_at(address, (3 * PAGESIZE // 4,))
    assert not memory.any()
    memory[:] = 1
    assert _core.deallocate(address)
    assert not _core.deallocate(address)


def test_only_the_first_byte_is_its_address(device):
    delegate = clgpu_delegate.load(device=device, cache="off")
    address = _core.allocate(delegate._native, 2 * PAGESIZE)
    assert not _core.deallocate(address + PAGESIZE)
    assert _core.deallocate(address)
    for size in (0, 2**64 - 1):
        with pytest.raises(clgpu_delegate.ClgpuError, match=rf"^{size} bytes cannot be allocated"):
            _core.allocate(delegate._native, size)


def test_input_and_output_may_be_in_one_allocation(device):
    m = ModelMaker()
    m.output(m.op("TANH", [m.input("x", (3, 50))], (3, 50)))
    delegate = clgpu_delegate.load(device=device, cache="off")
    interpreter = make_interpreter(RUNTIME, m.build(), [delegate])
    address = _core.allocate(delegate._native, PAGESIZE + 600)
    tensors = (interpreter.get_input_details()[0], interpreter.get_output_details()[0])
    for i, detail in enumerate(tensors):
        set_custom_allocation(interpreter, detail["index"], address + i * PAGESIZE, 600)
    interpreter.allocate_tensors()
    x, y = (array_at(address + i * PAGESIZE, (3, 50)) for i in range(2))
    x[:] = np.linspace(-2, 2, 150).reshape(3, 50)
    interpreter.invoke()
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-5, atol=1e-6)
    assert [row["road"] for row in delegate.stats()["tensors"]] == ["host_pointer"] * 2
    del interpreter
    gc.collect()
    assert _core.deallocate(address)


def test_several_threads(device):
    delegate = clgpu_delegate.load(device=device, cache="off")
    problems: list[str] = []

    def work(number: int) -> None:
        for i in range(20):
            address = _core.allocate(delegate._native, 1000 + i)
            memory = array_at(address, (250,))
            if memory.any():
                problems.append("not zero")
            memory[:] = number
            if not (memory == number).all() or not _core.deallocate(address):
                problems.append("shared")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


DISCRETE = """
from clgpu_delegate import _core
from tests.delegate.test_allocation import *
for shape in ((3, 50), (64, 1024)):
    one = Given(shape, pin_tensors=True)
    one.check()
    assert one.told() == [("copy", True)] * 2, one.told()  # from the first inference on
    last = one.delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"]) == (one.size, one.size)
    assert last["objects_created"] == 0
    one.interpreter = None
    gc.collect()
    assert all(_core.deallocate(address) for address in one.addresses)
"""


def run_emulated(profile: str, script: str, **variables: str) -> None:
    """Run a script on an emulated device; with these variables of the environment, too."""
    pytest.importorskip(RUNTIME)
    try:
        emulated = environment(profile, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    assert_succeeds(run_python(script, **{**emulated, "CLGPU_CACHE": "off", **variables}))


@pytest.mark.parametrize("profile", ["mali_g78", "adreno_660"])
def test_a_device_with_its_own_memory_copies_from_pinned_memory(profile):
    """Emulated. Only what the driver pins has the flag: locking it once more makes no object."""
    run_emulated(profile, DISCRETE, LIMITS_UNIFIED_MEMORY="0")


SHARED = """
from tests.delegate.test_allocation import *
m = ModelMaker()  # 612 bytes: no whole number of cache lines; nothing is written over the input
permutation = m.constant(np.array([1, 0], np.int32))
m.output(m.op("TRANSPOSE", [m.input("x", (3, 51)), permutation], (51, 3)))
one = Given((3, 51), m.build(), np.transpose)
one.check()
assert one.told() == [("host_pointer", False)] * 2, one.delegate.stats()["tensors"]
"""


@pytest.mark.parametrize("profile", ["mali_g78", "adreno_660"])
def test_phones_work_on_it_in_place(profile):
    """Memory of an interpreter's arena is not aligned to pages, and is copied there."""
    run_emulated(profile, SHARED)
