"""Assign C identifiers to a kernel's symbols and buffers.

Identifiers of three forms share the emitted text, and no two forms have a name in common:

* A user's name ends in exactly one underscore: `A_`, `block_0_`. No keyword, builtin, predefined macro or name of a
  prelude does.
* What the emitter derives from one, such as a buffer descriptor, adds `_` and a word to it: `A__buffer`.
* Everything else is the emitter's own: it neither ends in exactly one underscore nor has two in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from argus.core.index import Symbol
from argus.core.ir import Alloc, Buffer, For, Kernel, Let, Roles, walk

_NOT_LETTERS = re.compile(r"[\W_]+", re.ASCII)
_NOT_WORDS = re.compile(r"\W", re.ASCII)


@frozen
class Names:
    """Unique identifiers. kernel: the entry point."""

    symbols: Mapping[Symbol, str]
    buffers: Mapping[Buffer, str]
    kernel: str


def assign_names(kernel: Kernel) -> Names:
    """Assign names in program order. Tags and assertions do not change them."""
    taken: set[str] = set()
    symbols: dict[Symbol, str] = {}
    buffers: dict[Buffer, str] = {}
    name = _fresh_name(kernel.name, taken)
    for thing in _named_objects(kernel):
        if isinstance(thing, Symbol):
            if thing not in symbols:
                symbols[thing] = _fresh_name(thing.name, taken)
        elif thing not in buffers:
            buffers[thing] = _fresh_name(thing.name, taken)
    return Names(symbols, buffers, name)


def file_stem(kernel: Kernel) -> str:
    """The stem of a kernel's files: its own name, with `_` for what is not an ASCII letter or digit."""
    return _NOT_WORDS.sub("_", kernel.name)


def _named_objects(kernel: Kernel) -> Iterator[Symbol | Buffer]:
    yield from kernel.parameters
    yield from kernel.sizes
    yield from kernel.blocks
    yield kernel.thread
    for stmt in walk(kernel.body):
        if isinstance(stmt, Alloc):
            yield stmt.buffer
        elif isinstance(stmt, For | Let):
            yield stmt.symbol
        elif isinstance(stmt, Roles):
            for role in stmt.roles:
                yield from (role.number, role.thread)


def _fresh_name(name: str, taken: set[str]) -> str:
    """The name in letters and digits, single underscores between them and one at the end; numbered if it is taken."""
    stem = _NOT_LETTERS.sub("_", name).strip("_") or "unnamed"
    stem = f"n{stem}" if stem[0].isdigit() else stem
    found, count = f"{stem}_", 1
    while found in taken:
        count += 1
        found = f"{stem}_{count}_"
    taken.add(found)
    return found
