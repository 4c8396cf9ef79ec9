"""The table of docs/reliability.md matches the stored rows."""

from __future__ import annotations

from tests.campaign import table
from tests.campaign.__main__ import PARTS


def test_page_has_the_rows_that_are_kept():
    rows = [row for part in PARTS for row in table.kept(part)]
    assert rows
    assert table.PAGE.read_text(encoding="utf-8") == table.page_with(rows), (
        "run: python -m tests.campaign --write"
    )


def test_row_is_clean_only_without_what_should_not_be():
    row = table.Row("x")
    row.count("right")
    row.count("told")
    assert row.is_clean()
    for name in table.COLUMNS[3:]:
        bad = table.Row("x", tried=1, right=1)
        if name in ("leaked", "dead"):
            setattr(bad, name, 1)
        else:
            bad.count(name)
        assert not bad.is_clean(), name


def test_rows_of_several_runs_are_added():
    runs = [
        [table.Row("a", tried=2, right=1, told=1), table.Row("b", tried=1, died=1)],
        [table.Row("a", tried=3, right=3), table.Row("b", tried=1, right=1)],
    ]
    assert table.added(runs) == [
        table.Row("a", tried=5, right=4, told=1),
        table.Row("b", tried=2, right=1, died=1),
    ]
