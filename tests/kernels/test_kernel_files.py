"""Every kernel file is documented alike, demands its macros, and is used.

That each of them builds and computes what it says is shown by the tests of its family, which run
every candidate on every device.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from clgpu_delegate import _core

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
FILES = {str(path.relative_to(KERNELS)): path.read_text() for path in KERNELS.rglob("*.cl")}

HEADS = ["Shapes", "Launch", "Macros", "Numerics"]
ENTRY = re.compile(
    r"__kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?"
    r"(\w+)\s*\(",
    re.DOTALL,
)
CODE = {name: re.sub(r"//.*", "", text) for name, text in FILES.items()}
ENTRIES = {name: ENTRY.findall(code) for name, code in CODE.items()}
OWN = sorted(name for name, entries in ENTRIES.items() if entries)
PARTS = sorted(set(FILES) - set(OWN))  # only included by others
GUARD = re.compile(r'^#ifndef (\w+)\n#error "(.*)"\n#endif$', re.MULTILINE)
# A name, or several with commas, at the start of a line of the Macros head.
MACRO = re.compile(r"^((?:[A-Z][A-Z0-9_]*)(?:, ?[A-Z][A-Z0-9_]*)*)(?=\s|$)")


def head(text: str) -> list[str]:
    """The comment lines that open a file, without their slashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return lines


def section(text: str, name: str) -> list[str]:
    """The lines of one head, aligned as its first."""
    found: list[str] = []
    inside = False
    for line in head(text):
        first = line.split(" ")[0]
        if first in HEADS:
            inside = first == name
        if inside:
            found.append(line[10:])
    return found


def documented_macros(text: str) -> set[str]:
    names: set[str] = set()
    for line in section(text, "Macros"):
        match = MACRO.match(line)
        if match:
            names |= set(re.split(", ?", match[1]))
    return names


def included(name: str) -> set[str]:
    """A file and all that it includes."""
    names = {name}
    for inner in re.findall(r'#include "([^"]+)"', FILES[name]):
        names |= included(inner)
    return names


def guarded_macros(name: str) -> set[str]:
    return {macro for file in included(name) for macro, _ in GUARD.findall(FILES[file])}


@pytest.mark.parametrize("name", OWN)
def test_file_opens_with_its_formula_and_the_four_heads_in_order(name):
    lines = head(FILES[name])
    assert lines[0].startswith(f"{Path(name).name} - "), "the title is FILE - what it computes"
    found = [line.split(" ")[0] for line in lines if line.split(" ")[0] in HEADS]
    assert found == HEADS


@pytest.mark.parametrize("name", PARTS)
def test_part_opens_with_what_it_is(name):
    assert head(FILES[name])[0].startswith(f"{Path(name).name} - ")


@pytest.mark.parametrize("name", OWN)
def test_macros_that_are_demanded_are_those_that_are_documented(name):
    text = FILES[name]
    own = {macro for macro, _ in GUARD.findall(text)}
    documented = documented_macros(text)
    assert own <= documented, f"not in the Macros head: {own - documented}"
    # What is documented here may be demanded by a file of kernels/common that this one includes.
    assert documented <= guarded_macros(name), f"no #error for {documented - guarded_macros(name)}"


@pytest.mark.parametrize("name", sorted(FILES))
def test_missing_macro_is_a_sentence(name):
    for macro, sentence in GUARD.findall(FILES[name]):
        assert sentence.startswith(f"{macro} is required ("), sentence


@pytest.mark.parametrize("name", sorted(FILES))
def test_macros_are_valued_and_used_with_if(name):
    text = FILES[name]
    assert "#ifdef" not in text
    assert "defined(" not in text
    for macro in re.findall(r"^#ifndef (\w+)", text, re.MULTILINE):
        guards = {name for name, _ in GUARD.findall(text)}
        assert macro in guards or f"#define {macro}" in text, f"#ifndef {macro} without #error"


@pytest.mark.parametrize("name", OWN)
def test_entries_begin_with_the_family(name):
    family = name.split("/", maxsplit=1)[0]
    entries = ENTRIES[name]
    assert all(entry == family or entry.startswith(f"{family}_") for entry in entries), entries


def test_entries_are_unique_in_the_repository():
    counts = Counter(entry for entries in ENTRIES.values() for entry in entries)
    assert not [entry for entry, count in counts.items() if count > 1]


def rooms(name: str) -> list[Path]:
    """The sources that may launch the kernels of a file."""
    folder = "runtime" if name.startswith("device/") else "ops"
    return list((ROOT / "src_cpp" / folder).rglob("*.[ch]pp"))


@pytest.mark.parametrize("name", sorted(FILES))
def test_file_is_used(name):
    if name in PARTS:
        users = [other for other, text in FILES.items() if f'#include "{name}"' in text]
    else:
        users = [room for room in rooms(name) if f'"{name}"' in room.read_text()]
    assert users, f"nothing names {name}"


@pytest.mark.parametrize("name", OWN)
def test_every_entry_is_named_by_a_room(name):
    texts = "".join(room.read_text() for room in rooms(name))
    for entry in ENTRIES[name]:
        assert f'"{entry}"' in texts, f"no room launches {entry}"


@pytest.mark.parametrize("name", OWN)
def test_only_load_and_store_see_half(name):
    assert not re.search(r"\bv(load|store)_half", CODE[name]), (
        "LOAD and STORE of common/types.cl do that"
    )


@pytest.mark.parametrize("name", OWN)
def test_nothing_returns_above_a_barrier(name):
    for body in CODE[name].split("__kernel")[1:]:
        last = body.rfind("barrier(")
        assert "return;" not in body[: max(last, 0)], "items that return early miss the barrier"


# What depends on the work-group; macros of common/tile.cl and its like do so, too.
GROUP = re.compile(r"get_local_|get_group_id|get_num_groups|barrier\(|__local\b|\bTILE_|sub_group")


@pytest.mark.parametrize("name", OWN)
def test_kernels_that_ask_about_their_work_group_demand_its_size(name):
    # Others are launched with smaller work-groups where a device demands that.
    for body in CODE[name].split("__kernel")[1:]:
        if "reqd_work_group_size" not in body.split(")) void")[0]:
            assert not GROUP.search(body), body.splitlines()[0]


def test_embedded_files_are_those_of_the_folder():
    assert _core.kernel_sources() == FILES
