"""Map a view of a register tile to the registers of each thread that hold it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from argus.core.index import Index
from argus.core.ir import Buffer, Copy, View
from argus.core.layout import TV
from argus.core.span import Span
from argus.core.walk import IntArray, evaluate, symbols
from argus.emit.faults import not_built
from argus.emit.scope import Scope, c_type, layout_of


def register_values(view: View, by: TV, span: Span, at: tuple[Index, ...] | None = None) -> tuple[int, ...]:
    """For each value index of `by`, the value index of the buffer's own TV layout that holds the same element.

    at: view coordinates as expressions over those of `by` (a broadcast, for example); the identity by default.
    Raises ArgusError (E501) if another thread holds an element, or threads hold it in different registers.
    """
    found = register_table(view, by, span, at)
    if (found != found[0]).any():
        raise not_built(f"a view of registers of `{view.buffer.name}` that differ between threads", span)
    return tuple(int(value) for value in found[0])


def register_table(view: View, by: TV, span: Span, at: tuple[Index, ...] | None = None) -> IntArray:
    """As `register_values`, for each thread by itself: shape (threads, values)."""
    buffer = view.buffer
    if symbols(*view.at, *(at or ())):
        raise not_built(f"registers of `{buffer.name}` chosen at run time", span)
    axes = by.coordinates() if at is None else _evaluate_on_axes(at, by.coordinates(), by)
    wanted = _evaluate_on_axes(view.at, axes, by)
    layout = layout_of(buffer)
    numbers, own = _element_numbers(wanted, layout.tile, _shape(by)), layout.elements()
    found = np.full(numbers.shape, -1, np.int64)
    for value in range(own.shape[1]):
        found[numbers == own[: len(numbers), value : value + 1]] = value
    if (found < 0).any():
        raise not_built(f"a view of registers of `{buffer.name}` that other threads hold", span)
    return found


def _evaluate_on_axes(at: tuple[Index, ...], axes: tuple[IntArray, ...], by: TV) -> tuple[IntArray, ...]:
    return tuple(np.broadcast_to(np.asarray(evaluate(each, {}, axes)), _shape(by)) for each in at)


def _shape(by: TV) -> tuple[int, int]:
    return by.threads.size(), by.values.size()


def _element_numbers(coordinates: tuple[IntArray, ...], tile: tuple[int, ...], shape: tuple[int, int]) -> IntArray:
    """Linear element number of each (thread, value), first axis fastest."""
    number = np.zeros(shape, np.int64)
    below = 1
    for axis, extent in zip(coordinates, tile, strict=True):
        number = number + axis * below
        below *= extent
    return number


# -- vectors -------------------------------------------------------------------------------------------------


@frozen
class RegisterVector:
    """The registers of one vector. pointer: C text; before, after: statements around the access."""

    pointer: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def around(self, access: str) -> list[str]:
        if not self.before and not self.after:
            return [access]
        return ["{", *(f"    {line}" for line in (*self.before, access, *self.after)), "}"]


def vector_runs(copy: Copy, registers: View, first: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The registers of each of a thread's vectors. first: the copy's value at which each vector starts.

    Raises ArgusError (E501) as `register_values`.
    """
    own = register_values(registers, copy.by, copy.span)
    size = len(own) // len(first)
    return tuple(own[value : value + size] for value in first)


def vector_in_registers(buffer: Buffer, run: tuple[int, ...], scope: Scope, *, loads: bool) -> RegisterVector:
    """How an access reaches these registers: directly if they are consecutive and aligned, else through a copy.

    loads: whether the access writes the registers.
    """
    size = len(run)
    if run[0] % size == 0 and run == tuple(range(run[0], run[0] + size)):
        return RegisterVector(scope.pointer(buffer, run[0]))
    declared = f"alignas(16) {c_type(buffer.dtype)} run[{size}];"
    elements = [(f"run[{place}]", scope.element(buffer, register)) for place, register in enumerate(run)]
    if loads:
        return RegisterVector("&run[0]", (declared,), tuple(f"{own} = {place};" for place, own in elements))
    return RegisterVector("&run[0]", (declared, *(f"{place} = {own};" for place, own in elements)))
