"""Serialisation of kernels and programs as rows: each object once, after its parts."""

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

SCHEMA = "argus.kernels/3"


def write(exported: Sequence[Exportable]) -> dict[str, object]:
    """The document of kernels and programs, ready for `json.dumps`.

    Raises TypeError for an object that is no part of the IR, LookupError for an unknown instruction, target or element
    type.
    """
    writer = _Writer()
    numbers = [writer.number(each) for each in exported]
    return {"schema": SCHEMA, "rows": writer.rows, "exported": numbers}


class _Writer:
    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self._numbers: dict[object, int] = {}
        # Keeps written objects alive, since their identities are keys.
        self._written: list[object] = []

    def number(self, root: object) -> int:
        """The row number of an object; writes it and its parts first if it has none."""
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
        row += [self._encode(codec, value) for codec, value in _values(kind, thing)]
        self._numbers[key] = len(self.rows)
        self._written.append(thing)
        self.rows.append(row)

    def _encode(self, codec: Codec, value: Any) -> object:  # noqa: ANN401 reason: of the codec's type
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
                return [self._encode(item, each) for each in value]
            case Several(items=items):
                return [self._encode(item, each) for item, each in zip(items, value, strict=True)]
            case Named(item=item):
                return [[name, self._encode(item, each)] for name, each in cast("Mapping[str, object]", value).items()]
            case Optional(item=item):
                return None if value is None else self._encode(item, value)
            case _:
                assert_never(codec)


def _key(thing: object) -> object:
    """Source locations and symbols are compared by value, other objects by identity."""
    return thing if isinstance(thing, Span | Frame | Symbol) else id(thing)


def kind_of(thing: object) -> Kind:
    """The kind of an object. Raises TypeError for an object that is no part of the IR."""
    found = BY_CLASS.get(type(thing))
    if found is None:
        raise TypeError(f"a {type(thing).__name__} is not part of a kernel")
    return found


def _values(kind: Kind, thing: object) -> list[tuple[Codec, object]]:
    return [(codec, getattr(thing, name)) for name, codec in kind.fields]


def parts(thing: object) -> list[object]:
    """The objects to which an object's fields refer, in the order of its fields."""
    return [part for codec, value in _values(kind_of(thing), thing) for part in _references(codec, value)]


def _references(codec: Codec, value: Any) -> Iterator[object]:  # noqa: ANN401 reason: of the codec's type
    match codec:
        case Reference():
            yield value
        case Many(item=item):
            for each in value:
                yield from _references(item, each)
        case Several(items=items):
            for item, each in zip(items, value, strict=True):
                yield from _references(item, each)
        case Named(item=item):
            for each in value.values():
                yield from _references(item, each)
        case Optional(item=item):
            if value is not None:
                yield from _references(item, value)
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
