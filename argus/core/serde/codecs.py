"""What a field of a row may hold, read off the annotation of the attribute that it fills."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from attrs import frozen


@frozen
class Whole:
    """An integer."""


@frozen
class Real:
    """A number; `inf`, `-inf` and `nan` as texts."""


@frozen
class Text:
    pass


@frozen
class Flag:
    pass


@frozen
class Choice:
    """One of some texts."""

    values: tuple[str, ...]


@frozen
class Tree:
    """An integer, or a list of trees."""


@frozen
class Reference:
    """The number of a row of one of these kinds."""

    classes: tuple[type, ...]


@frozen
class Many:
    """A list of any length."""

    item: Codec


@frozen
class Several:
    """A list of just these."""

    items: tuple[Codec, ...]


@frozen
class Named:
    """A list of pairs of a text and a value, no text twice."""

    item: Codec


@frozen
class Optional:
    """null, or a value."""

    item: Codec


Codec = Whole | Real | Text | Flag | Choice | Tree | Reference | Many | Several | Named | Optional

_SIMPLE: Mapping[object, Codec] = {int: Whole(), float: Real(), str: Text(), bool: Flag()}


def codec_of(annotation: Any) -> Codec:  # noqa: ANN401 reason: a type is any object
    """Of an annotation. Raises TypeError for one that no row can hold: a new attribute may need a new codec."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _of_union(arguments)
    if origin is Literal:
        return Choice(tuple(map(str, arguments)))
    if origin is tuple:
        return _of_tuple(arguments)
    if origin in (Mapping, dict) and arguments[0] is str:
        return Named(codec_of(arguments[1]))
    if isinstance(annotation, type) and hasattr(annotation, "__attrs_attrs__"):
        return Reference((annotation,))
    raise TypeError(f"no row can hold {annotation}")


def _of_union(members: tuple[Any, ...]) -> Codec:
    kept = tuple(member for member in members if member is not NoneType)
    found = codec_of(kept[0]) if len(kept) == 1 else _of_classes(kept)
    return found if NoneType not in members else Optional(found)


def _of_classes(members: tuple[Any, ...]) -> Codec:
    found = tuple(codec_of(member) for member in members)
    if not all(isinstance(each, Reference) for each in found):
        raise TypeError(f"no row can hold one of {members}")
    return Reference(tuple(each for codec in found if isinstance(codec, Reference) for each in codec.classes))


def _of_tuple(arguments: tuple[Any, ...]) -> Codec:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return Many(codec_of(arguments[0]))
    return Several(tuple(map(codec_of, arguments)))
