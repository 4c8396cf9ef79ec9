"""Run the notebook of the documentation and store it with its outputs.

The command is ``python tools/run_notebook.py``. It needs the extra ``docs``, a TensorFlow Lite
runtime and an OpenCL device. Outputs that name a folder of this machine, or that are large, are an
error, because the repository contains them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"
KEPT = ("text/plain", "text/html")  # formats of an output
MOST_BYTES = 20_000  # of an output
# Folders of a machine, times of day, and addresses of objects.
PRIVATE = re.compile(
    r"(?<![\w.:/<])/(?:home|root|tmp|work|usr|opt|var|Users|mnt)\b|[A-Z]:\\\\"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\bat 0x[0-9a-f]{6,}"
)


def run(folder: str) -> Any:
    """Return the notebook with new outputs; only the cache in this folder is used.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    import nbclient  # noqa: PLC0415  # of the extra
    import nbformat  # noqa: PLC0415

    os.environ["CLGPU_CACHE"] = str(Path(folder, "cache.sqlite"))
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}  # as Jupyter does
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    clean(notebook)
    return notebook


def clean(notebook: Any) -> None:
    """Remove times, counters of other runs, and formats of outputs that no page shows."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_log(output)]
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
            if "data" in output:
                output["data"] = {k: v for k, v in output["data"].items() if k in KEPT}
                output["metadata"] = {}


def _is_log(output: Any) -> bool:
    """Whether an output is a runtime's log, such as the name of a delegate, and not a warning."""
    if output.get("name") != "stderr":
        return False
    return all(line.startswith("INFO: ") for line in output["text"].splitlines())


def faults(notebook: Any) -> Iterator[str]:
    """Sentences about what a stored notebook must not contain, and what it lacks."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        if not cell["outputs"]:
            yield f"cell {number} has no output"
        if cell["metadata"]:
            yield f"cell {number} has metadata, such as times: {sorted(cell['metadata'])}"
        for output in cell["outputs"]:
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield f"cell {number} has an error or a warning"
            forms = {"text": output["text"]} if "text" in output else output.get("data", {})
            for form, lines in forms.items():
                text = "".join(lines)
                if found := PRIVATE.search(text):
                    yield f"cell {number} shows a path, a time or an address: {found[0]!r}"
                if form not in (*KEPT, "text"):
                    yield f"cell {number} has an output of type {form}"
                if len(text) > MOST_BYTES:
                    yield f"cell {number} has an output of {len(text)} bytes, most: {MOST_BYTES}"


def main() -> int:
    """Run the notebook and store it unless it has problems."""
    import nbformat  # noqa: PLC0415  # of the extra

    with tempfile.TemporaryDirectory() as folder:
        notebook = run(folder)
    if found := list(faults(notebook)):
        print(*found, "nothing was written", sep="\n", file=sys.stderr)
        return 1
    nbformat.write(notebook, NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
