"""Integers that types of floats have: an integer that passes through a narrower type may be rounded there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from argus.core.dtype import DType, bf16, f16, f32
from argus.core.ir import Buffer, Cast, Copy, Elem, Fold, Kernel, Map, Mma, Num, walk
from argus.core.ir.element_walk import dtype_of, nodes
from argus.core.proof.values.held.deciding import deciding
from argus.core.values.expr import Element, Expr

_KERNELS = 16
_WHOLE = {f32: 1 << 24, f16: 1 << 11, bf16: 1 << 8}


def whole_numbers(types: Iterable[DType]) -> int:
    """The size up to which all of these types of floats have all integers; 0 where that is not known of one.

    Of no types, that of f32, in which all that is not rounded to a type is computed.
    """
    return min((_WHOLE.get(each, 0) for each in types), default=_WHOLE[f32])


def limits(kernel: Kernel, before: Iterable[Expr], target: Buffer, later: frozenset[Buffer]) -> tuple[int, bool]:
    """The size of integers that no statement rounds, 0 if earlier launches may have; whether a tile decides something.

    before: what earlier launches left. later: as for `deciding`.
    """
    most = exact_up_to(kernel) if all(isinstance(each, Element) for each in before) else 0
    return most, target in deciding(kernel, later)


@lru_cache(maxsize=_KERNELS)
def exact_up_to(kernel: Kernel) -> int:
    """The size of integers that no statement rounds, of those that no earlier launch has rounded."""
    return whole_numbers(_computed_types(kernel))


def _computed_types(kernel: Kernel) -> Iterator[DType]:
    """The types of floats to which statements of a kernel round what they compute."""
    for stmt in walk(kernel.body):
        moved = isinstance(stmt, Copy) and stmt.source.buffer.dtype == stmt.target.buffer.dtype
        if isinstance(stmt, Map | Fold | Mma | Copy) and not moved:
            yield from (each for each in (stmt.target.buffer.dtype,) if each.family == "float")
        if isinstance(stmt, Map):
            casts = (node.dtype for node in nodes(stmt.elem) if isinstance(node, Cast))
            yield from (each for each in casts if each.family == "float")


def rounds_places(elem: Elem, own: DType) -> Iterator[DType]:
    """The types narrower than f32 to which integers of the program may be rounded in an expression."""
    found = nodes(elem)
    if any(isinstance(node, Num) for node in found):
        kinds = (dtype_of(node) for node in found if isinstance(node, Elem))
        narrow = (each for each in (own, *kinds) if each is not None and each.family == "float")
        yield from dict.fromkeys(each for each in narrow if each.bits < f32.bits)
