"""Properties of a family or candidate are fields: no other code tests its name.

So a new family is its source file, its kernels, its tests and one line of families.def.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repo.test_shape_of_repo import ROOT, SOURCES, families, sources

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)

# Words with another meaning there.
OTHER_MEANINGS = {
    ("delegate/options.cpp", "conv2d"): "an example in the documentation of the option engines",
    ("delegate/options.cpp", "dequantize"): "a value of the option dynamic_range",
    ("ir/read_text.cpp", "quantized"): "a fact of a tensor",
    ("ir/read_text.cpp", "table"): "a fact of an ir::Tail",
    ("ir/write_text.cpp", "table"): "the same",
    ("passes/precision_plan.cpp", "pairs"): "a list of a plan of precisions",
    ("plan/roads.cpp", "copy"): "a plan::Road",
    ("python/bind_ir.cpp", "copy"): "a passes::Concats",
    ("python/bind_ir.cpp", "dequantize"): "a passes::DynamicRange",
    ("python/bind_ir.cpp", "split"): "a passes::Concats",
    ("python/bind_lending.cpp", "pool"): "an argument, a runtime::Pool",
    ("store/database.cpp", "rows"): "the table of the cache",
    ("store/database.cpp", "table"): "a kind of object of SQLite",
}
# Files that look up families and candidates that a user has named.
LOOK_UP = {
    "delegate/claim/claim.cpp",
    "delegate/claim/first_report.cpp",
    "plan/choose.cpp",
    "plan/work_groups.cpp",
}


def code_of(file: Path) -> str:
    """A source file without comments and includes."""
    text = COMMENT.sub(lambda match: match[1] or "", file.read_text())
    return re.sub(r"^#\s*include.*$", "", text, flags=re.MULTILINE)


def op_sources() -> list[Path]:
    return [file for file in sources() if file.relative_to(SOURCES).parts[0] == "ops"]


def operations() -> set[str]:
    """TFLite's names of what families handle."""
    return {
        name
        for file in op_sources()
        for block in re.findall(r"family\.(?:builtins|customs) = \{(.*?)\};", code_of(file), re.S)
        for name in STRING.findall(block)
    }


def candidates() -> set[str]:
    """Names of candidates, and the constant beginnings of names that are put together."""
    code = "\n".join(map(code_of, op_sources()))
    whole = re.findall(r'\{"([a-z]\w*)",\s*\{', code)
    begun = re.findall(r'"([a-z]\w*_)"\s*\)?\s*\+', code)
    return {*whole, *begun}


def test_names_are_found():
    assert {"CONV_2D", "TANH", "TOPK_V2", "MaxPoolingWithArgmax2D"} <= operations()
    assert {"naive", "direct", "elementwise", "implicit_gemm_", "tensor_gemm_"} <= candidates()


def test_no_family_operation_or_candidate_is_named_outside_of_ops():
    names = {*families(), *operations(), *candidates()}
    wrong = []
    for file in sources():
        path = str(file.relative_to(SOURCES))
        if file in op_sources() or file.suffix == ".def":
            continue
        wrong += [
            f"{path} names {text!r}"
            for text in STRING.findall(code_of(file))
            if text in names and (path, text) not in OTHER_MEANINGS
        ]
    assert not wrong, "; ".join(wrong)


def test_nobody_takes_the_name_of_a_family_or_candidate_apart():
    compared = re.compile(r"(?:kind->|family\.|family->|candidate\.|chosen\.)name\s*\)?\s*[!=]=")
    searched = re.compile(r"(?:kind->|family\.|family->|candidate\.|chosen\.)name\.\w*find\(")
    wrong = [
        f"{path}: {match[0]}"
        for file in sources()
        for path in [str(file.relative_to(SOURCES))]
        for rule in (compared, searched)
        for match in rule.finditer(code_of(file))
        if path not in LOOK_UP
    ]
    assert not wrong, "; ".join(wrong)


def test_python_does_not_take_the_name_of_a_candidate_apart():
    apart = re.compile(
        r"""["']\w*["'] in (?:\w+\.)?candidate\b|candidate\.(?:startswith|endswith|split|find)\("""
    )
    wrong = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in sorted((ROOT / "clgpu_delegate").rglob("*.py"))
        for match in apart.finditer(file.read_text())
    ]
    assert not wrong, "; ".join(wrong)


@pytest.mark.parametrize("family", families())
def test_each_family_is_listed_once_and_named_in_its_room_alone(family):
    named = [file for file in sources() if f'family.name = "{family}";' in code_of(file)]
    assert {file.relative_to(SOURCES / "ops" / "families").as_posix() for file in named} == {
        f"{family}.cpp"
    }
