"""Strict deserialisation: parses a document, and rejects any kernel that tracing cannot have produced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, assert_never, cast

from attrs import frozen

from argus.core.check import check, check_program
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
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
from argus.core.serde.kinds import BY_NAME, Exportable
from argus.core.serde.trace_invariants import trace_violation
from argus.core.serde.writing import SCHEMA


@frozen
class Bounds:
    """Limits of a document.

    rows, exported: their numbers in a document; text: characters of a text; items: of a list; bits: of an integer;
    depth: of a tree.
    """

    rows: int = 400_000
    text: int = 400
    items: int = 20_000
    bits: int = 256
    depth: int = 16
    exported: int = 64


class MalformedError(ValueError):
    """The data is not a kernel; the message says what was expected, what was found, and in which row."""


def read(document: object, bounds: Bounds = Bounds()) -> tuple[Exportable, ...]:
    """The kernels and programs of a document from an untrusted source.

    Raises MalformedError if the data is not a kernel that tracing can produce, and ArgusError (E1xx, E2xx), as tracing
    does, for a kernel that is not well-formed.
    """
    rows, exported = _parts(document, bounds)
    made: list[object] = []
    for row in rows:
        made.append(_row(row, made, bounds))
    found = tuple(_exported(number, made) for number in exported)
    for each in found:
        why = _violation(each)
        if why:
            raise MalformedError(f"`{each.name[:60]}` {why}")
    return found


def _parts(document: object, bounds: Bounds) -> tuple[list[object], list[object]]:
    if not isinstance(document, dict) or set(cast("dict[object, object]", document)) != {"schema", "rows", "exported"}:
        raise MalformedError("expected a document with the keys `schema`, `rows` and `exported`")
    given = cast("dict[str, object]", document)
    rows, exported = given["rows"], given["exported"]
    if given["schema"] != SCHEMA:
        raise MalformedError(f"expected the schema {SCHEMA}")
    if not isinstance(rows, list) or not isinstance(exported, list):
        raise MalformedError("expected `rows` and `exported` to be lists")
    if len(cast("list[object]", rows)) > bounds.rows or len(cast("list[object]", exported)) > bounds.exported:
        raise MalformedError(f"more than {bounds.rows} rows or {bounds.exported} kernels")
    return cast("list[object]", rows), cast("list[object]", exported)


def _exported(number: object, made: Sequence[object]) -> Exportable:
    found = made[number] if type(number) is int and 0 <= number < len(made) else None
    if not isinstance(found, Kernel | Program):
        raise MalformedError("an exported row is neither a kernel nor a program")
    return found


def _violation(found: Exportable) -> str:
    """Why tracing cannot have produced it; empty if it can. Raises ArgusError if it is not well-formed."""
    try:
        why = trace_violation(found)
        faults = () if why else _faults(found)
    except (ArgusError, MemoryError):
        raise
    except Exception as problem:  # noqa: BLE001 reason: the checks rely on invariants of tracing, which may not hold
        return f"cannot be checked: {type(problem).__name__}"
    if faults:
        raise ArgusError(faults[0])
    return why


def _faults(found: Exportable) -> tuple[Diagnostic, ...]:
    if isinstance(found, Kernel):
        return check(found)
    for launch in found.launches:
        of_kernel = check(launch.kernel)
        if of_kernel:
            return of_kernel
    return check_program(found)


def _row(row: object, made: Sequence[object], bounds: Bounds) -> object:
    at = f"row {len(made)}"
    if not isinstance(row, list) or not row:
        raise MalformedError(f"{at} is not a list")
    name, *values = cast("list[object]", row)
    kind = BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise MalformedError(f"{at} is of an unknown kind")
    if len(values) != len(kind.fields):
        raise MalformedError(f"{at}: a {kind.name} has {len(kind.fields)} fields, found {len(values)}")
    decoder = _Decoder(made, bounds)
    values_read: list[object] = []
    for (field, codec), value in zip(kind.fields, values, strict=True):
        try:
            values_read.append(decoder.value(codec, value))
        except _UnfitError as problem:
            raise MalformedError(f"{at}: {field} of a {kind.name}: expected {problem}") from None
    try:
        return kind.make(*values_read)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: a constructor may raise anything for unchecked values
        raise MalformedError(f"{at}: no {kind.name} has these fields: {type(problem).__name__}") from None


class _UnfitError(Exception):
    """A value does not fit its codec; the message says what was expected."""


@frozen
class _Decoder:
    """Decodes values by codec. made: the objects of earlier rows."""

    made: Sequence[object]
    bounds: Bounds

    def value(self, codec: Codec, value: Any) -> object:  # noqa: ANN401 reason: whatever JSON gives
        match codec:
            case Whole():
                return self._whole(value)
            case Real():
                return self._real(value)
            case Text():
                return self._text(value)
            case Flag():
                return value if type(value) is bool else _unfit("true or false")
            case Choice(values=values):
                return value if isinstance(value, str) and value in values else _unfit(f"one of {', '.join(values)}")
            case Tree():
                return self._tree(value, self.bounds.depth)
            case Reference(classes=classes):
                return self._object(value, classes)
            case Many(item=item):
                return tuple([self.value(item, each) for each in self._list(value)])
            case Several(items=items):
                return self._several(items, value)
            case Named(item=item):
                return self._named(item, value)
            case Optional(item=item):
                return None if value is None else self.value(item, value)
            case _:
                assert_never(codec)

    def _whole(self, value: object) -> int:
        if type(value) is int and value.bit_length() <= self.bounds.bits:
            return value
        return _unfit(f"an integer of at most {self.bounds.bits} bits")

    def _real(self, value: object) -> float:
        if isinstance(value, str) and value in ("inf", "-inf", "nan"):
            return float(value)
        if type(value) is float:
            return value
        return self._whole(value)

    def _text(self, value: object) -> str:
        if isinstance(value, str) and len(value) <= self.bounds.text and value.isprintable():
            return value
        return _unfit(f"a printable text of at most {self.bounds.text} characters")

    def _list(self, value: object) -> list[object]:
        if not isinstance(value, list) or len(cast("list[object]", value)) > self.bounds.items:
            _unfit(f"a list of at most {self.bounds.items} values")
        return cast("list[object]", value)

    def _tree(self, value: object, depth: int) -> object:
        if not isinstance(value, list):
            return self._whole(value)
        if depth == 0:
            _unfit(f"a tree of at most {self.bounds.depth} levels")
        return tuple([self._tree(each, depth - 1) for each in self._list(cast("object", value))])

    def _object(self, value: object, classes: tuple[type, ...]) -> object:
        number = value if type(value) is int else -1
        found = self.made[number] if 0 <= number < len(self.made) else None
        if type(found) not in classes:
            _unfit(f"the number of an earlier row of {' or '.join(each.__name__ for each in classes)}")
        return found

    def _several(self, items: tuple[Codec, ...], value: object) -> object:
        given = self._list(value)
        if len(given) != len(items):
            _unfit(f"{len(items)} values")
        return tuple([self.value(item, each) for item, each in zip(items, given, strict=True)])

    def _named(self, item: Codec, value: object) -> dict[str, object]:
        found: dict[str, object] = {}
        for pair in self._list(value):
            if not isinstance(pair, list) or len(cast("list[object]", pair)) != 2:
                _unfit("pairs of a name and a value")
            name, each = cast("list[object]", pair)
            key = self._text(name)
            if key in found:
                _unfit("no name twice")
            found[key] = self.value(item, each)
        return found


def _unfit(expected: str) -> NoReturn:
    raise _UnfitError(expected)
