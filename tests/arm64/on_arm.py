"""Runs on the ARM system, without this package's tests: RUNTIME LIBRARY FOLDER.

Every model of the folder runs in the stock runtime alone and with the delegate of the library,
or of the package ("package"); the folder gets the outputs of both. It prints JSON: the operations
in the interpreter afterwards, and the delegate's explanation.
"""

import ctypes
import importlib
import json
import platform
import sys
from pathlib import Path

import numpy as np


def run(module, model, inputs, delegates=()):
    """Outputs of a run, and the operations that are then in the interpreter."""
    interpreter = module.Interpreter(model_path=model, experimental_delegates=list(delegates))
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return outputs, interpreter._get_ops_details()


def make_delegate(module, library):
    if library != "package":
        return module.load_delegate(library, {"cache": "off"})
    import clgpu_delegate  # noqa: PLC0415

    return clgpu_delegate.load(cache="off")


def explain(delegate, library):
    """The delegate's explanation of the nodes, from the package or the C functions."""
    if library == "package":
        return [[node.op, node.claimed] for node in delegate.explain().nodes]
    functions = ctypes.CDLL(library)
    functions.clgpu_delegate_explain_json.restype = ctypes.c_void_p
    pointer = ctypes.c_void_p(delegate._get_native_delegate_pointer())
    text = functions.clgpu_delegate_explain_json(pointer, None)
    answer = json.loads(ctypes.string_at(text))
    functions.clgpu_delegate_free(ctypes.c_void_p(text))
    return [[node["op"], node["claimed"]] for node in answer["nodes"]]


def main():
    runtime, library, folder = sys.argv[1:]
    module = importlib.import_module(f"{runtime}.interpreter")
    facts = {"machine": platform.machine(), "operations": {}, "explained": {}}
    for model in sorted(Path(folder).glob("*.tflite")):
        with np.load(model.with_suffix(".npz")) as file:
            inputs = list(file.values())
        want, _ = run(module, str(model), inputs)
        delegate = make_delegate(module, library)
        got, operations = run(module, str(model), inputs, [delegate])
        facts["explained"][model.stem] = explain(delegate, library)
        np.savez(model.with_suffix(f".{runtime}.npz"), want=want[0], got=got[0])
        facts["operations"][model.stem] = [
            [op["op_name"], [int(i) for i in op["inputs"]], [int(i) for i in op["outputs"]]]
            for op in operations
        ]
    print(json.dumps(facts))


main()
