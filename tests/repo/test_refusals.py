"""Each refusal that the sources can give is expected by a test.

A refusal is a place in the sources with a code of `Why`, or with a helper that returns one. The
core makes its sentence, with a mark for each part that is inserted at run time. A test expects it
if one of its texts (of the family's own tests, for a refusal in a family's source) has all words of
that sentence in their order, up to the supported values, or is most of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clgpu_delegate import _core

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src_cpp"
TESTS = ROOT / "tests"
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
MARK = "\0"  # a part that is inserted at run time
MOST = 0.4  # share of a sentence's words that identifies it

# Calls that give a refusal: its code, the position of the argument that names the refused thing,
# and its value. Only the name differs between their sentences.
HELPERS = {
    "CLGPU_REFUSE_TYPE": ("type", 1, MARK),
    "check_type": ("type", 1, MARK),
    "CLGPU_REFUSE_RANK": ("rank", 1, MARK),
    "check_rank": ("rank", 1, MARK),
    "wrong_value": ("parameter", 0, MARK),
    "wrong_scale": ("quantization", 1, f"the scale {MARK} and the zero point {MARK}"),
}
STARTS = re.compile(r"\bWhy::k(\w+)|\b(" + "|".join(HELPERS) + r")\(")

# Refusals that no test can cause, with the reason: parts of sites in the form of `Site`.
UNSEEN = {
    "claim/inline.cpp: left on the CPU by the option ''": "it is a comparison",
    "claim/model.cpp: left on the CPU by the option ''": "it is a comparison",
    "quantize_rows.cpp: no operation is imported": "it has no operation, so nobody asks it",
    "expert_matmul.cpp: no operation is imported": "it has no operation, so nobody asks it",
    "the node has no parameters": "runtimes hand over parameters, of zeros where the file has none",
    "ops/families/pool.cpp: the padding is": "runtimes read any other padding as none",
    "the number of new axes is": "runtimes refuse as many",
    "the number of axes to drop is": "runtimes refuse as many",
    "is a constant without data": "to runtimes it is an intermediate tensor",
    "has ... zero points": "runtimes refuse such scales",
    "has ... scales along axis": "runtimes refuse such scales",
    "ops/families/where.cpp: the number of elements that are not 0 is": "such nodes are measured",
    "ops/families/unique.cpp: the number of different elements is": "such nodes are measured",
    "ops/families/segment.cpp: the number of segments is computed": "it is measured or awaited",
    "ops/shared/common.cpp: the fused activation is": "runtimes read other activations as none",
}


class Site(NamedTuple):
    """A refusal in the sources."""

    path: str  # below src_cpp
    line: int
    code: str
    sentence: str  # without what is supported

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence.replace(MARK, '...')}"

    @property
    def parts(self) -> list[str]:
        """Parts of its sentence between those that are inserted at run time."""
        return [part for part in self.sentence.split(MARK) if part.strip()]


def expression(text: str, start: int) -> str:
    """The text from there to the end of its bracket or statement."""
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


def shown(code: str) -> str:
    """The text of an expression, with marks for the parts that it does not contain literally."""
    text, depth, at = "", 0, 0
    while at < len(code):
        literal = LITERAL.match(code, at)
        if literal and depth == 0:
            text += literal[1]
        elif not literal:
            depth += (code[at] in "([{") - (code[at] in ")]}")
            if code[at] not in "+ \n{}" and not text.endswith(MARK):
                text += MARK
        at = literal.end() if literal else at + 1
    return text


def code_of(enumerator: str) -> str:
    """``run_time`` of ``RunTime``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enumerator).lower()


def sites_of(path: Path) -> Iterator[Site]:
    """All refusals of a source file."""
    name = path.relative_to(SOURCES).as_posix()
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*", "", text)
    for match in STARTS.finditer(text):
        given = arguments(expression(text, match.end()))
        if match[1]:
            code, fields = code_of(match[1]), [shown(part) for part in given[1:]]
            what, detail, has = (*fields, "", "", "")[:3]
        else:
            code, position, has = HELPERS[match[2]]
            if len(given) <= position or "std::string&" in given[position]:
                continue  # it is declared here
            what, detail = shown(given[position]), ""
        sentence = _core.refusal_sentence(code, what, detail, has, [MARK]).split("; supported")[0]
        if any(re.search(r"\w{2}", part) for part in (what, detail, has)) or not match[2]:
            yield Site(name, text.count("\n", 0, match.start()) + 1, code, sentence)


def all_sites() -> list[Site]:
    """All refusals of the sources."""
    files = [
        p for p in SOURCES.rglob("*.[ch]pp") if p.stem != "refusal" and p.parent.name != "python"
    ]
    return [site for path in sorted(files) for site in sites_of(path)]


def texts_of(path: Path) -> list[str]:
    """All texts of a test, f-strings with marks for what they insert."""
    found, left = [], [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else MARK for part in node.values]
            found.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        else:
            left.extend(ast.iter_child_nodes(node))
    return found


def is_part(text: str, site: Site) -> bool:
    """Whether a text names the refusal."""
    at = 0
    for part in site.parts:
        at = text.find(part.strip(), at)
        if at < 0:
            break
    else:
        return True
    whole = sum(len(part) for part in site.parts)
    return len(text) >= MOST * whole and any(text in part for part in site.parts)


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
            unseen.append(f"src_cpp/{site.path}:{site.line}: {site.code}: {site}")
    assert not unseen, "no test expects these refusals:\n" + "\n".join(unseen)


def test_the_reader_finds_refusals():
    sites = all_sites()
    found = {str(site) for site in sites}
    assert len(found) > 150
    assert "ops/families/local_response_normalization.cpp: the radius is negative" in found
    assert "ops/families/split.cpp: the tensor of sizes is computed at run time" in found
    assert "ops/families/softmax.cpp: input has rank ..." in found
    assert "delegate/claim/model.cpp: left on the CPU by the option 'exclude'" in found
    assert {site.code for site in sites} == set(_core.refusal_codes())
    for part in UNSEEN:
        assert any(part in site for site in found), f"no refusal has {part!r} any more"


def test_a_sentence_of_another_family_is_not_enough():
    site = Site(
        "ops/families/softmax.cpp", 1, "parameter", f"the axis is {MARK} of {MARK}, which is odd"
    )
    assert is_part("softmax: the axis is 5 of 3, which is odd", site)
    assert is_part("which is odd", site)
    assert not is_part("the axis is 5", site)
    assert not is_part("is odd", site)
