"""Checks that each thread holds in registers the elements that its computation reads."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import cast

import numpy as np

from argus.core import algebra
from argus.core.index import Index
from argus.core.ir import Get, View
from argus.core.layout import TV, IntArray
from argus.core.walk import evaluate, symbols


def holds_operands(get: Get, target: View) -> bool:
    """Whether each thread holds the elements that `get` reads for this thread's elements of the target."""
    held, wanted = get.view.buffer.layout, target.buffer.layout
    return (
        isinstance(held, TV)
        and isinstance(wanted, TV)
        and is_identity(target.at)
        and threads_hold(get.view, get.at, wanted)
    )


def threads_hold(view: View, at: tuple[Index, ...], wanted: TV) -> bool:
    """Whether each thread holds element `at` of the view for each of its elements under the layout `wanted`.

    at: expressions over the coordinates of the elements of `wanted`.
    """
    held = view.buffer.layout
    if not isinstance(held, TV) or held.threads.size() != wanted.threads.size():
        return False
    if held == wanted and is_identity(at) and is_identity(view.at):
        return True
    if symbols(*at, *view.at):
        return False
    return _holds_elements(held, view.at, at, wanted)


@lru_cache(maxsize=256)
def _holds_elements(held: TV, inner: tuple[Index, ...], at: tuple[Index, ...], wanted: TV) -> bool:
    number = linear_indices(held.tile, inner, evaluate_coordinates(at, wanted.coordinates(), wanted), wanted)
    if number is None:
        return False
    own = np.zeros((held.threads.size(), prod(held.tile)), np.bool_)
    own[np.arange(len(own))[:, None], held.elements()] = True
    return bool(own[np.arange(len(own))[:, None], number].all())


def is_identity(at: tuple[Index, ...]) -> bool:
    """Whether each expression is the coordinate of its own axis."""
    return all(each is algebra.coord(axis) for axis, each in enumerate(at))


def evaluate_coordinates(at: tuple[Index, ...], axes: tuple[IntArray, ...], by: TV) -> tuple[IntArray, ...]:
    """The values of expressions over the coordinates `axes` of a layout's elements, each of shape (threads, values)."""
    shape = (by.threads.size(), by.values.size())
    return tuple(np.broadcast_to(cast(IntArray, evaluate(each, {}, axes)), shape) for each in at)


def linear_indices(tile: tuple[int, ...], at: tuple[Index, ...], axes: tuple[IntArray, ...], by: TV) -> IntArray | None:
    """The linear indices in a tile, first axis fastest, of elements at coordinates; None if one is out of bounds."""
    number, below = np.zeros((by.threads.size(), by.values.size()), np.int64), 1
    for extent, coordinate in zip(tile, evaluate_coordinates(at, axes, by), strict=True):
        if (coordinate < 0).any() or (coordinate >= extent).any():
            return None
        number, below = number + coordinate * below, below * extent
    return number
