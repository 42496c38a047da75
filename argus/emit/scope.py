"""What the text of a statement depends on besides the statement itself."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from argus.core.dtype import DType
from argus.core.index import Symbol
from argus.core.ir import Buffer, Copy, Kernel, Mma, View, walk, whole
from argus.core.layout import TV
from argus.core.span import Span
from argus.emit.c_expr import CText
from argus.emit.faults import not_built
from argus.emit.integers import elements_of
from argus.emit.names import Names, assign

_C_TYPES = {"bf16": "bf16", "f16": "f16", "f32": "f32", "i32": "i32", "e4m3": "unsigned char"}


def c_type(dtype: DType) -> str:
    """The type of one stored element."""
    return _C_TYPES[dtype.name]


@frozen
class Scope:
    """One kernel's names, its accumulators (buffers kept as vectors of so many elements) and its target's name."""

    text: CText
    thread: Symbol
    threads: int
    accumulators: Mapping[Buffer, int]
    target: str = "gfx942"

    @property
    def names(self) -> Names:
        return self.text.names

    def element(self, buffer: Buffer, value: int | str) -> str:
        """The lvalue of one value that a thread holds."""
        name = self.names.buffers[buffer]
        width = self.accumulators.get(buffer)
        if width is None:
            return f"{name}[{value}]"
        if isinstance(value, int):
            return f"{name}[{value // width}][{value % width}]"
        return f"{name}[{value} / {width}][{value} % {width}]"

    def pointer(self, buffer: Buffer, value: int) -> str:
        """The address of one value that a thread holds."""
        width = self.accumulators.get(buffer)
        if width is None:
            return f"&{self.element(buffer, value)}"
        return f"({c_type(buffer.dtype)}*)&{self.names.buffers[buffer]}[{value // width}] + {value % width}"


def scope_of(kernel: Kernel) -> Scope:
    """Raises ArgusError (E501) if two instructions want one accumulator in different widths."""
    names = assign(kernel)
    text = CText(names, kernel.thread, kernel.target.unit, elements=elements_of(kernel, names))
    return Scope(text, kernel.thread, kernel.threads, _accumulators(kernel))


def _accumulators(kernel: Kernel) -> dict[Buffer, int]:
    widths: dict[Buffer, int] = {}
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Mma):
            continue
        tv = stmt.atom.operands["c"].tv
        width = tv.values.size() if tv is not None else 1
        if widths.setdefault(stmt.target.buffer, width) != width:
            raise not_built("one accumulator of two instructions of different shapes", stmt.span, kernel.name)
    return widths


def held_by(view: View, by: TV | None, span: Span) -> Buffer:
    """The register buffer that a view is the whole of. Raises ArgusError (E501) for a part or a permutation."""
    if not is_whole(view, by):
        raise not_built(f"a view of a part of the registers `{view.buffer.name}`", span)
    return view.buffer


def is_whole(view: View, by: TV | None) -> bool:
    """Whether a view is all of a register buffer, held as `by` says."""
    buffer = view.buffer
    same = view.shape == buffer.shape and view.at == whole(buffer).at and view.peer is None
    return same and (by is None or buffer.layout == by)


def layout_of(buffer: Buffer) -> TV:
    assert isinstance(buffer.layout, TV), f"registers {buffer.name} have no thread-value layout"
    return buffer.layout


def descriptors(kernel: Kernel) -> tuple[Buffer, ...]:
    """The tensors that buffer instructions address, in the order of the parameters."""
    used = {view.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy) for view in _ranged(stmt)}
    return tuple(buffer for buffer in kernel.parameters if buffer in used)


def _ranged(copy: Copy) -> tuple[View, ...]:
    if copy.atom.edge != "range_zero":
        return ()
    return tuple(view for view in (copy.source, copy.target) if view.buffer.space == "global")
