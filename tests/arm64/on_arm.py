"""Runs on the ARM system, without this package's tests: RUNTIME LIBRARY FOLDER.

Every model of the folder runs in the stock runtime alone and with the delegate of the library; the
folder gets the outputs of both. What is printed last is JSON: who runs the nodes of each model.
"""

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


def main():
    runtime, library, folder = sys.argv[1:]
    module = importlib.import_module(f"{runtime}.interpreter")
    facts = {"machine": platform.machine(), "operations": {}}
    for model in sorted(Path(folder).glob("*.tflite")):
        with np.load(model.with_suffix(".npz")) as file:
            inputs = list(file.values())
        want, _ = run(module, str(model), inputs)
        delegate = module.load_delegate(library, {"cache": "off"})
        got, operations = run(module, str(model), inputs, [delegate])
        np.savez(model.with_suffix(f".{runtime}.npz"), want=want[0], got=got[0])
        facts["operations"][model.stem] = [
            [op["op_name"], [int(i) for i in op["inputs"]], [int(i) for i in op["outputs"]]]
            for op in operations
        ]
    print(json.dumps(facts))


main()
