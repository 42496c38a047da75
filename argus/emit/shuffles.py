"""Emit copies of registers to registers: each lane reads an element that a lane of its warp holds."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.ir import Copy
from argus.core.layout import TV, IntArray
from argus.core.walk import evaluate, substitute, symbols
from argus.emit.arithmetic import converted, literal
from argus.emit.faults import not_built
from argus.emit.lanes import LaneText
from argus.emit.scope import Scope, c_type, layout_of, whole_register_buffer


def is_shuffle(copy: Copy) -> bool:
    """Whether a copy moves registers to registers."""
    return copy.source.buffer.space == "register" and copy.target.buffer.space == "register"


def shuffle_lines(copy: Copy, scope: Scope, unit: int) -> list[str]:
    """A block of C statements. unit: lanes of a warp.

    Raises ArgusError (E501) for an element that no lane of the warp holds, or that is chosen at run time.
    """
    source, dtype = copy.source.buffer, copy.source.buffer.dtype
    target = whole_register_buffer(copy.target, copy.by, copy.span)
    registers = layout_of(source).values.size()
    cells = _cells(copy, unit)
    lanes = LaneText(scope, unit)
    body = list(lanes.declared)
    for value, own in enumerate(cells):
        found = lanes.fetched(lambda register: scope.element(source, register), c_type(dtype), own[None], registers)
        at = copy.by.coordinates_at(algebra.sym(scope.thread), value)
        inside = substitute(copy.source.where, {}, at)
        text = found.value
        if inside is not algebra.TRUE:
            # The read stands outside the choice: every lane of the warp takes part in it.
            body.append("{")
            body += [f"    {line}" for line in (*found.declared, *found.lines)]
            body.append(f"    const {c_type(dtype)} read = {text};")
            fill = converted(literal(copy.edge or 0.0, dtype), dtype)
            body.append(f"    {scope.element(target, value)} = {scope.text.cond(inside)} ? read : {fill};")
            body.append("}")
        else:
            body += ["{", *(f"    {line}" for line in (*found.declared, *found.lines))]
            body += [f"    {scope.element(target, value)} = {text};", "}"]
    return ["{", *(f"    {line}" for line in body), "}"]


def _cells(copy: Copy, unit: int) -> IntArray:
    """For each target register and thread, lane times registers plus register of what it reads; -1 for nothing."""
    view, by = copy.source, copy.by
    held = layout_of(view.buffer)
    if symbols(*view.at, view.where) or held.threads.size() % unit:
        raise not_built(f"a shuffle of registers of `{view.buffer.name}` chosen at run time", copy.span)
    axes, shape = by.coordinates(), (by.threads.size(), by.values.size())
    inside = np.broadcast_to(np.asarray(evaluate(view.where, {}, axes)), shape)
    number, below = np.zeros(shape, np.int64), 1
    for extent, at in zip(held.tile, view.at, strict=True):
        number, below = number + np.asarray(evaluate(at, {}, axes)) * below, below * extent
    return _located(held, np.where(inside, number, -1), unit, copy).T


def _located(held: TV, number: IntArray, unit: int, copy: Copy) -> IntArray:
    """Where the warp of each thread holds the elements with these numbers; an own register rather than another's."""
    elements = held.elements()
    registers = elements.shape[1]
    found = np.full(number.shape, -1, np.int64)
    for first in range(0, len(elements), unit):
        place = {int(each): cell for cell, each in reversed(list(enumerate(elements[first : first + unit].ravel())))}
        for lane in range(unit):
            own = {int(each): lane * registers + register for register, each in enumerate(elements[first + lane])}
            for value, each in enumerate(number[first + lane].tolist()):
                if each >= 0 and each not in place:
                    raise not_built(f"a shuffle of `{copy.source.buffer.name}` between warps", copy.span)
                found[first + lane, value] = -1 if each < 0 else own.get(each, place.get(each, -1))
    return found
