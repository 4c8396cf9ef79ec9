"""Names in models are untrusted: no command lets a terminal interpret them."""

from __future__ import annotations

import json
import unicodedata

import pytest

import clgpu_delegate
from clgpu_delegate import _core, cli
from clgpu_delegate.base.consoles import SafeConsole
from clgpu_delegate.base.rendering import Text, as_text, printable
from clgpu_delegate.cli import exits
from tests.model_maker import ModelMaker

EVIL = "\x1b]0;owned\x07\x1b[31m[bold red]\u202e:smile:\x7f\x9b2J\nnote: all is well\u2066\u200b"
SHOWN = (
    r"\x1b]0;owned\x07\x1b[31m[bold red]\u202e:smile:\x7f\x9b2J\x0anote: all is well\u2066\u200b"
)


def model(*, custom: bool) -> bytes:
    m = ModelMaker()
    shape = (1, 8, 8, 4)
    y = m.op("TANH", [m.input(EVIL, shape)], shape)
    if custom:
        y = m.custom(EVIL, [y], shape)
    m.output(m.op("TANH", [y], shape))
    return m.build()


@pytest.fixture(params=[False, True], ids=["tensor", "operation"])
def path(request, tmp_path):
    path = tmp_path / "evil.tflite"
    path.write_bytes(model(custom=request.param))
    return path


def assert_safe(text: str, lines: bool = True) -> None:
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert bad <= ({"\n"} if lines else set()), (bad, text)
    assert not [line for line in text.splitlines() if line.startswith("note: all is well")], text


@pytest.mark.parametrize(
    "words",
    [
        "explain {}",
        "explain {} --memory",
        "profile {} --runs 1",
        "run {} --runs 1 --threads 1 --verify always",
        "bench {} --runs 1 --precision fp32",
        "capture {} {}.clgpu.zip --no-shrink",
        "tune {} --budget 1s",
        "quantize {} {}.out",
    ],
)
def test_no_command_prints_a_character_that_acts(words, path, capfd, monkeypatch):
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("CLGPU_CACHE", str(path.parent / "cache.sqlite"))
    exits.answer(cli.app, [word.format(path.name, path.name) for word in words.split()])
    said = capfd.readouterr()
    assert said.out + said.err
    assert_safe(said.out)
    assert_safe(said.err)


def test_capsule_is_replayed_without_a_character_that_acts(path, capfd):
    capsule = path.with_suffix(".clgpu.zip")
    exits.answer(cli.app, ["capture", str(path), str(capsule)])
    exits.answer(cli.app, ["replay", str(capsule)])
    said = capfd.readouterr()
    assert_safe(said.out + said.err)


@pytest.mark.parametrize("path", [False], ids=["tensor"], indirect=True)
def test_facts_have_the_names_of_the_model(path):
    explanation = clgpu_delegate.explain_model(path)
    assert EVIL in [tensor.name for tensor in explanation.tensors]
    assert json.loads(json.dumps(explanation.to_dict())) == explanation.to_dict()


@pytest.mark.parametrize("path", [True], ids=["operation"], indirect=True)
def test_what_the_core_says_shows_escapes(path):
    explanation = clgpu_delegate.explain_model(path)
    assert explanation.nodes[1].op == SHOWN
    assert explanation.nodes[1].reason == f"custom operation {SHOWN} is unknown"
    assert_safe(str(explanation))
    assert_safe(str(clgpu_delegate.map_memory(path)))
    small = clgpu_delegate.explain_model(path, max_object="64")
    assert_safe("".join([*small.notes, *(node.reason for node in small.nodes)]), lines=False)
    assert any(SHOWN in text for text in [*small.notes, *(node.reason for node in small.nodes)])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, grün, 日本語, 😀", "plain, grün, 日本語, 😀"),
        (EVIL, SHOWN),
        ("\u00ad\ufeff\U000e0041\u2028", r"\xad\ufeff\U000e0041\u2028"),
        ("tab\tand\rreturn", r"tab\x09and\x0dreturn"),
    ],
)
def test_python_and_the_core_escape_alike(text, shown):
    assert printable(text) == _core.printable(text) == shown
    assert printable(text, keep="\n\t") == shown.replace(r"\x0a", "\n").replace(r"\x09", "\t")


def test_every_unprintable_character_of_the_core_is_one_of_python():
    for code in [*range(0x3000), *range(0xF900, 0xE0100, 7)]:
        if 0xD800 <= code < 0xE000:
            continue
        escaped = _core.printable(chr(code)) != chr(code)
        assert not escaped or printable(chr(code)) != chr(code), hex(code)


def test_halves_of_characters_and_markup_are_shown():
    assert printable("\ud800") == r"\ud800"
    assert as_text(Text("[red]x[/red] :smile: \x1b[1m")) == r"[red]x[/red] :smile: \x1b[1m"
    with SafeConsole(force_terminal=True, color_system="truecolor", width=80).capture() as shown:
        pass
    assert shown.get() == ""
