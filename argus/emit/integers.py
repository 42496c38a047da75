"""Integer tensor elements inside index expressions: each use is emitted as a load.

I37 proves that the load is in bounds wherever the statement executes; E220 checks that no one writes the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from argus.core.check.reads import read_terms
from argus.core.ir import Assert, Assume, Buffer, Kernel, Strided, Tag, walk
from argus.emit.c_expr import CText, ElementText
from argus.emit.faults import not_built
from argus.emit.names import Names

_NO_UNIT = 1 << 30


def tensors_read(kernel: Kernel) -> tuple[Buffer, ...]:
    """The tensors that index expressions load from, in parameter order. Claims and tags emit no load."""
    stmts = [stmt for stmt in walk(kernel.body) if not isinstance(stmt, Tag | Assert | Assume)]
    used = {term.array for stmt in stmts for term in read_terms(stmt)}
    return tuple(buffer for buffer in kernel.parameters if buffer.name in used)


def element_reads(kernel: Kernel, names: Names) -> ElementText | None:
    """How to emit those loads; None if no expression loads."""
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

    return ElementText(coordinate, element)
