"""Every kernel file is used and has the same form of documentation; its head lists its macros.

The tests of a family check that its kernels build and compute the right results: they run every
candidate on every device.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.plans import profile
from clgpu_delegate import _core
from clgpu_delegate.errors import ClgpuError

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
# Capitalised names that are not our macros: those of OpenCL C.
OPENCL = {
    "CLK_ADDRESS_NONE", "CLK_FILTER_NEAREST", "CLK_GLOBAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE",
    "CLK_NORMALIZED_COORDS_FALSE", "FLT_MAX", "INFINITY", "INT_MAX", "INT_MIN",
    "LONG_MAX", "LONG_MIN",
}  # fmt: skip
CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]*\b")
# Prefixes of concatenated names: before ##, or CLGPU_CAT's first argument.
PART = re.compile(r"\b([A-Z][A-Z0-9_]*)\s*##|CLGPU_CAT\(([A-Z][A-Z0-9_]*),")


def head(text: str) -> list[str]:
    """The comment lines that open a file, without their slashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return lines


def demanded(name: str) -> list[dict[str, str]]:
    return _core.demanded_macros(name)


def included(name: str) -> set[str]:
    """A file and all that it includes."""
    names = {name}
    for inner in re.findall(r'#include "([^"]+)"', FILES[name]):
        names |= included(inner)
    return names


def undefined(name: str) -> tuple[set[str], set[str]]:
    """The macros that a file and its includes use but never define; and all that they use."""
    code = re.sub(r"//.*|/\*.*?\*/", "", _core.assembled_source(name))
    code = re.sub(r'"[^"]*"|^#(line|error|pragma OPENCL).*', "", code, flags=re.MULTILINE)
    defined = set(re.findall(r"^#define (\w+)", code, re.MULTILINE))
    for parameters in re.findall(r"^#define \w+\((.*?)\)", code, re.MULTILINE):
        defined |= set(parameters.replace(" ", "").split(","))
    glued = {part for match in PART.findall(code) for part in match if part}
    parts = {part for part in glued if any(d != part and d.startswith(part) for d in defined)}
    used = set(CAPITALS.findall(code))
    return used - defined - parts - OPENCL, used


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
def test_head_lists_the_macros_that_the_text_uses(name):
    listed = {macro["name"] for macro in demanded(name)}
    missing, used = undefined(name)
    assert not missing - listed, "the Macros head lacks them"
    assert not listed - used, "nothing uses them"


@pytest.mark.parametrize("name", sorted(FILES))
def test_head_says_what_each_macro_may_be(name):
    for macro in demanded(name):
        assert re.search(r"[|\d]|see |power|multiple|literal|as in|^char ", macro["text"]), macro


@pytest.mark.parametrize("name", sorted(FILES))
def test_macros_are_valued_and_used_with_if(name):
    text = FILES[name]
    for condition in ("#ifdef", "#ifndef", "defined("):
        assert condition not in text, (
            f"{condition}: the head lists the macro, which is always given"
        )


def test_missing_macro_is_named_with_its_file_and_its_values():
    given = "-cl-std=CL1.2 -DSRC_T=float -DDST_T=half"
    with pytest.raises(ClgpuError, match="lacks the macro AXES") as error:
        _core.check_macros("strided_copy/strided_copy.cl", given)
    assert "kernels/strided_copy/strided_copy.cl" in str(error.value)
    assert "2|4|6" in str(error.value)
    _core.check_macros("strided_copy/strided_copy.cl", given + " -DAXES=2")


def test_macro_with_a_condition_is_demanded_only_then():
    demands = demanded("conv2d/direct.cl")
    (dot8,) = [macro for macro in demands if macro["name"] == "DOT8"]
    assert (dot8["condition"], dot8["value"]) == ("WORDS", "")
    others = " ".join(f"-D{m['name']}=1" for m in demands if not m["condition"])
    without = others.replace("-DWORDS=1", "-DWORDS=0")
    _core.check_macros("conv2d/direct.cl", without)
    with pytest.raises(ClgpuError, match="A_SUMS"):
        _core.check_macros("conv2d/direct.cl", others)
    _core.check_macros("conv2d/direct.cl", f"{others} -DA_SUMS=0 -DDOT8=0")


