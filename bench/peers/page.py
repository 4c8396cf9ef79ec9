"""One page of HTML with the environment, the tables and the charts of `bench peers`."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from bench.peers import charts, report
from bench.peers.session import Row
from bench.report import TextTable

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: right; }
th.text, td.text { text-align: left; }
td:not(.text) { white-space: nowrap; }
tr.red td { color: #b00020; }
svg { max-width: 100%; height: auto; }
"""

MEANINGS = (
    ("median ms, p10-p90", "from array to array, one inference at a time"),
    ("no copies ms", "many inferences in flight, nothing copied, where the peer tells"),
    ("images/s", "as many inferences in flight as the peer allows, with copies"),
    ("ours / theirs", "in the same round; the median of the rounds: above 1 the peer is faster"),
    ("load ms", "until the model is ready"),
    ("first ms, cold ms", "from the start of the process to the first result: second and first"
     " start, the first one with empty caches"),
    ("host MB", "peak of the process's memory"),
    ("error", "relative L2 error against the runtime's reference kernels"),
)  # fmt: skip
"""Columns, and what they are."""


def render(rows: Sequence[Row], environment: Mapping[str, str]) -> str:
    """The page.

    Parameters
    ----------
    rows
        Of all works, those of a work in a row.
    environment
        Names and facts, for the head of the page.
    """
    facts = "".join(f"<li>{html.escape(k)}: {html.escape(v)}</li>" for k, v in environment.items())
    meanings = "".join(f"<li><b>{name}</b>: {text}</li>" for name, text in MEANINGS)
    parts = [table_of(report.losses(rows))]
    for of in report.by_work(rows).values():
        parts += [table_of(report.of_work(of)), charts.draw(of)]
    parts += [table_of(report.left_out(rows)), table_of(report.not_installed(rows))]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Peers</title>'
        f"<style>{_STYLE}</style></head><body><h1>Peers</h1><ul>{facts}</ul>"
        f"{''.join(parts)}<h2>Columns</h2><ul>{meanings}</ul></body></html>\n"
    )


def table_of(table: TextTable) -> str:
    """A table in HTML with its title; empty without rows."""
    if not table.rows:
        return ""
    classes = [' class="text"' if column.is_text else "" for column in table.columns]
    head = "".join(
        f"<th{kind}>{html.escape(column.heading)}</th>"
        for kind, column in zip(classes, table.columns)
    )
    body = "".join(
        f'<tr class="{style}">'
        + "".join(f"<td{kind}>{html.escape(cell)}</td>" for kind, cell in zip(classes, cells))
        + "</tr>"
        for cells, style in zip(table.rows, table.styles)
    )
    return f"<h2>{html.escape(table.title)}</h2><table><tr>{head}</tr>{body}</table>"
