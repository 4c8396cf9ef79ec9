"""Untrusted text, made safe to print."""

from __future__ import annotations

import unicodedata

# Unicode's categories of control and format characters, surrogates, and separators of lines and
# paragraphs: terminals interpret or hide them, or reverse the text.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def printable(text: str, keep: str = "") -> str:
    r"""The text with escapes such as ``\x1b`` for characters that a terminal would interpret.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters to leave as they are; without ``"\n"`` the result is one line.
    """
    return text if text.isprintable() else "".join(_escaped(c, keep) for c in text)


def one_line(text: object) -> str:
    """A text, such as an exception of a runtime, as one line that is safe to print."""
    return printable(" ".join(str(text).split()))


def _escaped(character: str, keep: str) -> str:
    if character in keep or unicodedata.category(character) not in _UNPRINTABLE:
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
