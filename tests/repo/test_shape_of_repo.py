"""A family is one name in three places; layers include each other in one direction only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src_cpp"
KERNELS = ROOT / "kernels"

# Allowed includes, as in docs/architecture.md; `python` and `delegate` are at the top.
LAYERS = {
    "abi": set(),
    "base": set(),
    "ir": {"base"},
    "kernel": {"base"},
    "store": {"base"},
    "cl": {"base", "store"},
    "compile": {"cl"},
    "tfl": {"base", "ir", "abi"},
    "ops": {"base", "ir", "kernel", "tfl"},
    "passes": {"base", "ir", "kernel", "ops"},
    "plan": {"base", "ir", "kernel", "ops", "passes"},
    "runtime": {"base", "ir", "kernel", "plan", "cl", "store"},
    "delegate": {
        "abi", "base", "ir", "kernel", "store", "cl", "tfl", "ops", "passes", "plan", "runtime",
    },
    "litert": {"abi", "base", "cl", "delegate"},
    "python": {
        "litert", "base", "ir", "kernel", "store", "cl", "tfl", "ops", "passes", "plan", "runtime",
        "delegate",
    },
}  # fmt: skip

# The subfolders of a layer, from the bottom to the top, as in docs/architecture.md: each may
# include those before it. "." is the layer's folder itself.
SUBFOLDERS = {
    "ops": (".", "shared", "quantized", "products", "families"),
    "plan": (".", "arena", "budget"),
    "runtime": ("run", "measure"),
    "delegate": (".", "tell", "verify", "building", "claim", "doors"),
}

# Families without their own kernels, and why.
NO_KERNELS = {
    "add": "computed by kernels/binary; a family of its own because ops='core' claims it",
    "broadcast_to": "computed by kernels/strided_copy",
    "control_flow": "the kernels of the nodes in its graphs",
    "densify": "decoded by the host at load time, constants only",
    "reshape": "a view: no work on the device",
    "reverse": "computed by kernels/strided_copy",
    "shape_values": "computed by the host while planning",
    "variables": "views: what is read and assigned is uploaded and downloaded",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def families() -> list[str]:
    """Names of the families in families.def; kFullyConnectedFamily is fully_connected."""
    text = (SOURCES / "ops" / "families.def").read_text()
    names = re.findall(r"^CLGPU_FAMILY\(k(\w+)Family\)", text, re.MULTILINE)
    return [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names]


def sources() -> list[Path]:
    return sorted(p for p in SOURCES.rglob("*") if p.suffix in (".cpp", ".hpp", ".def"))


def includes(file: Path) -> list[tuple[str, str]]:
    """(opening character, path) of every include of a file."""
    return INCLUDE.findall(file.read_text())


def tracked_files() -> list[Path]:
    """The files of the repository; all files where git does not know this folder."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode == 0 and listing.stdout:
        return [
            ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()
        ]
    tops = [
        "android", "bench", "clgpu_delegate", "docs", "examples", "kernels", "src_cpp", "tests",
        "tools",
    ]  # fmt: skip
    return [p for top in tops for p in (ROOT / top).rglob("*") if p.is_file()]


def test_no_source_is_ignored_by_git():
    # A folder named "build", for example, would be left out of commits and source packages.
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "src_cpp"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not listing.stdout


def test_families_are_listed_once():
    assert len(families()) == len(set(families())) > 30


@pytest.mark.parametrize("family", families())
def test_family_has_its_source_its_kernels_and_its_tests(family):
    source = SOURCES / "ops" / "families" / f"{family}.cpp"
    assert source.is_file(), f"{family} is in families.def, without {source.relative_to(ROOT)}"
    camel = "".join(part.capitalize() for part in family.split("_"))
    assert f"k{camel}Family" in source.read_text()
    assert (ROOT / "tests" / "ops" / f"test_{family}.py").is_file()
    has_kernels = any((KERNELS / family).glob("*.cl"))
    assert has_kernels == (family not in NO_KERNELS), NO_KERNELS.get(family, "kernels are missing")


def test_every_folder_of_kernels_belongs_to_a_family():
    # Parts of kernels, what the runtime measures devices with, what several families use, what
    # plans launch by themselves, what converts images of the application.
    shared = {
        "common",
        "device",
        "requantize",
        "strided_copy",
        "tensor_gemm",
        "predicate",
        "pixels",
    }
    folders = {path.name for path in KERNELS.iterdir() if path.is_dir()} - shared
    assert folders <= set(families())


