"""Rows read strictly: nothing is taken that no kernel of the language is made of."""

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
from argus.core.serde.trace_invariants import refused_by
from argus.core.serde.writing import SCHEMA


@frozen
class Bounds:
    """rows: of a document. text: characters of one text. items: of one list. bits: of an integer. depth: of a tree."""

    rows: int = 400_000
    text: int = 400
    items: int = 20_000
    bits: int = 256
    depth: int = 16
    exported: int = 64


class MalformedError(ValueError):
    """The data is no kernel: what was expected, what was found, and in which row."""


def read(document: object, bounds: Bounds = Bounds()) -> tuple[Exportable, ...]:
    """The kernels and programs of a document, from whomever it comes.

    Raises MalformedError for what is none, and ArgusError (E1xx, E2xx) for a kernel that is not well-formed, as tracing
    it would have.
    """
    rows, exported = _parts(document, bounds)
    made: list[object] = []
    for row in rows:
        made.append(_row(row, made, bounds))
    found = tuple(_exported(number, made) for number in exported)
    for each in found:
        why = _judged(each)
        if why:
            raise MalformedError(f"`{each.name[:60]}` {why}")
    return found


def _parts(document: object, bounds: Bounds) -> tuple[list[object], list[object]]:
    if not isinstance(document, dict) or set(cast("dict[object, object]", document)) != {"schema", "rows", "exported"}:
        raise MalformedError("expected a document of `schema`, `rows` and `exported`")
    given = cast("dict[str, object]", document)
    rows, exported = given["rows"], given["exported"]
    if given["schema"] != SCHEMA:
        raise MalformedError(f"expected the schema {SCHEMA}")
    if not isinstance(rows, list) or not isinstance(exported, list):
        raise MalformedError("expected lists of rows and of what is exported")
    if len(cast("list[object]", rows)) > bounds.rows or len(cast("list[object]", exported)) > bounds.exported:
        raise MalformedError(f"more than {bounds.rows} rows, or than {bounds.exported} kernels")
    return cast("list[object]", rows), cast("list[object]", exported)


def _exported(number: object, made: Sequence[object]) -> Exportable:
    found = made[number] if type(number) is int and 0 <= number < len(made) else None
    if not isinstance(found, Kernel | Program):
        raise MalformedError("what is exported is no kernel")
    return found


def _judged(found: Exportable) -> str:
    """Why it is none that tracing could have given; empty if it may be. Raises ArgusError for ill-formed ones."""
    try:
        why = refused_by(found)
        faults = () if why else _faults(found)
    except (ArgusError, MemoryError):
        raise
    except Exception as problem:  # noqa: BLE001 reason: the checks rely on what tracing establishes, this came otherwise
        return f"is nothing that can be checked: {type(problem).__name__}"
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
        raise MalformedError(f"{at} is no list")
    name, *values = cast("list[object]", row)
    kind = BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise MalformedError(f"{at} is of no kind that there is")
    if len(values) != len(kind.fields):
        raise MalformedError(f"{at}: a {kind.name} has {len(kind.fields)} fields, found {len(values)}")
    decoder = _Decoder(made, bounds)
    taken: list[object] = []
    for (field, codec), value in zip(kind.fields, values, strict=True):
        try:
            taken.append(decoder.value(codec, value))
        except _UnfitError as problem:
            raise MalformedError(f"{at}: {field} of a {kind.name}: expected {problem}") from None
    try:
        return kind.make(*taken)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 reason: whatever a constructor says to values that nobody has checked
        raise MalformedError(f"{at}: no {kind.name} has these fields: {type(problem).__name__}") from None


class _UnfitError(Exception):
    """What was expected."""


@frozen
class _Decoder:
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
