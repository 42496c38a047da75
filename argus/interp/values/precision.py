"""What rounding may change of the numbers of a run, by the types in which it computes."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from argus.core.check import views
from argus.core.dtype import DType
from argus.core.ir import Cast, Kernel, Map, walk
from argus.core.ir.element_walk import nodes

_UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4, "e4m3fnuz": 2.0**-4, "e5m2fnuz": 2.0**-3}
"""Half the distance of 1 from the next number of types that are narrower than f32."""


@frozen
class Precision:
    """What a program may be off, relatively. unit: in an operation or a constant. addition: in an addition."""

    unit: float
    addition: float


IN_FLOAT64 = Precision(2.0**-22, 2.0**-44)
"""Of operations in float64: constants such as log2(e) are often rounded to f32 in a program's text."""
_IN_F32 = Precision(2.0**-22, 2.0**-22)


def unit_of(dtype: DType) -> float:
    """What a number of a type may be off that is stored once."""
    return _UNITS.get(dtype.name, _IN_F32.unit)


def precision_of(kernels: Iterable[Kernel]) -> Precision:
    """That of kernels whose numbers are rounded to their types: of the narrowest in which one computes or stores."""
    most = max((unit_of(each) for kernel in kernels for each in _types(kernel)), default=_IN_F32.unit)
    return Precision(most, most)


def _types(kernel: Kernel) -> Iterable[DType]:
    for stmt in walk(kernel.body):
        yield from (view.buffer.dtype for view in views(stmt))
        if isinstance(stmt, Map):
            yield from (node.dtype for node in nodes(stmt.elem) if isinstance(node, Cast))
