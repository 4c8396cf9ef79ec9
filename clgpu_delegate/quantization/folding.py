"""Constant folding.

Weights often come through nodes: DEQUANTIZE of float16, TRANSPOSE, DENSIFY.
"""

from __future__ import annotations

from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.tflite.graph import ABSENT, Model
from clgpu_delegate.tflite.runs import Run

_FOLDED = frozenset(
    ("CAST", "CONCATENATION", "DENSIFY", "DEQUANTIZE", "EXPAND_DIMS", "FILL", "PACK", "RESHAPE",
     "SLICE", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE")
)  # fmt: skip


def fold(model: Model, run: Run) -> None:
    """Replace nodes of the main graph whose inputs are constants by their results.

    Parameters
    ----------
    model
        Changed in place; indices of tensors stay.
    run
        Of the same model: the runtime itself computes the constants.
    """
    graph = model.main
    constant = {i for i, t in enumerate(graph.tensors) if model.is_constant(t)}
    folded = []
    for op in graph.operators:
        inputs = [t for t in op.inputs if t != ABSENT]
        if op.name in _FOLDED and not op.custom and inputs and constant.issuperset(inputs):
            folded.append(op)
            constant.update(op.outputs)
    if folded:
        run.invoke(run.default_inputs())
        for op in folded:
            for index in op.outputs:
                values = run.value(index)
                assert values is not None
                tensor = graph.tensors[index]
                tensor.buffer = model.add_buffer(values.copy())
                tensor.shape, tensor.signature = values.shape, None
        graph.operators = [op for op in graph.operators if not any(op is f for f in folded)]
    _refuse_sparse(model)


def _refuse_sparse(model: Model) -> None:
    for graph in model.subgraphs:
        read = {t for op in graph.operators for t in op.inputs if t != ABSENT}
        for index in sorted(read):
            if graph.tensors[index].is_sparse:
                name = graph.tensors[index].name
                raise QuantizationError(f"tensor {name!r} is sparse and no DENSIFY unpacks it")
