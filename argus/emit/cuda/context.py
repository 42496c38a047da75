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
        """The shared address of one barrier."""
        if view.buffer.space != "barrier" or len(view.at) != 1 or view.shape or view.peer is not None:
            raise not_built("a barrier that is no element of this block's", span)
        return _plus(self.own(view.buffer), algebra.mul(view.at[0], 8), self)

    def box(self, view: View, span: Span) -> str:
        """The shared address of a box's first element, which no swizzle moves."""
        return _plus(self.own(view.buffer), box_offset(view, span), self)


def _plus(name: str, offset: Index, context: Context) -> str:
    if isinstance(offset, Const) and offset.value == 0:
        return name
    return f"{name} + {context.text(offset)}"


def box_offset(view: View, span: Span) -> Index:
    """Bytes from the start of a shared tensor to the first element of a box of it.

    Raises ArgusError (E501) unless the box begins at a whole period of the swizzle's rows.
    """
    layout = staged(view.buffer)
    size = view.buffer.dtype.bits // 8
    offset = algebra.mul(linear(layout.layout, start(view, span)), size)
    period = 1 if layout.swizzle is None else layout.swizzle.period * size
    if algebra.mod(offset, period) is not algebra.const(0):
        raise not_built(f"a box of `{view.buffer.name}` that begins within a period of its swizzle", span)
    return offset


def linear(layout: Layout, at: tuple[Index, ...]) -> Index:
    """The unswizzled offset in elements of a coordinate."""
    terms = [mode.at(coordinate) for mode, coordinate in zip(layout, at, strict=True)]
    return algebra.add(*terms)
