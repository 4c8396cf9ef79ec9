"""LSTM and RNN: layers of one step or of sequences, in one direction or two."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused, op_runtime
from tests.ops.states import check_states, sigmoid
from tests.runtimes import make_interpreter, run_interpreter

INFERENCES = 3
ONE_STEP = ("LSTM", "RNN")


@dataclasses.dataclass
class Layer:
    """A recurrent layer."""

    op: str = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    steps: int = 3
    batch: int = 2
    inputs: int = 5
    cells: int = 6
    outputs: int = 6
    aux: int = 0  # size of an auxiliary input
    crossed: bool = True  # the auxiliary input has weights
    cifg: bool = False
    peephole: bool = False
    norm: bool = False
    projection: str = ""  # "", "weights" or "bias"
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    merged: bool = False
    activation: str = "TANH"
    int8: bool = False
    slots: int = 24

    @property
    def both(self):
        return self.op.startswith("BIDIRECTIONAL")

    @property
    def is_lstm(self):
        return self.op.endswith("LSTM")

    def shape(self, last):
        if self.op in ONE_STEP:
            return (self.batch, last)
        lead = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        return (*lead, last)


class Weights:
    """Constants of a model with their real values by name, and their slots."""

    def __init__(self, m, layer, rng):
        self.m, self.layer, self.rng = m, layer, rng
        self.values = {}

    def add(self, name, shape, scale=0.4, *, matrix=True):
        array = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        if not (self.layer.int8 and matrix):
            self.values[name] = array.astype(np.float64)
            return self.m.constant(array)
        step = float(np.float32(np.abs(array).max() / 127))
        stored = np.round(array / step).astype(np.int8)
        self.values[name] = stored * np.float64(step)
        return self.m.constant(stored, quantization=(step,))

    def lstm(self, prefix, slots, first):
        """The slots of one direction from `first` (of its input weights) on."""
        layer = self.layer
        for gate, letter in enumerate("ifgo"):
            if layer.cifg and letter == "i":
                continue
            name = prefix + letter
            slots[first + gate] = self.add(f"{name}.x", (layer.cells, layer.inputs))
            slots[first + 4 + gate] = self.add(f"{name}.h", (layer.cells, layer.outputs))
            slots[first + 11 + gate] = self.add(f"{name}.b", layer.cells, matrix=False)
            if layer.peephole and letter != "g":
                slots[first + 8 + "ifo".index(letter)] = self.add(f"{name}.c", layer.cells)
            if layer.norm:
                slots[20 + gate] = self.add(f"{name}.n", layer.cells, 1.0, matrix=False)
        if layer.projection:
            slots[first + 15] = self.add(f"{prefix}p", (layer.outputs, layer.cells))
        if layer.projection == "bias":
            slots[first + 16] = self.add(f"{prefix}p.b", layer.outputs, matrix=False)


def state(m, *shape):
    return m.tensor(shape, is_variable=True)


def lstm_slots(m, layer, weights):
    """The inputs of an LSTM but the first one, by slot."""
    directions = ("fw.", "bw.") if layer.both else ("fw.",)
    slots = [None] * (48 if layer.both else layer.slots)
    for i, prefix in enumerate(directions):
        weights.lstm(prefix, slots, 1 + 17 * i)
        at = 35 + 2 * i if layer.both else 18
        slots[at] = state(m, layer.batch, layer.outputs)
        slots[at + 1] = state(m, layer.batch, layer.cells)
        for gate, letter in enumerate("ifgo" if layer.aux and layer.crossed else ""):
            slots[40 + 4 * i + gate] = weights.add(f"{prefix}{letter}.a", (layer.cells, layer.aux))
    return slots


def rnn_slots(m, layer, weights):
    """The inputs of an RNN but the first one, by slot."""
    slots = [None] * (12 if layer.both else 5)
    for i, prefix in enumerate(("fw.", "bw.") if layer.both else ("fw.",)):
        slots[1 + 4 * i] = weights.add(f"{prefix}g.x", (layer.cells, layer.inputs))
        slots[2 + 4 * i] = weights.add(f"{prefix}g.h", (layer.cells, layer.cells))
        slots[3 + 4 * i] = weights.add(f"{prefix}g.b", layer.cells, matrix=False)
        slots[4 + 4 * i] = state(m, layer.batch, layer.cells)
        if layer.aux and layer.crossed:
            slots[10 + i] = weights.add(f"{prefix}g.a", (layer.cells, layer.aux))
    return slots


def make(layer, rng):
    """The model of a layer, and the real values of its weights."""
    m = ModelMaker()
    weights = Weights(m, layer, rng)
    x = m.input("x", layer.shape(layer.inputs))
    aux = m.input("aux", layer.shape(layer.aux)) if layer.aux else None
    options = {"fused_activation_function": layer.activation}
    if layer.op not in ONE_STEP:
        options["time_major"] = layer.time_major
    if layer.both:
        options["merge_outputs"] = layer.merged
    if layer.is_lstm:
        options.update(cell_clip=layer.cell_clip, proj_clip=layer.proj_clip)
    slots = (lstm_slots if layer.is_lstm else rnn_slots)(m, layer, weights)
    slots[0] = x
    if layer.both:
        slots[39 if layer.is_lstm else 9] = aux
    if layer.both and layer.merged:
        m.output(m.op(layer.op, slots, layer.shape(2 * layer.outputs), **options))
    elif layer.both:
        m.output(*m.op(layer.op, slots, [layer.shape(layer.outputs)] * 2, **options))
    else:
        m.output(m.op(layer.op, slots, layer.shape(layer.outputs), **options))
    return m, weights.values


ACTIVATIONS = {
    "TANH": np.tanh,
    "RELU": lambda x: np.maximum(x, 0),
    "NONE": lambda x: x,
}


def clip(x, limit):
    return np.clip(x, -limit, limit) if limit else x


class Direction:
    """A direction of a layer in float64, with its state."""

    def __init__(self, layer, prefix, values):
        self.layer, self.prefix, self.values = layer, prefix, values
        self.h = np.zeros((layer.batch, layer.outputs))
        self.c = np.zeros((layer.batch, layer.cells))

    def get(self, name, default=0.0):
        return self.values.get(self.prefix + name, default)

    def gate(self, letter, x, aux):
        v = x @ self.get(f"{letter}.x").T + self.h @ self.get(f"{letter}.h").T
        if aux is not None:
            v = v + aux @ self.get(f"{letter}.a").T
        v = v + self.get(f"{letter}.c") * self.c
        if not self.layer.norm:
            return v + self.get(f"{letter}.b")
        centred = v - v.mean(1, keepdims=True)
        centred = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-8)
        return centred * self.get(f"{letter}.n") + self.get(f"{letter}.b")

    def step(self, x, aux):
        act = ACTIVATIONS[self.layer.activation]
        if not self.layer.is_lstm:
            self.h = act(self.gate("g", x, aux))
            return self.h
        f = sigmoid(self.gate("f", x, aux))
        i = 1 - f if self.layer.cifg else sigmoid(self.gate("i", x, aux))
        self.c = clip(f * self.c + i * act(self.gate("g", x, aux)), self.layer.cell_clip)
        self.h = sigmoid(self.gate("o", x, aux)) * act(self.c)
        if self.layer.projection:
            self.h = clip(self.h @ self.get("p").T + self.get("p.b"), self.layer.proj_clip)
        return self.h


def reference(layer, values, inferences):
    directions = [Direction(layer, "fw.", values)]
    if layer.both:
        directions.append(Direction(layer, "bw.", values))

    def steps_first(x):
        x = np.asarray(x, np.float64)
        if layer.op in ONE_STEP:
            return x[None]
        return x if layer.time_major else x.swapaxes(0, 1)

    all_results = []
    for x, *more in inferences:
        results = []
        for number, direction in enumerate(directions):
            source = more[0] if more and not layer.crossed and number else x
            xs = steps_first(source)
            aux = steps_first(more[0]) if more and layer.crossed else [None] * len(xs)
            order = range(len(xs))[:: -1 if number else 1]
            ys = {t: direction.step(xs[t], aux[t]) for t in order}
            y = np.stack([ys[t] for t in range(len(xs))])
            if layer.op in ONE_STEP:
                y = y[0]
            elif not layer.time_major:
                y = y.swapaxes(0, 1)
            results.append(y)
        all_results.append([np.concatenate(results, -1)] if layer.merged else results)
    return all_results


def random_inputs(layer, rng, inferences=INFERENCES):
    sizes = [layer.inputs] + ([layer.aux] if layer.aux else [])
    return [
        [rng.standard_normal(layer.shape(size)).astype(np.float32) for size in sizes]
        for _ in range(inferences)
    ]


def check_layer(layer, rng, *, device, precision="fp32", stock=True, inferences=INFERENCES):
    m, values = make(layer, rng)
    inputs = random_inputs(layer, rng, inferences)
    terms = layer.inputs + layer.outputs + layer.aux
    if layer.projection:
        terms = max(terms, layer.cells)
    check_states(
        m.build(),
        inputs,
        reference(layer, values, inputs),
        device=device,
        precision=precision,
        # Each step depends on all steps before it.
        accumulation=terms * layer.steps * inferences,
        stock=stock,
    )


LSTM, PAIR = "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"
RNN, RNN_PAIR = "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"
# Each combination of macros is a program of its own, so few of them have many properties.
LSTMS = {
    "plain": Layer(),
    "time_major": Layer(time_major=True, cells=70, outputs=70),
    "20 inputs": Layer(slots=20, steps=1, batch=1),
    "cifg": Layer(cifg=True, activation="RELU"),
    "peephole": Layer(peephole=True, projection="weights", outputs=9),
    "clips": Layer(projection="bias", outputs=3, proj_clip=0.2, cell_clip=0.5),
    "norm": Layer(norm=True, cells=33, outputs=33),
    "all": Layer(norm=True, cifg=True, peephole=True, projection="bias", outputs=4),
    "one step": Layer(op="LSTM", batch=3),
    "long": Layer(steps=70, batch=1),
    "both": Layer(op=PAIR),
    "both, crossed": Layer(op=PAIR, aux=5, merged=True, time_major=True),
    "both, not crossed": Layer(op=PAIR, aux=5, crossed=False, time_major=True),
}
RNNS = {
    "plain": Layer(op=RNN),
    "one step": Layer(op="RNN", cells=65, outputs=65, activation="RELU"),
    "both": Layer(op=RNN_PAIR),
    "both, crossed": Layer(op=RNN_PAIR, aux=5, merged=True, time_major=True),
    "both, not crossed": Layer(op=RNN_PAIR, aux=5, crossed=False, time_major=True),
}


@pytest.mark.parametrize("name", LSTMS)
def test_lstm(name, device, rng):
    check_layer(LSTMS[name], rng, device=device)


@pytest.mark.parametrize("name", RNNS)
def test_rnn(name, device, rng):
    check_layer(RNNS[name], rng, device=device)


@pytest.mark.parametrize("layer", [LSTMS["clips"], RNNS["both"]], ids=lambda layer: layer.op)
def test_halves(layer, device, rng):
    check_layer(layer, rng, device=device, precision="fp16")


def beyond_local_memory(device):
    """A layer whose gates, cells and results take more than the local memory of a device."""
    cells = clgpu_delegate.devices()[int(device)].local_bytes // (5 * 4)
    return Layer(steps=2, inputs=1, cells=cells, outputs=1, projection="weights")


@pytest.mark.parametrize("slot", [1, 2, 6])
def test_weights_of_one_gate_may_be_halves(slot, device, rng):
    layer = Layer()
    m, _ = make(layer, rng)
    (node,) = m._ops
    shape = m.shape(node.inputs[slot])
    half = m.constant(rng.standard_normal(shape).astype(np.float16))
    node.inputs[slot] = m.op("DEQUANTIZE", [half], shape, dtype=np.float32)
    m._ops.reverse()
    x = rng.standard_normal(layer.shape(layer.inputs)).astype(np.float32)
    delegates = [clgpu_delegate.load(device=device)]
    ours = make_interpreter(op_runtime(), m.build(), delegates)
    stock = make_interpreter(op_runtime(), m.build(), resolver="ref")
    for _ in range(2):
        (got,), (want,) = run_interpreter(ours, [x]), run_interpreter(stock, [x])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        Layer(int8=True, peephole=True, projection="bias", outputs=5),
        Layer(op="BIDIRECTIONAL_SEQUENCE_RNN", int8=True, aux=4),
    ],
    ids=lambda layer: layer.op,
)
def test_int8_weights_of_floats(layer, device, rng):
    # The runtime's kernels round the inputs to int8.
    check_layer(layer, rng, device=device, stock=False)


def test_steps_that_local_memory_cannot_hold(device, rng):
    check_layer(beyond_local_memory(device), rng, device=device, inferences=2)


def test_a_hundred_inferences_of_one_step(device, rng):
    layer = Layer(steps=1, batch=1, cells=12, outputs=12)
    check_layer(layer, rng, device=device, inferences=100)


def option(**changes):
    """A change of the node's options."""
    return lambda m: m._ops[0].options.update(changes)


