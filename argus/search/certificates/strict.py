"""Strict deserialisation of untrusted JSON data into attrs classes, without implicit conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_origin

import attrs
from cattrs import Converter
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.gen import make_dict_structure_fn

_MOST_TEXT = 2_000


def strict_converter() -> Converter:
    """A converter that accepts objects with exactly the declared keys, lists, short printable text, numbers, truths."""
    found = Converter(forbid_extra_keys=True)
    found.register_structure_hook(str, _text)
    found.register_structure_hook(int, _whole)
    found.register_structure_hook(bool, _truth)
    found.register_structure_hook(float, _real)
    found.register_structure_hook(float | None, lambda value, kind: None if value is None else _real(value, kind))
    found.register_structure_hook_factory(lambda kind: get_origin(kind) is tuple, _lists)
    found.register_structure_hook_factory(lambda kind: get_origin(kind) is Mapping, _mappings)
    found.register_structure_hook_factory(attrs.has, objects)
    return found


def _text(value: object, _: object) -> str:
    if isinstance(value, str) and len(value) <= _MOST_TEXT and value.isprintable():
        return value
    raise ValueError(f"expected printable text of at most {_MOST_TEXT} characters")


def _whole(value: object, _: object) -> int:
    if type(value) is int and 0 <= value < 1 << 63:
        return value
    raise ValueError("expected a whole number of at least 0")


def _truth(value: object, _: object) -> bool:
    if type(value) is bool:
        return value
    raise ValueError("expected true or false")


def _real(value: object, _: object) -> float:
    if type(value) is float or type(value) is int:
        return float(cast("float", value))
    raise ValueError("expected a number")


def objects(kind: Any, converter: Converter) -> Any:  # noqa: ANN401 reason: as cattrs has it
    """A structure hook for an attrs class that accepts objects only."""
    return _only(dict, make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True))


def _lists(kind: Any, converter: Converter) -> Any:  # noqa: ANN401 reason: as cattrs has it
    return _only(list, homogenous_tuple_structure_factory(kind, converter))


def _mappings(kind: Any, converter: Converter) -> Any:  # noqa: ANN401 reason: as cattrs has it
    name, of = kind.__args__

    def hook(value: dict[object, object], _: object) -> dict[Any, Any]:
        return {converter.structure(key, name): converter.structure(each, of) for key, each in value.items()}

    return _only(dict, hook)


def _only(kind: type, hook: Any) -> Any:  # noqa: ANN401 reason: hooks of any type
    def checked(value: object, wanted: object) -> object:
        if type(value) is not kind:
            raise TypeError(f"expected {'a list' if kind is list else 'an object'}")
        return hook(value, wanted)

    return checked
