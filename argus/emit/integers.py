"""Integers from memory in expressions: the tensor's element, read wherever the program speaks of it.

That it exists is proved wherever the statement is executed (I37), and that nobody changes it is checked (E220).
"""

from __future__ import annotations

from collections.abc import Sequence

from argus.core.check.reads import reads
from argus.core.ir import Assert, Assume, Buffer, Kernel, Strided, Tag, walk
from argus.emit.c_expr import CText, Elements
from argus.emit.faults import not_built
from argus.emit.names import Names

_NO_UNIT = 1 << 30


def tensors_read(kernel: Kernel) -> tuple[Buffer, ...]:
    """The tensors of which expressions read elements, in the order of the parameters; claims and tags read nothing."""
    stmts = [stmt for stmt in walk(kernel.body) if not isinstance(stmt, Tag | Assert | Assume)]
    used = {term.array for stmt in stmts for term in reads(stmt)}
    return tuple(buffer for buffer in kernel.parameters if buffer.name in used)


def elements_of(kernel: Kernel, names: Names) -> Elements | None:
    """The text of what expressions read; None where they read nothing."""
    tensors = {buffer.name: buffer for buffer in tensors_read(kernel)}
    if not tensors:
        return None
    text = CText(names, kernel.thread, _NO_UNIT)

    def element(array: str, at: Sequence[str]) -> str:
        buffer = tensors[array]
        assert isinstance(buffer.layout, Strided), array
        strides = [text.factor(stride, "(long)") for stride in buffer.layout.strides]
        terms = [
            f"({place})" if stride == "1" and len(at) > 1 else place if stride == "1" else f"({place}) * {stride}"
            for place, stride in zip(at, strides, strict=True)
        ]
        return f"{names.buffers[buffer]}[{' + '.join(terms) or '0'}]"

    def coordinate(axis: int) -> str:
        raise not_built(f"an index expression with the coordinate {axis} of no element in it", kernel.span, kernel.name)

    return Elements(coordinate, element)
