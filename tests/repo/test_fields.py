"""Structs of attributes name all their members, because the IR's text lacks unnamed ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

OPS = Path(__file__).resolve().parents[2] / "src_cpp" / "ops"


class Struct(NamedTuple):
    """The relevant parts of a C++ struct."""

    base: str
    members: list[str]
    named: list[str] | None  # by CLGPU_FIELDS


def without_blocks(body: str) -> str:
    """A struct's body without what braces hold: enumerations, functions, initial values."""
    while (shorter := re.sub(r"\{[^{}]*\}", ";", body)) != body:
        body = shorter
    return body


def members(body: str) -> list[str]:
    """Names of the data members of a struct, in order."""
    names = []
    for statement in without_blocks(body).split(";"):
        words = re.sub(r"=[^,]*|<[^<>]*>", "", statement).strip()  # without initial values
        if "(" in statement or words.startswith(("enum", "using", "static")):
            continue
        first, *others = words.split(",")
        if " " in first:
            names += [first.split()[-1], *(other.strip() for other in others)]
    return names


def structs(text: str) -> dict[str, Struct]:
    """The structs of a file's text, by name."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for match in re.finditer(r"^struct (\w+)(?: : ([\w:]+))? \{(.*?)^\};", text, re.M | re.S):
        name, base, body = match.groups()
        listed = re.search(r"CLGPU_FIELDS\(([^)]*)\)", body)
        named = [n.strip() for n in listed[1].split(",")] if listed else None
        body = re.sub(r"CLGPU_FIELDS\([^)]*\)", "", body)
        found[name] = Struct(base or "", members(body), named)
    return found


def all_structs() -> dict[str, Struct]:
    found: dict[str, Struct] = {}
    for file in sorted([*OPS.rglob("*.hpp"), *OPS.rglob("*.cpp")]):
        found.update(structs(file.read_text()))
    return found


STRUCTS = all_structs()


def members_with_base(name: str) -> list[str]:
    struct = STRUCTS[name]
    return (members_with_base(struct.base) if struct.base in STRUCTS else []) + struct.members


@pytest.mark.parametrize("name", sorted(name for name, s in STRUCTS.items() if s.named is not None))
def test_all_members_are_named(name):
    assert STRUCTS[name].named == members_with_base(name)


def test_all_attributes_name_their_members():
    bases = {s.base for s in STRUCTS.values()}
    attributes = {name for name, s in STRUCTS.items() if s.base.endswith("Attrs")} - bases
    assert len(attributes) > 30
    without = sorted(name for name in attributes if STRUCTS[name].named is None)
    assert not without, f"CLGPU_FIELDS is missing in {without}"


def test_every_struct_of_attributes_is_that_of_a_family():
    told = set()
    for file in OPS.rglob("*.cpp"):
        told |= set(re.findall(r"attrs = ir::attrs_type<(\w+)>", file.read_text()))
    bases = {s.base for s in STRUCTS.values()}
    attributes = {name for name, s in STRUCTS.items() if s.base.endswith("Attrs")} - bases
    assert told == attributes


def test_a_forgotten_member_is_found():
    text = """
struct ToyAttrs : ir::Attrs {
  enum class Mode { kOne, kTwo };
  int a = 0, b = 1;  ///< c, d
  std::optional<Mode> mode;
  std::vector<int> list{1, 2};
  int sum() const { return a + b; }
  CLGPU_FIELDS(a, mode)
};
"""
    (toy,) = structs(text).values()
    assert toy == ("ir::Attrs", ["a", "b", "mode", "list"], ["a", "mode"])