def test_text_that_replaces_a_file_demands_nothing():
    part, file = "common/axes.cl", "strided_copy/strided_copy.cl"
    assert "AXES" in {macro["name"] for macro in demanded(part)}
    try:
        _core.override_kernel_source(part, FILES[part])
        assert not demanded(part)
        assert demanded(file)
        _core.override_kernel_source(file, _core.assembled_source(file))
        assert not demanded(file)
        _core.check_macros(file, "")
    finally:
        _core.override_kernel_source(part, None)
        _core.override_kernel_source(file, None)
    assert "AXES" in {macro["name"] for macro in demanded(part)}


def test_launches_of_plans_give_what_heads_demand():
    files = {entry: name for name, entries in ENTRIES.items() for entry in entries}
    launches = {
        launch for path in profile.FOLDER.glob("*.json") for launch in profile.load(path).kernels
    }
    assert len(launches) > 500
    for entry, options in launches:
        _core.check_macros(files[entry], options)


@pytest.mark.parametrize("name", OWN)
def test_entries_begin_with_the_family(name):
    family = name.split("/", maxsplit=1)[0]
    entries = ENTRIES[name]
    assert all(entry == family or entry.startswith(f"{family}_") for entry in entries), entries


def test_entries_are_unique_in_the_repository():
    counts = Counter(entry for entries in ENTRIES.values() for entry in entries)
    assert not [entry for entry, count in counts.items() if count > 1]


# Files that a source puts in front of others, instead of an #include.
ASSEMBLED = {
    "common/chain_stage.cl": ROOT / "src_cpp" / "kernel" / "bodies.cpp",
    "common/more_types.cl": ROOT / "src_cpp" / "kernel" / "sources.cpp",
    "common/predicate.cl": ROOT / "src_cpp" / "kernel" / "sources.cpp",
    "common/stored_types.cl": ROOT / "src_cpp" / "kernel" / "sources.cpp",
}
LAUNCHERS = {
    "device": "runtime",
    "pixels": "runtime",
    "predicate": "plan",
}  # of kernels that are not a family's


def launchers(name: str) -> list[Path]:
    """The sources that may launch the kernels of a file."""
    folder = LAUNCHERS.get(name.split("/", maxsplit=1)[0], "ops")
    return list((ROOT / "src_cpp" / folder).rglob("*.[ch]pp"))


@pytest.mark.parametrize("name", sorted(FILES))
def test_file_is_used(name):
    if name in ASSEMBLED:
        users = [path for path in [ASSEMBLED[name]] if f'"{name}"' in path.read_text()]
    elif name in PARTS:
        users = [other for other, text in FILES.items() if f'#include "{name}"' in text]
    else:
        users = [source for source in launchers(name) if f'"{name}"' in source.read_text()]
    assert users, f"nothing names {name}"


@pytest.mark.parametrize("name", OWN)
def test_every_entry_is_named_by_a_source(name):
    texts = "".join(source.read_text() for source in launchers(name))
    for entry in ENTRIES[name]:
        assert f'"{entry}"' in texts, f"no source launches {entry}"


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
    # Others are launched with smaller work-groups if a device requires that.
    for body in CODE[name].split("__kernel")[1:]:
        if "reqd_work_group_size" not in body.split(")) void")[0]:
            assert not GROUP.search(body), body.splitlines()[0]


def test_embedded_files_are_those_of_the_folder():
    assert _core.kernel_sources() == FILES


def test_files_whose_functions_need_the_work_item_are_no_stages_of_chains():
    found = {name for name in OWN if _core.has_cooperating_helper(name)}
    wanted = {"detection_postprocess/detection_postprocess.cl", "rfft2d/rfft2d.cl", "svdf/svdf.cl"}
    assert found == {*wanted, "device/chain.cl"}


def outside_of_directives(name: str) -> str:
    """The text of a file without comments and preprocessor lines."""
    joined = CODE[name].replace("\\\n", "")
    return "\n".join(line for line in joined.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("name", FILES)
def test_braces_close_whatever_the_macros_are(name):
    # kernel/bodies.cpp finds the names at file scope without a preprocessor, and renames them.
    depth = 0
    for c in re.sub(r'"[^"\n]*"', "", outside_of_directives(name)):
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0, "a function begins in each branch of an #if; give its parameters a macro"


def test_types_of_all_files_come_without_functions():
    # All stages of a chain share the names of this file: each would define its functions again.
    assert "{" not in outside_of_directives("common/types.cl")
