"""Randomly changes a few values of a serialised kernel; most results are invalid, some are other kernels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any, cast

from argus.core.ir import Kernel
from argus.core.serde import write

Document = dict[str, Any]
_NUMBERS = (-(1 << 40), -1, 0, 1, 2, 3, 4, 8, 16, 63, 64, 65, 128, 255, 256, 1 << 20, 1 << 30, 1 << 62, 1 << 300)
_OTHERS: tuple[object, ...] = (
    None,
    True,
    False,
    0.5,
    "nan",
    "",
    "x",
    "A",
    "size",
    "cta",
    "../../x",
    "a\n",
    [],
    [0],
    {},
)


def changed(kernel: Kernel, random: Random, times: int) -> Document:
    """The document of a kernel with `times` values of its rows changed."""
    document = copy.deepcopy(write([kernel]))
    for _ in range(times):
        _change(cast("list[list[object]]", document["rows"]), random)
    return document


def _change(rows: list[list[object]], random: Random) -> None:
    row = rows[random.randrange(len(rows))]
    if len(row) < 2:
        return
    at = random.randrange(1, len(row))
    holder: list[object] = row
    while isinstance(holder[at], list) and holder[at] and random.random() < 0.9:
        holder = cast("list[object]", holder[at])
        at = random.randrange(len(holder))
    holder[at] = _another(holder[at], row, at, rows, random)


def _another(value: object, row: list[object], at: int, rows: list[list[object]], random: Random) -> object:
    """A nearby value, a value of the same field of another row, or any value."""
    kind = random.randrange(8)
    same_kind = [other for other in rows if other[0] == row[0] and len(other) > at]
    if kind < 4 and same_kind:
        return copy.deepcopy(random.choice(same_kind)[at])
    if kind < 6 and type(value) is int:
        return value + random.choice((-2, -1, 1, 2))
    return random.choice(_NUMBERS) if kind == 6 else copy.deepcopy(random.choice(_OTHERS))


def rows_of(document: Mapping[str, object], kind: str) -> list[list[Any]]:
    """The document's rows of one kind, to be changed in place."""
    return [row for row in cast("list[list[Any]]", document["rows"]) if row[0] == kind]