def without(slot):
    """The node without this input."""

    def change(m):
        m._ops[0].inputs[slot] = -1

    return change


def tensor(slot, **changes):
    """A change of the tensor at this input."""

    def change(m):
        for name, value in changes.items():
            setattr(m._tensors[m._ops[0].inputs[slot]], name, value)

    return change


def retyped(dtype, quantization=None):
    """Another type of the input and of the outputs."""

    def change(m):
        for i in [m._ops[0].inputs[0], *m._ops[0].outputs]:
            m._tensors[i].dtype, m._tensors[i].quantization = np.dtype(dtype), quantization

    return change


def other_weights(m):
    """int8 weights of one gate."""
    m._ops[0].inputs[3] = m.constant(np.ones((6, 5), np.int8), quantization=(0.5,))


def read_state(m):
    state = m._ops[0].inputs[18]
    m.output(m.op("ABS", [state], m.shape(state)))


INT8 = {"dtype": np.dtype(np.int8), "quantization": Quantization(0.5, 0)}


@pytest.mark.parametrize(
    ("layer", "change", "reason"),
    [
        (Layer(), option(cell_clip=-1.0), "a clip is negative"),
        (Layer(op="LSTM"), option(kernel_type="BASIC"), "the kernel of the LSTM is the basic one"),
        (
            Layer(op=RNN_PAIR, aux=5, crossed=False),
            option(),
            "an auxiliary input without weights needs the steps on the first axis",
        ),
        (
            Layer(op=RNN_PAIR, aux=4, time_major=True),
            option(),
            "an auxiliary input with the steps on the first axis needs the size of input 0",
        ),
        (Layer(), without(7), "input 7 is absent, which the operation needs"),
        (Layer(), without(19), "input 19 is absent, which the operation needs"),
        (Layer(), without(1), "input 5 belongs to an input gate without weights"),
        (
            Layer(),
            tensor(18, is_variable=False),
            "input 18 is a state, but not a variable tensor",
        ),
        (Layer(), retyped(np.int32), "input is int32; supported: float32, int8"),
        (Layer(), tensor(0, shape=(3, 5)), "input has rank 2; supported: 3"),
        (Layer(op=PAIR), option(merge_outputs=True), "the number of outputs is 2; supported: 1"),
        (
            Layer(op=RNN),
            retyped(np.int8, Quantization(0.5, 0)),
            "input 0 is quantised (int8): the operation has no integer kernels",
        ),
        (Layer(), tensor(2, **INT8, buffer=0), "input 2 is computed at run time"),
        (
            Layer(int8=True),
            tensor(2, quantization=Quantization(0.5, 3)),
            "input 2 has the scale 0.500000 and the zero point 3; supported: any and 0",
        ),
        (
            Layer(op=PAIR, aux=5),
            tensor(39, shape=()),
            "the auxiliary input has rank 0; supported: 3",
        ),
        (
            Layer(op=RNN_PAIR, aux=5, time_major=True),
            tensor(9, dtype=np.dtype(np.int32)),
            "the auxiliary input is int32; supported: float32",
        ),
        (Layer(), read_state, "input 18 is a variable tensor that another node uses, too"),
        (Layer(), other_weights, "input 3 has another type than the other gates"),
    ],
)
def test_refused(layer, change, reason, rng):
    m, _ = make(layer, rng)
    change(m)
    check_refused(m.build(), reason)


