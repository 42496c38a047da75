"""Text that somebody else wrote: cut to a length, and without what would act on a terminal or hide from a reader."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import cast

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, or steer what is shown: control, format, surrogates, unassigned."""


def sentence(text: str, most: int) -> str:
    """The text on one line of at most `most` characters, each of which can be seen."""
    # A character may stand for white space only; the rest of a huge text is never looked at.
    seen = "".join(" " if unicodedata.category(each) in _UNSEEN else each for each in text[: 4 * most])
    line = " ".join(seen.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def unseen(text: str) -> tuple[str, ...]:
    """Code points of a source text, such as `U+202E`, that a reader does not see; ends of lines and tabs are seen."""
    odd = {each for each in text if each not in "\n\t" and unicodedata.category(each) in _UNSEEN}
    return tuple(f"U+{ord(each):04X}" for each in sorted(odd))


def encodable(text: str) -> str:
    """The text with a question mark for what UTF-8 cannot say."""
    return text.encode("utf-8", "replace").decode("utf-8")


def within(text: str, most: int) -> str:
    """The text, or its first characters and how many are left out, in at most `most` bytes of UTF-8."""
    data = encodable(text).encode("utf-8")
    if len(data) <= most:
        return data.decode("utf-8")
    note = f"\n[{len(data)} bytes in all, the rest is left out]"
    return data[: max(0, most - len(note))].decode("utf-8", "ignore") + note


def without(data: object, secret: str) -> object:
    """Plain data of a record with a mark wherever a text of it holds the secret."""
    match data:
        case str():
            return data.replace(secret, "[key]")
        case list() | tuple():
            return [without(each, secret) for each in cast("Sequence[object]", data)]
        case dict():
            return {name: without(each, secret) for name, each in cast("dict[object, object]", data).items()}
        case _:
            return data
