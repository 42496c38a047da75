"""Proves symbolically that the vectors of a gathered view are contiguous, where its coordinates have no table (I19).

A vector of length n starts at a multiple n u along one axis of the view. If d is a multiple of n, then for 0 <= e < n
`(n u + e) // d == n u // d` and `(n u + e) % d == n u % d + e`: only the last coordinate depends on e.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from attrs import define, field

from argus.core import algebra
from argus.core.index import Bin, Cmp, Cond, Const, Index, Node, Sum, Symbol
from argus.core.ir import Copy, Strided, View
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.subview import conjuncts, in_bounds_conditions
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.limits import integers
from argus.core.proof.limits.boxes import stride_divisible
from argus.core.proof.obligation import Obligation
from argus.core.walk import fold, rebuild, substitute


def gathered_vector_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """I19: vectors are aligned, and each is either in the tensor or padding; I28: coordinates fit their type."""
    view, buffer = access.view, access.view.buffer
    count = stmt.atom.vector_bits // buffer.dtype.bits
    align = stmt.atom.operands["source"].align
    what = f"`{stmt.atom}` moves {count} consecutive elements of `{buffer.name}` from a multiple of {align} bytes"
    axis = _vector_axis(access, count)
    found = None if axis is None else _SymbolicVector(view, axis, count)
    reason = "vectors that do not begin at multiples of their length in a view" if found is None else found.irregular
    if found is None or reason:
        yield Obligation("I19", what, stmt, algebra.FALSE, step.context, unknown=reason)
        return
    yield from _alignment_obligations(step, stmt, access, found, what)
    yield from integers.gather_width_obligations(step, stmt, access)


def _alignment_obligations(
    step: Step, stmt: Copy, access: Access, found: _SymbolicVector, what: str
) -> Iterator[Obligation]:
    """I19: vectors are aligned, and each lies in the tensor or outside it, never across its edge."""
    buffer, count = access.view.buffer, found.count
    align = stmt.atom.operands["source"].align
    assert isinstance(buffer.layout, Strided)
    wide = max(align * 8 // buffer.dtype.bits, count)
    rows = (stride_divisible(stride, wide) for stride in buffer.layout.strides[:-1])
    plain = buffer.layout.strides[-1] is algebra.const(1) and buffer.align % align == 0
    yield Obligation(
        "I19",
        what,
        stmt,
        algebra.all_of((*found.presumed, *_multiple_conditions(found.first[-1], wide), *rows))
        if plain
        else algebra.FALSE,
        step.context,
        compared=access.shape[0] * access.shape[1] // count,
        help=f"`assume` that the row length is a multiple of {wide}, or use a narrower instruction",
    )
    yield Obligation(
        "I19",
        f"no vector of {count} elements reaches over the edge of `{buffer.name}`",
        stmt,
        algebra.eq(algebra.mod(buffer.shape[-1], count), 0),
        step.context,
        compared=access.shape[0] * access.shape[1] // count,
        help="`assume` that the row length is whole vectors, or use a narrower instruction",
    )


def _vector_axis(access: Access, count: int) -> int | None:
    """The axis of a view along which each vector's coordinates count up from a multiple of its length, if any."""
    if access.by is None or access.shape[1] % count:
        return None
    found: list[int] = []
    for axis, coordinate in enumerate(access.by.coordinates()):
        groups = np.broadcast_to(coordinate, access.shape).reshape(access.shape[0], -1, count)
        first = groups[:, :, :1]
        if (groups == first + np.arange(count)).all() and (first % count == 0).all():
            found.append(axis)
        elif not (groups == first).all():
            return None
    return found[0] if len(found) == 1 or count == 1 else None


@define(eq=False)
class _SymbolicVector:
    """A vector of `count` elements along an axis of a gathered view, at a symbolic position.

    first: coordinates of its first element. presumed: conditions that divisors are multiples of `count`.
    irregular: why the elements are not contiguous; empty if they are.
    """

    view: View
    axis: int
    count: int
    first: tuple[Index, ...] = field(init=False)
    presumed: dict[Cond, None] = field(factory=dict[Cond, None], init=False)
    irregular: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first = self._coordinates(0)
        self.irregular = self._why_irregular()

    def _coordinates(self, element: int) -> tuple[Index, ...]:
        return tuple(cast(Index, self._value_at(at, element)) for at in self.view.at)

    def _value_at(self, node: Index | Cond, element: int) -> Node:
        """The value of an expression over the view's coordinates at one element of the vector."""
        anywhere = integers.arbitrary_element(self.view)
        begin = algebra.mul(algebra.sym(Symbol("vector", "fresh", 0, None)), self.count)
        coords = [algebra.add(begin, element) if a == self.axis else at for a, at in enumerate(anywhere)]
        return fold(substitute(cast(Index, node), {}, coords), self._rewrite_division)

    def _rewrite_division(self, node: Node, parts: Sequence[Node]) -> Node:
        """Rewrite `(n u + e) // d` and `(n u + e) % d`, and record the condition that d is a multiple of n."""
        made = rebuild(node, parts)
        if not isinstance(made, Bin) or made.op not in ("//", "%") or not isinstance(made.left, Sum):
            return made
        rest = made.left.constant % self.count
        begin = algebra.sub(made.left, rest)
        if rest == 0 or algebra.mod(begin, self.count) is not algebra.const(0):
            return made
        self.presumed[algebra.eq(algebra.mod(made.right, self.count), 0)] = None
        if made.op == "//":
            return algebra.floordiv(begin, made.right)
        return algebra.add(algebra.mod(begin, made.right), rest)

    def _why_irregular(self) -> str:
        for element in range(1, self.count):
            *rows, last = self._coordinates(element)
            if (*rows, last) != (*self.first[:-1], algebra.add(self.first[-1], element)):
                return "a vector whose elements a gathered view takes from different rows"
        beyond = [cond for cond in conjuncts(self.view.where) if cond not in in_bounds_conditions(self.view)]
        if not all(self._uniform_in_vector(cond) for cond in beyond):
            return "a vector that a gathered view's condition cuts"
        return ""

    def _uniform_in_vector(self, cond: Cond) -> bool:
        """Whether a condition holds for all elements of a vector or for none.

        That is so if it is constant along the vector, or if it is `x < d`, where x counts the elements and d is a
        multiple of the vector's length.
        """
        first = self._value_at(cond, 0)
        others = [self._value_at(cond, element) for element in range(1, self.count)]
        if all(other is first for other in others):
            return True
        if not isinstance(cond, Cmp) or cond.op != "<=":
            return False
        left, right = (cast(Index, self._value_at(side, 0)) for side in (cond.left, cond.right))
        begins = algebra.mod(algebra.sub(left, 1), self.count) is algebra.const(0)
        counts = all(
            self._value_at(cond.left, element) is algebra.add(left, element)
            and self._value_at(cond.right, element) is right
            for element in range(1, self.count)
        )
        self.presumed[algebra.eq(algebra.mod(right, self.count), 0)] = None
        return begins and counts


def _multiple_conditions(node: Index, wide: int) -> Iterator[Cond]:
    """Sufficient conditions for `node` to be a multiple of `wide`; for a remainder, both its operands must be."""
    if isinstance(node, Bin) and node.op == "%" and not isinstance(node.right, Const):
        yield from _multiple_conditions(node.left, wide)
        yield algebra.eq(algebra.mod(node.right, wide), 0)
    else:
        yield algebra.eq(algebra.mod(node, wide), 0)