def integer_model(layer, rng, **changes):
    """An LSTM of integers: weights, inputs and results int8, cells int16."""
    m = ModelMaker()

    def random(shape, dtype, scale, zero=0, share=1.0):
        info = np.iinfo(dtype)
        limit = int(info.max * share)
        stored = rng.integers(-limit, limit + 1, shape).astype(dtype)
        return m.constant(stored, quantization=(float(np.float32(scale)), zero))

    x = m.input("x", layer.shape(layer.inputs), np.int8, quantization=(0.02, -7))
    slots = [None] * layer.slots
    slots[0] = x
    norm_scale = 2.0**-11 if layer.norm else 2.0**-12
    for gate, letter in enumerate("ifgo"):
        if layer.cifg and letter == "i":
            continue
        weights = changes.get("weights", np.int8)
        slots[1 + gate] = random((layer.cells, layer.inputs), weights, 0.011 + 0.001 * gate)
        slots[5 + gate] = random((layer.cells, layer.outputs), np.int8, 0.009 + 0.001 * gate)
        slots[12 + gate] = random(layer.cells, np.int32, 0.0002, share=2.0**-17)
        if layer.peephole and letter != "g":
            at = 9 + "ifo".index(letter)
            slots[at] = random(layer.cells, np.int16, 2.0**-14 * (1 + gate / 8))
        if layer.norm:
            slots[20 + gate] = random(layer.cells, np.int16, 2.0**-15 * (1 + gate / 8))
    if layer.projection:
        slots[16] = random((layer.outputs, layer.cells), np.int8, 0.01)
    if layer.projection == "bias":
        slots[17] = random(layer.outputs, np.int32, 0.0001, share=2.0**-17)
    h = (0.0071, 3)
    slots[18] = m.tensor((layer.batch, layer.outputs), np.int8, is_variable=True, quantization=h)
    cell = (changes.get("cell_scale", 2.0**-11), 0)
    slots[19] = m.tensor((layer.batch, layer.cells), np.int16, is_variable=True, quantization=cell)
    # The runtime's kernel reads the hidden scale also where there is no projection.
    hidden = h if not layer.projection else (0.0083, -5)
    scales = changes.get("scales", [(norm_scale, 0)] * 4 + [hidden])
    types = [np.int16] * 4 + [np.int8]
    between = [m.tensor((1,), t, quantization=q) for t, q in zip(types, scales)]
    options = {"cell_clip": layer.cell_clip, "proj_clip": layer.proj_clip}
    if layer.op not in ONE_STEP:
        options["time_major"] = layer.time_major
    m.output(
        m.op(
            layer.op,
            slots,
            layer.shape(layer.outputs),
            quantization=h,
            intermediates=between[: changes.get("intermediates", 5)],
            fused_activation_function="TANH",
            **options,
        )
    )
    return m.build()


