"""The nodes of an explanation as a table, and the reasons below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clgpu_delegate.base.rendering import Fitting, Table, Text, extents
from clgpu_delegate.report.parts import Node, Partition
from clgpu_delegate.report.planned import NodePlan

_HEADINGS = ("node", "op", "output", "runs on", "kernel")
_UNKNOWN = "?"
_OF_FLOATS = ("fp32", "tf32", "bf16_pairs")
_NARROW = {"float16": "half", "bfloat16": "bfloat16", "int8": "int8"}
_INDENT = 4


def node_table(nodes: Sequence[Node], partitions: Sequence[Partition], mixed: bool) -> Fitting:
    """A row per node; where a terminal is too narrow for that, two lines per node.

    With ``mixed``, each has its precision beside the kernel, and the type of its weights where
    these take less memory than the floats that it computes with.
    """
    unknown = set[int]()  # tensors
    table, narrow = Table(), list[Text]()
    for heading in _HEADINGS:
        table.add_column(heading, right=heading == "node")
    for node in nodes:
        open_ = _is_open(node, partitions) or not unknown.isdisjoint(node.input_ids)
        if open_:
            unknown.update(node.output_ids)
        cells = index, op, output, where, kernel = _cells(node, partitions, open_, mixed)
        style = "" if node.claimed else "yellow"
        table.add_row(*cells, style=style)
        narrow.append(Text(f"{index} {op} {output}", style))
        narrow.append(Text(", ".join(filter(None, (where, kernel))), style, indent=_INDENT))
    return Fitting(table, *narrow, Text())


def reasons(nodes: Sequence[Node]) -> Iterator[Text]:
    """Why nodes are on the CPU: each reason once, with its nodes."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        if not node.claimed:
            groups.setdefault((node.reason, node.hint), []).append(node)
    for (reason, hint), members in groups.items():
        ops = ", ".join(dict.fromkeys(node.op for node in members))
        which = _numbers([node.index for node in members])
        yield Text(f"{which} ({ops}) on the CPU: {reason}", "yellow")
        if hint:
            yield Text(f"hint: {hint}", "yellow", indent=_INDENT)


def plan_lines(nodes: Sequence[Node]) -> Iterator[Text]:
    """What a plan of precisions says of nodes: a line for those of which it says the same."""
    groups: dict[NodePlan, list[Node]] = {}
    for node in nodes:
        if node.plan is not None:
            groups.setdefault(node.plan, []).append(node)
    for plan, members in groups.items():
        ops = ", ".join(dict.fromkeys(node.op for node in members))
        yield Text(f"{_numbers([node.index for node in members])} ({ops}): {plan}")


def _cells(
    node: Node, partitions: Sequence[Partition], open_: bool, mixed: bool
) -> tuple[str, str, str, str, str]:
    where, kernel = "CPU", ""
    if node.claimed:
        where, kernel = "device", node.candidate or _short(node)
        if node.partition is not None:
            on_cpu = partitions[node.partition].on_cpu
            where = f"{'CPU' if on_cpu else 'device'} ({node.partition})"
            if partitions[node.partition].unplanned:
                kernel = _UNKNOWN
    if mixed and node.precision:
        kernel += f", {node.precision}"
        if node.weights_storage in _NARROW and node.precision in _OF_FLOATS:
            kernel += f", weights {_NARROW[node.weights_storage]}"
    if node.chosen == "tuned":
        kernel += " (tuned)"
    output = _UNKNOWN if open_ and node.outputs else _shapes(node.outputs)
    return str(node.index), node.op, output, where, kernel


def _is_open(node: Node, partitions: Sequence[Partition]) -> bool:
    """Whether only an inference knows the shapes of its outputs."""
    return node.partition is not None and bool(partitions[node.partition].unplanned)


def _short(node: Node) -> str:
    """How it runs without a kernel of its own."""
    if node.fused_into is not None:
        return f"in node {node.fused_into}"
    if node.is_view:
        return "view"
    return {"load": "constant", "planning": "planned"}.get(node.computed, "")


def _shapes(outputs: Sequence[Sequence[int]]) -> str:
    """The first item, and how many more there are."""
    more = f" and {len(outputs) - 1}" if len(outputs) > 1 else ""
    return extents(outputs[0]) + more if outputs else ""


def _numbers(indices: Sequence[int]) -> str:
    """Such as ``node 3`` or ``nodes 3, 7-9``."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in runs]
    return f"node{'s' * (len(indices) > 1)} {', '.join(texts)}"
