"""TensorFlow Lite's own tests of operations, through the delegate.

``python -m tests.op_zoo CHECKOUT [OUT]`` makes models and expected outputs from the generators of a
checkout of google-ai-edge/LiteRT (``tests/op_zoo/make.py``) and runs all;
``python -m tests.op_zoo run OUT`` runs those that are there. The table counts cases by operation;
OUT/results.jsonl has each with the nodes that stay on the CPU, and why. With ``--keep`` the table
is written to tests/op_zoo/results.md, too.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.campaign import children
from tests.op_zoo import make
from tests.op_zoo.run import AS_TENSORFLOW, RANDOM, RIGHT, STOCK_FAILS, WRONG, preferred_device

LIMIT_S = 120  # of a case
RESULTS = Path(__file__).with_name("results.md")
MODULE = "tests.op_zoo.run"


@dataclasses.dataclass
class Row:
    """Counts of one operation, or of all."""

    operation: str
    cases: int = 0  #: that TensorFlow computes
    converted: int = 0
    stock: int = 0  #: of these, stock's kernels run them, with one result
    claimed: int = 0  #: nodes on the device
    nodes: int = 0  #: of all cases that ran
    right: int = 0  #: as stock
    tensorflow: int = 0  #: not as stock, but as TensorFlow
    wrong: int = 0
    failed: int = 0  #: an error, or an end of the process

    def count(self, case: dict[str, Any]) -> None:
        """Count one line of results."""
        self.cases += 1
        self.converted += case["made"] == make.CONVERTED
        self.claimed += case.get("claimed", 0)
        self.nodes += case.get("total", 0)
        outcome = case["outcome"]
        if outcome in {"", STOCK_FAILS, RANDOM}:
            return
        self.stock += 1
        self.right += outcome == RIGHT
        self.tensorflow += outcome == AS_TENSORFLOW
        self.wrong += outcome == WRONG
        self.failed += outcome not in {RIGHT, AS_TENSORFLOW, WRONG}


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))


def results(
    out: Path, device: str, options: dict[str, Any], only: set[str]
) -> Iterator[dict[str, Any]]:
    """Run all cases of a folder, in child processes; yields each with its outcome."""
    asked: list[str] = []
    answers = children.answers(MODULE, iter(asked.pop, ""), LIMIT_S)

    def ask(case: dict[str, Any], ours: bool) -> tuple[str, dict[str, Any]]:
        path = out / case["operation"] / str(case["number"])
        item = {"case": str(path), "ours": ours, "device": device, "options": options}
        asked.append(json.dumps(item))
        _, outcome, text = next(answers)
        ended = outcome in {"died", "hung"}
        return outcome, ({"why": text} if ended else json.loads(text))

    with contextlib.closing(answers):
        for folder in sorted(path.parent for path in out.glob("*/cases.jsonl")):
            if only and folder.name not in only:
                continue
            for case in make.read_cases(folder):
                if case["outcome"] == make.REFUSED:
                    continue
                line = {**case, "made": case["outcome"], "outcome": ""}
                if case["outcome"] == make.CONVERTED:
                    outcome, found = ask(case, ours=False)
                    if outcome == RIGHT:
                        outcome, found = ask(case, ours=True)
                    else:
                        outcome = STOCK_FAILS  # the process may have ended
                    line.update(found, outcome=outcome)
                yield line


def markdown(rows: Iterable[Row]) -> str:
    """Return the table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- |" + " ---: |" * (len(COLUMNS) - 1)]
    for row in rows:
        cells = [f"{getattr(row, name):,}" for name in COLUMNS[1:]]
        lines.append(f"| {row.operation} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def counted(lines: Iterable[dict[str, Any]]) -> str:
    """Nodes on the CPU, by operation and reason, the most frequent first."""
    counts = collections.Counter(
        (node["op"], node["reason"].removeprefix(f"{node['op']} (node 0): "))
        for line in lines
        for node in line.get("refused", ())
    )
    heads = ["| nodes | operation | reason |", "| ---: | --- | --- |"]
    rows = [f"| {n} | {op} | {why} |" for (op, why), n in counts.most_common()]
    return "\n".join([*heads, *rows, ""])


def page(out: Path, device: str, rows: Iterable[Row], lines: list[dict[str, Any]]) -> str:
    """What `RESULTS` contains: how the cases were made and run, the table, nodes on the CPU."""
    facts = json.loads(make.facts_path(out).read_text(encoding="utf-8"))
    return (
        "# TensorFlow Lite's own operation tests\n\n"
        "Written by `python -m tests.op_zoo run OUT --keep`; docs/reliability.md tells what the "
        "columns mean.\n\n"
        f"At most {facts['cases']} cases of an operation, seed {facts['seed']}, TensorFlow "
        f"{facts['tensorflow']}; {device}, {datetime.date.today().isoformat()}.\n\n"
        f"{markdown(rows)}\n"
        f"## Nodes on the CPU\n\n{counted(lines)}"
    )


def run_all(
    out: Path, device: str, options: dict[str, Any], only: set[str], keep: bool = False
) -> int:
    """Run and print; returns 1 if a case is wrong or failed."""
    rows: dict[str, Row] = {}
    total = Row("all")
    lines = []
    with (out / "results.jsonl").open("w", encoding="utf-8") as file:
        for line in results(out, device, options, only):
            lines.append(line)
            file.write(json.dumps(line) + "\n")
            rows.setdefault(line["operation"], Row(line["operation"])).count(line)
            total.count(line)
            if line["outcome"] not in {"", RIGHT, STOCK_FAILS, RANDOM}:
                name = f"{out / line['operation']}/{line['number']}"
                print(f"{line['outcome']}: python -m {MODULE} {name}: {line['why']}", flush=True)
    print(markdown([*rows.values(), total]))
    others = [line for line in lines if line["outcome"] == RIGHT and line["kernels"] != "ref"]
    print(
        f"{len(others)} of these right as stock's default kernels compute, not the reference ones"
    )
    print("Nodes on the CPU:\n" + counted(lines), end="")
    if keep:
        RESULTS.write_text(page(out, device, [*rows.values(), total], lines), encoding="utf-8")
    return 1 if total.wrong or total.failed else 0


def make_all(checkout: Path, out: Path, python: str, more: list[str]) -> None:
    """Make the cases with a Python that has TensorFlow."""
    found = subprocess.run(
        [python, "-c", "import tensorflow"], check=False, capture_output=True, text=True
    )
    if found.returncode != 0:
        last = (found.stderr.strip().splitlines() or ["no message"])[-1]
        message = (
            f"{python} cannot import TensorFlow, which the generators need: {last}. "
            "Name a Python that can: --python /path/to/venv/bin/python "
            "(pip install tensorflow-cpu in a virtual environment of its own)"
        )
        raise SystemExit(message)
    # A generator that did not finish has a line of its own; what it made still runs.
    subprocess.run([python, str(Path(make.__file__)), str(checkout), str(out), *more], check=False)


def main() -> int:
    """Make, run, or both; returns 1 if a case is wrong or failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.op_zoo", description=__doc__)
    parser.add_argument(
        "checkout", metavar="CHECKOUT", help="of google-ai-edge/LiteRT, or the word run"
    )
    parser.add_argument("out", nargs="?", type=Path, help="folder of the models; a new one")
    parser.add_argument("--python", default=sys.executable, help="one that has TensorFlow")
    parser.add_argument("--device", default="", help="the first CPU by default")
    parser.add_argument(
        "--options", type=json.loads, default={}, metavar="JSON", help="of the delegate"
    )
    parser.add_argument("--keep", action="store_true", help=f"write the table to {RESULTS.name}")
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="generators to make, operations to run"
    )
    parser.add_argument("--cases", type=int, default=make.CASES, help=f"each; {make.CASES}")
    parser.add_argument("--seed", type=int, default=0, help="what draws them; 0")
    asked = parser.parse_args()
    only = {name for name in asked.only.split(",") if name}
    out = asked.out
    if asked.checkout == "run":
        if out is None or not any(out.glob("*/cases.jsonl")):
            parser.error(f"{out} has no cases; make them: python -m tests.op_zoo CHECKOUT OUT")
    else:
        checkout = Path(asked.checkout)
        if not (checkout / make.GENERATORS).is_dir():
            parser.error(f"{checkout} has no folder {make.GENERATORS}: no checkout of LiteRT")
        out = out or Path(tempfile.mkdtemp(prefix="op_zoo_"))
        print(f"models: {out}", flush=True)
        more = ["--cases", str(asked.cases), "--seed", str(asked.seed)]
        if only:
            more += ["--only", ",".join(sorted(only))]
        make_all(checkout, out, asked.python, more)
        only = set()  # of generators, which may have several operations
    return run_all(
        out.resolve(), asked.device or preferred_device(), asked.options, only, asked.keep
    )


if __name__ == "__main__":
    sys.exit(main())
