"""Encodes configurations as names and decodes them, such as `hopper_bn192_cluster2x1_whole`.

The kind comes first, then each field that differs from its default: its name without underscores, and its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import attrs


def name_of(config: Any) -> str:  # noqa: ANN401 reason: any configuration
    """The name, usable in an identifier; fields must be integers, booleans or tuples of integers."""
    parts = [type(config).__name__.lower()]
    kind = cast("type[Any]", type(config))
    for each in attrs.fields(kind):
        value = getattr(config, each.name)
        if value != each.default:
            parts.append(_part(each.name.replace("_", ""), value))
    return "_".join(parts)


def _part(field: str, value: object) -> str:
    if isinstance(value, bool):
        return field if value else f"no{field}"
    if isinstance(value, tuple):
        return field + "x".join(map(str, _whole(value)))  # pyright: ignore[reportUnknownArgumentType]
    return f"{field}{value}"


def _whole(values: Sequence[object]) -> Iterator[int]:
    for value in values:
        assert isinstance(value, int)
        yield value


def config_of(name: str, kinds: Sequence[type]) -> Any:  # noqa: ANN401 reason: one of the kinds
    """The inverse of `name_of`, for these kinds; None for any other text."""
    first, *parts = name.split("_")
    kind = next((each for each in kinds if each.__name__.lower() == first), None)
    if kind is None:
        return None
    given = [_field(part, kind) for part in parts]
    if None in given:
        return None
    config = kind(**dict(each for each in given if each is not None))
    return config if name_of(config) == name else None


def _field(part: str, kind: type) -> tuple[str, object] | None:
    """The field and value of a part of a name, parsed by the type of the field's default."""
    for each in attrs.fields(kind):
        plain, default = each.name.replace("_", ""), each.default
        if isinstance(default, bool):
            if part in {plain, f"no{plain}"}:
                return each.name, part == plain
            continue
        digits = part.removeprefix(plain)
        if digits == part or not digits.replace("x", "").isdecimal():
            continue
        if isinstance(default, tuple):
            return each.name, tuple(int(number) for number in digits.split("x") if number)
        if "x" not in digits:
            return each.name, int(digits)
    return None