def test_every_file_of_op_tests_belongs_to_a_family():
    for folder in ("ops", "quantized"):
        files = {p.stem.removeprefix("test_") for p in (ROOT / "tests" / folder).glob("test_*.py")}
        assert files <= set(families())


@pytest.mark.parametrize("layer", sorted(p.name for p in SOURCES.iterdir() if p.name != "cmake"))
def test_layer_includes_only_what_is_below_it(layer):
    allowed = LAYERS[layer] | {layer}
    wrong = []
    for file in sources():
        if file.relative_to(SOURCES).parts[0] != layer:
            continue
        for quote, path in includes(file):
            if quote == '"' and path.split("/")[0] not in allowed:
                wrong.append(f"{file.relative_to(ROOT)} includes {path}")
    assert not wrong, "\n".join(wrong)


def test_layers_have_no_cycle():
    done: set[str] = set()
    while len(done) < len(LAYERS):
        free = {name for name, below in LAYERS.items() if name not in done and below <= done}
        assert free, f"a cycle among {set(LAYERS) - done}"
        done |= free


def subfolder_of(path: str) -> tuple[str, str]:
    """Layer and subfolder of a file, given its path below src_cpp."""
    layer, *folders = path.split("/")[:-1]
    return layer, folders[0] if folders else "."


@pytest.mark.parametrize("layer", sorted(p.name for p in SOURCES.iterdir() if p.name != "cmake"))
def test_subfolders_include_only_those_below_them(layer):
    subfolders = SUBFOLDERS.get(layer, (".",))
    paths = [str(file.relative_to(SOURCES)) for file in sources()]
    assert {subfolder_of(path)[1] for path in paths if subfolder_of(path)[0] == layer} == set(
        subfolders
    )
    wrong = []
    for path in paths:
        of, subfolder = subfolder_of(path)
        if of != layer:
            continue
        for quote, included in includes(SOURCES / path):
            if quote != '"' or subfolder_of(included)[0] != layer:
                continue
            if subfolders.index(subfolder_of(included)[1]) > subfolders.index(subfolder):
                wrong.append(f"src_cpp/{path} includes {included}")
    assert not wrong, "\n".join(wrong)


def circles(graph: Mapping[str, set[str]]) -> set[str]:
    """The nodes of a graph that are part of a cycle or depend on one."""
    left = set(graph)
    while gone := {name for name in left if not graph[name] & left}:
        left -= gone
    return left


def test_circles_are_found():
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}


def test_files_have_no_circle():
    # A header and its source are one: what the source includes, the header needs.
    graph: dict[str, set[str]] = {}
    for file in sources():
        name = str(file.relative_to(SOURCES).with_suffix(""))
        needed = {path.rsplit(".", 1)[0] for quote, path in includes(file) if quote == '"'}
        graph.setdefault(name, set()).update(needed - {name})
    assert not circles(graph)


def test_folders_have_no_circle():
    graph: dict[str, set[str]] = {}
    for file in sources():
        folder = str(file.parent.relative_to(SOURCES))
        needed = {path.rsplit("/", 1)[0] for quote, path in includes(file) if quote == '"'}
        graph.setdefault(folder, set()).update(needed - {folder})
    assert not circles(graph)


def test_families_do_not_include_each_other_s_source():
    wrong = [f for f in sources() for _, path in includes(f) if path.endswith(".cpp")]
    assert not wrong


def test_own_headers_are_included_from_the_top_and_exist():
    for file in sources():
        for quote, path in includes(file):
            if quote == '"':
                assert (SOURCES / path).is_file(), f"{file.relative_to(ROOT)} includes {path}"


def test_opencl_and_tensorflow_headers_are_never_included():
    for file in sources():
        for _, path in includes(file):
            assert not re.match(r"(CL|OpenCL|tensorflow|tflite)/", path), f"{file} includes {path}"


def test_headers_are_included_once():
    for file in sources():
        if file.suffix == ".hpp":
            assert "#pragma once" in file.read_text(), file.relative_to(ROOT)


def test_every_source_says_what_it_is():
    for file in [*sources(), *KERNELS.rglob("*.cl")]:
        if file.suffix in (".hpp", ".cl"):
            assert file.read_text().startswith("// "), file.relative_to(ROOT)


def test_no_file_names_a_place_on_someone_s_machine():
    # Concatenated, so that the test does not find this file.
    places = [f"/{folder}/" for folder in ("work", "home", "Users", "root")]
    wrong = []
    for file in tracked_files():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        wrong += [f"{file.relative_to(ROOT)}: {place}" for place in places if place in text]
    assert not wrong, "\n".join(wrong)
