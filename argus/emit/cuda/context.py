"""Emission context of a CUDA statement: names, memory plan, and the agent that executes it."""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index, Symbol
from argus.core.ir import Buffer, Role, View
from argus.core.layout import Layout
from argus.core.span import Span
from argus.emit.cuda.plan import Plan, box_start, staged_layout
from argus.emit.faults import not_built
from argus.emit.names import Names
from argus.emit.scope import Scope


@frozen
class Context:
    """thread: symbol of the thread index within the agent. threads: of the agent. role: None outside roles."""

    scope: Scope
    plan: Plan
    thread: Symbol
    threads: int
    role: Role | None = None

    @property
    def names(self) -> Names:
        return self.scope.names

    def text(self, node: Index) -> str:
        return self.scope.text.index(node)

    def name_of(self, buffer: Buffer) -> str:
        return self.names.buffers[buffer]

    def barrier_address(self, view: View, span: Span) -> str:
        """Shared-memory address of one mbarrier of this block."""
        if view.buffer.space != "barrier" or len(view.at) != 1 or view.shape:
            raise not_built("a barrier that is not one element of a barrier array", span)
        return _plus(self.name_of(view.buffer), algebra.mul(view.at[0], 8), self)

    def box_address(self, view: View, span: Span, align: int = 1) -> str:
        """Shared address of a box's first element, a fixed point of the swizzle and a multiple of `align` bytes."""
        return self.address_at(view.buffer, box_offset(view.buffer, box_start(view, span), span, align))

    def address_at(self, buffer: Buffer, offset: Index) -> str:
        """Shared-memory address `offset` bytes from the start of a tensor."""
        return _plus(self.name_of(buffer), offset, self)


def _plus(name: str, offset: Index, context: Context) -> str:
    if isinstance(offset, Const) and offset.value == 0:
        return name
    return f"{name} + {context.text(offset)}"


def box_offset(buffer: Buffer, at: tuple[Index, ...], span: Span, align: int = 1) -> Index:
    """Byte offset in a shared tensor of a box that starts at these coordinates.

    Raises ArgusError (E501) unless it is a multiple of the swizzle's period and of `align`.
    """
    layout = staged_layout(buffer)
    size = buffer.dtype.bits // 8
    offset = algebra.mul(unswizzled_offset(layout.layout, at), size)
    period = 1 if layout.swizzle is None else layout.swizzle.period * size
    if algebra.mod(offset, max(period, align)) is not algebra.const(0):
        raise not_built(
            f"a box of `{buffer.name}` at an offset that is not a multiple of {max(period, align)} bytes", span
        )
    return offset


def unswizzled_offset(layout: Layout, at: tuple[Index, ...]) -> Index:
    """Offset in elements of a coordinate, before the swizzle."""
    terms = [mode.at(coordinate) for mode, coordinate in zip(layout, at, strict=True)]
    return algebra.add(*terms)
