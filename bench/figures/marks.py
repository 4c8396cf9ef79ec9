"""Places of a Markdown page that a command rewrites.

A place is a line ``<!-- figures: NAME -->``, what is rendered, and a line ``<!-- /figures -->``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MARK = re.compile(r"^(?:<!-- figures: (?P<name>[\w-]+) -->|(?P<end><!-- /figures -->))$", re.M)
_LIKE_ONE = re.compile(r"<!--\s*/?\s*figures\b[^\n]*", re.I)


class MarkError(ValueError):
    """A page's marks are not well formed; a sentence."""


def names(text: str, page: str) -> list[str]:
    """The names of a page's places, in order.

    Raises
    ------
    MarkError
        If a place begins twice, does not end, or ends without a beginning.
    """
    found: list[str] = []
    open_one = ""
    for match in _MARK.finditer(text):
        if match["end"] and not open_one:
            raise MarkError(f"{page} has an end of figures without a beginning")
        if not match["end"] and open_one:
            raise MarkError(f"{page}: the figures {open_one} do not end before {match['name']}")
        if not match["end"] and match["name"] in found:
            raise MarkError(f"{page} has two places for the figures {match['name']}")
        open_one = match["name"] or ""
        found += [open_one] if open_one else []
    if open_one:
        raise MarkError(f"{page}: the figures {open_one} do not end")
    marks = {match[0] for match in _MARK.finditer(text)}
    for match in _LIKE_ONE.finditer(text):
        if match[0] not in marks:
            raise MarkError(f"{page}: {match[0]!r} is no mark; a mark has a line of its own")
    return found


def fill(text: str, rendered: Mapping[str, str]) -> str:
    """The page with new contents of its places; `names` returns the names of the places."""
    parts: list[str] = []
    end = 0
    for match in _MARK.finditer(text):
        if match["end"]:
            end = match.start()
        else:
            parts += [text[end : match.end()], f"\n\n{rendered[match['name']]}\n\n"]
    return "".join(parts) + text[end:]
