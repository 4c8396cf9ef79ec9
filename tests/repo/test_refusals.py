"""Each refusal that the sources can give is expected by a test.

A refusal is known by its sentence: by the parts of it that stand in the source as text. A test
expects it when a text of the test (of the family's own tests, for a refusal in the room of a
family) is a part of it or contains a part of it. So two sentences of one family should differ.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src_cpp"
TESTS = ROOT / "tests"

SHORTEST = 8  # characters of what tells one sentence from another
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Where sentences of refusals stand. The first group of each is followed by an expression.
STARTS = re.compile(r"CLGPU_REFUSE_IF\(|CLGPU_REFUSE_TYPE\(|check_type\(|\bRefusal\{")
# In these files refusals are strings that are returned, or assigned.
PLAIN = ("delegate/model.cpp", "tfl/quantization.cpp")
PLAIN_STARTS = re.compile(r"\breturn (?=what|\"|type_name)|\breason = (?=.)|\bkNotCore = ")

# What no test can see, with the reason: parts of sites as `Site` writes them.
PARAMETERS = "runtimes hand over parameters, of zeros where the file has none"
UNSEEN = {
    "ops/quantize_rows.cpp: no operation is imported": "it has no operation, so nobody asks it",
    "the node has no parameters": PARAMETERS,
    "it has no parameters": PARAMETERS,
    "there are no parameters": PARAMETERS,
    "there are no masks": PARAMETERS,
    "there is no axis": PARAMETERS,
    "there is no new shape": PARAMETERS,
    "ops/pool.cpp: its padding is unknown": "runtimes read any other padding as none",
    "the new shape has ... axes": "runtimes refuse as many",
    "there are ... axes to drop": "runtimes refuse as many",
    "tfl/quantization.cpp: has ... scales": "runtimes refuse such scales",
    "tfl/quantization.cpp: has scales along axis": "runtimes refuse such scales",
}


class Site(NamedTuple):
    """A refusal in the sources."""

    path: str  # below src_cpp
    line: int
    parts: tuple[str, ...]  # of its sentence

    def __str__(self) -> str:
        return f"{self.path}: {' ... '.join(part.strip() for part in self.parts)}"


def expression(text: str, start: int) -> str:
    """From there to where its bracket or its statement ends."""
    depth, at = 0, start
    while at < len(text):
        literal = LITERAL.match(text, at)
        if literal:
            at = literal.end()
            continue
        if text[at] in "([{":
            depth += 1
        if text[at] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and text[at] == ";"):
            break
        at += 1
    return text[start:at]


def arguments(text: str) -> list[str]:
    """Split at the commas outside of brackets and texts."""
    parts, depth, at, begin = [], 0, 0, 0
    while at < len(text):
        literal = LITERAL.match(text, at)
        if literal:
            at = literal.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if text[at] == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
    return [*parts, text[begin:]]


def literals(code: str) -> tuple[str, ...]:
    """The texts of an expression; those that follow each other are one."""
    joined = re.sub(r'"\s*\n\s*"', "", code)
    return tuple(part for part in LITERAL.findall(joined) if part.strip(" :;,."))


def sites_of(path: Path) -> Iterator[Site]:
    """All refusals of a source file."""
    name = path.relative_to(SOURCES).as_posix()
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*", "", text)
    starts = PLAIN_STARTS if name in PLAIN else STARTS
    for match in starts.finditer(text):
        code = expression(text, match.end())
        line = text.count("\n", 0, match.start()) + 1
        if match[0].startswith("CLGPU_REFUSE_IF"):
            parts = literals(",".join(arguments(code)[1:]))
        elif match[0].startswith(("CLGPU_REFUSE_TYPE", "check_type")):
            what = literals(arguments(code)[1]) if len(arguments(code)) > 2 else ()
            parts = tuple(f"{part.rstrip()} is " if part[-1] != " " else part for part in what)
        else:
            parts = literals(code)
        if parts:
            yield Site(name, line, parts)


def all_sites() -> list[Site]:
    """All refusals of the sources."""
    files = [*(SOURCES / "ops").rglob("*.[ch]pp"), *(SOURCES / name for name in PLAIN)]
    return [site for path in sorted(files) for site in sites_of(path)]


def texts_of(path: Path) -> list[str]:
    """All texts of a test, f-strings without what they insert."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def is_part(text: str, site: Site) -> bool:
    """Whether a text names the refusal."""
    for part in site.parts:
        short = part.strip()
        if (len(short) >= SHORTEST or len(site.parts) == 1) and short in text:
            return True
        if len(text) >= SHORTEST and text in part:
            return True
    # All of them, where each is short: "input 0 is".
    at = 0
    for part in site.parts:
        at = text.find(part.strip(), at)
        if at < 0:
            return False
    return True


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """The texts of all tests, by the names of their files."""
    found: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            found.setdefault(path.stem, []).extend(texts_of(path))
    return found


def test_each_refusal_is_expected_by_a_test(texts):
    unseen = []
    for site in all_sites():
        stem = Path(site.path).stem
        own = texts.get(f"test_{stem}") if site.path.startswith("ops/") else None
        candidates = own if own is not None else [t for of in texts.values() for t in of]
        # tests/delegate/test_refusals.py has those of all families, named.
        candidates = candidates + [t for t in texts["test_refusals"] if t.startswith(f"{stem}: ")]
        unseeable = any(part in str(site) for part in UNSEEN)
        if not unseeable and not any(is_part(text, site) for text in candidates):
            unseen.append(f"src_cpp/{site.path}:{site.line}: {' ... '.join(site.parts)}")
    assert not unseen, "no test expects these refusals:\n" + "\n".join(unseen)


def test_the_reader_finds_refusals():
    found = {str(site) for site in all_sites()}
    assert len(found) > 100
    assert "ops/softmax.cpp: a scalar has no axis to normalise over" in found
    for part in UNSEEN:
        assert any(part in site for site in found), f"no refusal has {part!r} any more"


def test_a_sentence_of_another_family_is_not_enough():
    site = Site("ops/softmax.cpp", 1, ("a scalar has no axis",))
    assert is_part("a scalar has no axis to normalise over", site)
    assert not is_part("a scalar has no channels", site)
