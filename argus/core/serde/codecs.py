"""Codecs: the type of a row's field, derived from the annotation of the attribute that it fills."""

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
    """A text."""


@frozen
class Flag:
    """A bool."""


@frozen
class Choice:
    """One of a fixed set of texts."""

    values: tuple[str, ...]


@frozen
class Tree:
    """An integer, or a list of trees."""


@frozen
class Reference:
    """The number of an earlier row whose object is of one of these classes."""

    classes: tuple[type, ...]


@frozen
class Many:
    """A list of any length."""

    item: Codec


@frozen
class Several:
    """A tuple: a list of fixed length with one codec per item."""

    items: tuple[Codec, ...]


@frozen
class Named:
    """A mapping: a list of pairs of a unique text and a value."""

    item: Codec


@frozen
class Optional:
    """null, or a value."""

    item: Codec


Codec = Whole | Real | Text | Flag | Choice | Tree | Reference | Many | Several | Named | Optional

_SIMPLE: Mapping[object, Codec] = {int: Whole(), float: Real(), str: Text(), bool: Flag()}


def codec_of(annotation: Any) -> Codec:  # noqa: ANN401 reason: a type is any object
    """The codec of an annotation. Raises TypeError for an unsupported one: a new attribute may need a new codec."""
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
    others = tuple(member for member in members if member is not NoneType)
    found = codec_of(others[0]) if len(others) == 1 else _of_classes(others)
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
