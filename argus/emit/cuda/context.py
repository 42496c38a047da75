"""What the text of a statement in a CUDA kernel depends on: names, the plan, and who runs it."""

from __future__ import annotations

from attrs import frozen

from argus.core import algebra
from argus.core.index import Const, Index, Symbol
from argus.core.ir import Buffer, Role, View
from argus.core.layout import Layout
from argus.core.span import Span
from argus.emit.cuda.plan import Plan, staged, start
from argus.emit.faults import not_built
from argus.emit.names import Names
from argus.emit.scope import Scope


@frozen
class Context:
    """thread: the symbol of a thread within its agent; threads: of one agent; role: None outside of roles."""

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

    def own(self, buffer: Buffer) -> str:
        return self.names.buffers[buffer]

    def event(self, view: View, span: Span) -> str:
        """The address of one barrier in the shared memory of this block."""
        if view.buffer.space != "barrier" or len(view.at) != 1 or view.shape:
            raise not_built("a barrier that is no element of an array of them", span)
        return _plus(self.own(view.buffer), algebra.mul(view.at[0], 8), self)

    def box(self, view: View, span: Span, align: int = 1) -> str:
        """The shared address of a box's first element, which no swizzle moves, a multiple of `align` bytes."""
        return self.beyond(view.buffer, box_offset(view.buffer, start(view, span), span, align))

    def beyond(self, buffer: Buffer, offset: Index) -> str:
        """A shared address so many bytes from the start of a tensor."""
        return _plus(self.own(buffer), offset, self)


def _plus(name: str, offset: Index, context: Context) -> str:
    if isinstance(offset, Const) and offset.value == 0:
        return name
    return f"{name} + {context.text(offset)}"


def box_offset(buffer: Buffer, at: tuple[Index, ...], span: Span, align: int = 1) -> Index:
    """Bytes from the start of a shared tensor to the element at these coordinates, where a box of it begins.

    Raises ArgusError (E501) unless that is at a whole period of the swizzle's rows, and at a multiple of `align`.
    """
    layout = staged(buffer)
    size = buffer.dtype.bits // 8
    offset = algebra.mul(linear(layout.layout, at), size)
    period = 1 if layout.swizzle is None else layout.swizzle.period * size
    if algebra.mod(offset, max(period, align)) is not algebra.const(0):
        raise not_built(f"a box of `{buffer.name}` that begins at no multiple of {max(period, align)} bytes", span)
    return offset


def linear(layout: Layout, at: tuple[Index, ...]) -> Index:
    """The unswizzled offset in elements of a coordinate."""
    terms = [mode.at(coordinate) for mode, coordinate in zip(layout, at, strict=True)]
    return algebra.add(*terms)
