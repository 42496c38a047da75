"""Kernels and programs as rows: each object once, what it is made of before it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, assert_never, cast

from argus.core.index import Symbol
from argus.core.layout import IntTuple
from argus.core.serde.codecs import (
    Choice,
    Codec,
    Flag,
    Many,
    Named,
    Optional,
    Real,
    Reference,
    Several,
    Text,
    Tree,
    Whole,
)
from argus.core.serde.kinds import BY_CLASS, Exportable, Kind
from argus.core.span import Frame, Span

SCHEMA = "argus.kernels/2"


def write(exported: Sequence[Exportable]) -> dict[str, object]:
    """The document of some kernels and programs: what `json.dumps` takes.

    Raises TypeError for an object that is no part of the IR, LookupError for an instruction, a target or an element
    type that Argus does not know.
    """
    writer = _Writer()
    numbers = [writer.number(each) for each in exported]
    return {"schema": SCHEMA, "rows": writer.rows, "exported": numbers}


class _Writer:
    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self._numbers: dict[object, int] = {}
        self._kept: list[object] = []

    def number(self, root: object) -> int:
        """The row of an object, written with all that it is made of unless it is there."""
        stack = [root]
        while stack:
            top = stack[-1]
            key = _key(top)
            waiting = [] if key in self._numbers else [p for p in parts(top) if _key(p) not in self._numbers]
            if waiting:
                stack += reversed(waiting)
                continue
            stack.pop()
            if key not in self._numbers:
                self._write(top, key)
        return self._numbers[_key(root)]

    def _write(self, thing: object, key: object) -> None:
        kind = kind_of(thing)
        row: list[object] = [kind.name]
        row += [self._encoded(codec, value) for codec, value in _values(kind, thing)]
        self._numbers[key] = len(self.rows)
        self._kept.append(thing)
        self.rows.append(row)

    def _encoded(self, codec: Codec, value: Any) -> object:  # noqa: ANN401 reason: of the codec's type
        match codec:
            case Whole():
                return operator.index(value)
            case Real():
                return _real(value)
            case Text() | Choice():
                return str(value)
            case Flag():
                return bool(value)
            case Tree():
                return _tree(value)
            case Reference():
                return self._numbers[_key(value)]
            case Many(item=item):
                return [self._encoded(item, each) for each in value]
            case Several(items=items):
                return [self._encoded(item, each) for item, each in zip(items, value, strict=True)]
            case Named(item=item):
                return [[name, self._encoded(item, each)] for name, each in cast("Mapping[str, object]", value).items()]
            case Optional(item=item):
                return None if value is None else self._encoded(item, value)
            case _:
                assert_never(codec)


def _key(thing: object) -> object:
    """Places of the source and symbols are values, all else is itself."""
    return thing if isinstance(thing, Span | Frame | Symbol) else id(thing)


def kind_of(thing: object) -> Kind:
    """Raises TypeError for what is no part of the IR."""
    found = BY_CLASS.get(type(thing))
    if found is None:
        raise TypeError(f"no kernel is made of a {type(thing).__name__}")
    return found


def _values(kind: Kind, thing: object) -> list[tuple[Codec, object]]:
    return [(codec, getattr(thing, name)) for name, codec in kind.fields]


def parts(thing: object) -> list[object]:
    """The objects that an object is made of, in the order of its fields."""
    return [part for codec, value in _values(kind_of(thing), thing) for part in _referred(codec, value)]


def _referred(codec: Codec, value: Any) -> Iterator[object]:  # noqa: ANN401 reason: of the codec's type
    match codec:
        case Reference():
            yield value
        case Many(item=item):
            for each in value:
                yield from _referred(item, each)
        case Several(items=items):
            for item, each in zip(items, value, strict=True):
                yield from _referred(item, each)
        case Named(item=item):
            for each in value.values():
                yield from _referred(item, each)
        case Optional(item=item):
            if value is not None:
                yield from _referred(item, value)
        case Whole() | Real() | Text() | Flag() | Choice() | Tree():
            return
        case _:
            assert_never(codec)


def _real(value: float) -> float | int | str:
    if isinstance(value, int):
        return int(value)
    return float(value) if isfinite(value) else str(float(value))


def _tree(value: IntTuple) -> object:
    return [_tree(each) for each in value] if isinstance(value, tuple) else int(value)
