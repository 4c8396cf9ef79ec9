"""The reader of FlexBuffers, which custom operations and composites store their options in."""

from __future__ import annotations

import hypothesis
import pytest
from flatbuffers import flexbuffers
from hypothesis import strategies as st

from clgpu_delegate import _core

REFUSED = "the options are not a FlexBuffers map"
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e30, 1e30),  # the writer fails near the largest float32
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
)


def read(content: bytes) -> dict | str:
    return _core.flexbuffer_map(content)


@hypothesis.given(
    st.dictionaries(
        st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), VALUES, max_size=12
    )
)
def test_what_is_written_is_read(values):
    wanted = {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in values.items()
    }
    found = read(bytes(flexbuffers.Dumps(values)))
    assert found == wanted
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in wanted.items()
    }


@hypothesis.given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9))
def test_vectors_of_integers(values):
    assert read(bytes(flexbuffers.Dumps({"a": values}))) == {b"a": values}


@pytest.mark.parametrize("values", [[0.5, -2.0], [1, 0.25], [True, False, True]])
def test_vectors_of_other_numbers(values):
    assert read(bytes(flexbuffers.Dumps({"a": values}))) == {b"a": values}


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("numbers", [(7, -8, 9, 10), (0.5, 1.5, -2.5, 3.5)])
def test_tuples_and_typed_vectors(count, numbers):
    values = list(numbers[:count])
    for fixed in (False, True):
        builder = flexbuffers.Builder()
        with builder.Map():
            if fixed:
                builder.FixedTypedVectorFromElements("a", values)
            else:
                builder.TypedVectorFromElements("a", values)
        assert read(bytes(builder.Finish())) == {b"a": values}


def test_numbers_that_are_stored_elsewhere():
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.IndirectInt("a", -3)
        builder.IndirectFloat("b", 0.25)
        builder.IndirectUInt("c", 2**40)
        builder.UInt("d", 250)
    assert read(bytes(builder.Finish())) == {b"a": -3, b"b": 0.25, b"c": 2**40, b"d": 250}


def test_values_of_other_kinds_are_null():
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Blob("a", b"xyz")
        with builder.Map("b"):
            builder.Int("c", 1)
        with builder.Vector("d"):
            builder.String("text")
        builder.Int("e", 5)
    wanted = {b"a": None, b"b": None, b"d": None, b"e": 5}
    assert read(bytes(builder.Finish())) == wanted


@pytest.mark.parametrize("values", [7, [1, 2], "text", None])
def test_what_is_no_map_is_refused(values):
    assert read(bytes(flexbuffers.Dumps(values))) == REFUSED


def whole() -> bytes:
    """A map with a value of each kind."""
    names = {"a": 1, "bb": -70000, "c": 0.5, "d": True, "e": "text", "f": [1, 2, 3], "g": [1.5, 2]}
    return bytes(flexbuffers.Dumps(names))


def test_cut_bytes_are_refused_or_another_map():
    content = whole()
    assert read(b"") == REFUSED
    for size in range(len(content)):
        assert isinstance(read(content[:size]), (dict, str))
        assert isinstance(read(content[size:]), (dict, str))


def test_changed_bytes_do_no_harm():
    """Each byte in turn; with sanitizers this finds reads outside of the bytes."""
    content = whole()
    refused = 0
    for at in range(len(content)):
        for value in (0, 1, 2, 3, 0x7F, 0x80, 0xFF, content[at] ^ 4, content[at] ^ 64):
            found = read(content[:at] + bytes([value]) + content[at + 1 :])
            assert isinstance(found, dict) or found == REFUSED
            refused += isinstance(found, str)
    assert refused > 100


@hypothesis.given(st.binary(max_size=64))
def test_any_bytes_do_no_harm(content):
    assert isinstance(read(content), (dict, str))


def test_a_huge_count_is_refused():
    # The count of the map's values, in front of them, as eight bytes of ones.
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("a", 2**40)
    content = bytearray(builder.Finish())
    at = content.index((2**40).to_bytes(8, "little"))
    content[at - 8 : at] = b"\xff" * 8
    assert read(bytes(content)) == REFUSED


def test_vectors_within_a_vector_are_bounded():
    # Offsets lead back only, and vectors of vectors are not followed: no endless loop.
    assert read(bytes([0, 0, 1, 0, 0, 40, 36, 1])) in (REFUSED, {})