INTEGERS = {
    "plain": Layer(cell_clip=1.5),
    "time_major": Layer(time_major=True, cells=66, outputs=66, inputs=33),
    "projection": Layer(projection="bias", outputs=3, proj_clip=0.3),
    "projection without bias": Layer(projection="weights", outputs=9, cifg=True),
    "all": Layer(norm=True, peephole=True, cells=19, outputs=19, cell_clip=2.0),
    "one step": Layer(op="LSTM", batch=1, cells=32, outputs=32),
}


def random_integers(layer, rng, inferences):
    shape = layer.shape(layer.inputs)
    return [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(inferences)]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_equal_the_reference_kernel(name, device, rng):
    layer = INTEGERS[name]
    inputs = random_integers(layer, rng, INFERENCES)
    check_states(integer_model(layer, rng), inputs, None, device=device)


def test_a_hundred_inferences_of_integers(device, rng):
    layer = INTEGERS["one step"]
    inputs = random_integers(layer, rng, 100)
    check_states(integer_model(layer, rng), inputs, None, device=device)


def test_steps_of_integers_that_local_memory_cannot_hold(device, rng):
    layer = beyond_local_memory(device)
    inputs = random_integers(layer, rng, 2)
    check_states(integer_model(layer, rng), inputs, None, device=device)


@pytest.mark.parametrize(
    ("layer", "changes", "reason"),
    [
        (Layer(), {"cell_scale": 0.001}, "supported: 2^-15, 2^-14 .. 2^-9 and 0"),
        (Layer(), {"intermediates": 4}, "the number of intermediate tensors is 4; supported: 5"),
        (Layer(), {"scales": [(0.5, 0)] * 4 + [None]}, "intermediate tensor 4 has no scale"),
        (
            Layer(norm=True),
            {"scales": [(0.5, 0)] * 3 + [None, (0.5, 0)]},
            "an intermediate tensor has no scale",
        ),
        (Layer(), {"weights": np.int16}, "input 1 is int16; supported: int8"),
        (
            Layer(peephole=True, projection="weights", outputs=6),
            {},
            "input 16 is a projection of cells with peephole weights, which the reference kernel "
            "of integers reads beyond their end",
        ),
    ],
)
def test_refused_integers(layer, changes, reason, rng):
    check_refused(integer_model(layer, rng, **changes), reason)
