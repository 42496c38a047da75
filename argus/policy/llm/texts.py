"""Sanitises untrusted text: bounds its length and removes control and invisible characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import cast

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories without a visible glyph, or that control display: control, format, surrogate, unassigned."""


def printable_line(text: str, most: int) -> str:
    """The text as one line of at most `most` printable characters."""
    # Bounded work: of a huge text only the first 4 * most characters are examined.
    seen = "".join(" " if unicodedata.category(each) in _UNSEEN else each for each in text[: 4 * most])
    line = " ".join(seen.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def invisible_characters(text: str) -> tuple[str, ...]:
    """Invisible code points of a source text, such as `U+202E`; newlines and tabs are allowed."""
    odd = {each for each in text if each not in "\n\t" and unicodedata.category(each) in _UNSEEN}
    return tuple(f"U+{ord(each):04X}" for each in sorted(odd))


def encodable(text: str) -> str:
    """The text with a question mark for each character that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def truncated(text: str, most: int) -> str:
    """The text cut to at most `most` bytes of UTF-8, with a note of its full length if it was longer."""
    data = encodable(text).encode("utf-8")
    if len(data) <= most:
        return data.decode("utf-8")
    note = f"\n[{len(data)} bytes in all, the rest is left out]"
    return data[: max(0, most - len(note))].decode("utf-8", "ignore") + note


def redacted(data: object, secret: str) -> object:
    """JSON data with `[key]` in place of each occurrence of the secret in a string."""
    match data:
        case str():
            return data.replace(secret, "[key]")
        case list() | tuple():
            return [redacted(each, secret) for each in cast("Sequence[object]", data)]
        case dict():
            return {name: redacted(each, secret) for name, each in cast("dict[object, object]", data).items()}
        case _:
            return data


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case, for comparison; parts of a name such as `row_sum` are words."""
    return frozenset(re.findall(r"[a-z0-9]{2,}", text.lower().replace("_", " ")))
