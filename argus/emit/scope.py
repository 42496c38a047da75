"""Emission context of a kernel: names, accumulator vector types, and views of register buffers."""

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
from argus.emit.integers import element_reads
from argus.emit.names import Names, assign_names

_C_TYPES = {"bf16": "bf16", "f16": "f16", "f32": "f32", "i8": "signed char", "i32": "i32", "i64": "long long"}


def c_type(dtype: DType) -> str:
    """The C type of one element in memory."""
    return _C_TYPES.get(dtype.name, "unsigned char")


@frozen
class Scope:
    """One kernel's names and target. accumulators: vector width of each buffer that an MMA accumulates into."""

    text: CText
    thread: Symbol
    threads: int
    accumulators: Mapping[Buffer, int]
    target: str = "gfx942"

    @property
    def names(self) -> Names:
        return self.text.names

    def element(self, buffer: Buffer, value: int | str) -> str:
        """C lvalue of one register value of a thread."""
        name = self.names.buffers[buffer]
        width = self.accumulators.get(buffer)
        if width is None:
            return f"{name}[{value}]"
        if isinstance(value, int):
            return f"{name}[{value // width}][{value % width}]"
        return f"{name}[{value} / {width}][{value} % {width}]"

    def pointer(self, buffer: Buffer, value: int) -> str:
        """C pointer to one register value of a thread."""
        width = self.accumulators.get(buffer)
        if width is None:
            return f"&{self.element(buffer, value)}"
        return f"({c_type(buffer.dtype)}*)&{self.names.buffers[buffer]}[{value // width}] + {value % width}"


def scope_of(kernel: Kernel) -> Scope:
    """Build the scope. Raises ArgusError (E501) if two instructions need different widths of one accumulator."""
    names = assign_names(kernel)
    text = CText(names, kernel.thread, kernel.target.unit, elements=element_reads(kernel, names))
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


def whole_register_buffer(view: View, by: TV | None, span: Span) -> Buffer:
    """The register buffer that a view covers completely. Raises ArgusError (E501) for a part or a permutation."""
    if not is_whole(view, by):
        raise not_built(f"a view of a part of the registers `{view.buffer.name}`", span)
    return view.buffer


def is_whole(view: View, by: TV | None) -> bool:
    """Whether a view is the identity view of a register buffer, in the TV layout `by`."""
    buffer = view.buffer
    same = view.shape == buffer.shape and view.at == whole(buffer).at and view.peer is None
    return same and (by is None or buffer.layout == by)


def layout_of(buffer: Buffer) -> TV:
    assert isinstance(buffer.layout, TV), f"registers {buffer.name} have no thread-value layout"
    return buffer.layout


def described_buffers(kernel: Kernel) -> tuple[Buffer, ...]:
    """The tensors that need a buffer resource descriptor (V#), in parameter order."""
    used = {view.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy) for view in _range_checked_views(stmt)}
    return tuple(buffer for buffer in kernel.parameters if buffer in used)


def _range_checked_views(copy: Copy) -> tuple[View, ...]:
    if copy.atom.edge != "range_zero":
        return ()
    return tuple(view for view in (copy.source, copy.target) if view.buffer.space == "global")
