"""Matrix products that stay between the waits and barriers that the program has them between.

LLVM may move a matrix instruction, which accesses no memory, across any wait, and a load across a wait that no register
of it depends on. Helpers of the prelude clobber memory, and `sched_barrier(0)` on both sides of a wait or barrier lets
no instruction pass. Both act on what is in order already: so sums of products before a boundary are read by empty
assembly ahead of it, and what products after it add to, or multiply, is made by empty assembly behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.ir import Alloc, Buffer, Kernel, Mma, Stmt, bodies
from argus.core.proof.limits.budgets import register_words
from argus.emit.hip.intervals import Boundary, intervals, products_around
from argus.emit.loops import unrolled_loops
from argus.emit.scope import Scope, layout_of

_OPERAND_BITS = 64
"""Bits of the registers that a matrix instruction takes as an operand."""
_MOST_WORDS = 128
"""Half of a lane's ArchVGPRs. Of more sums the compiler keeps a part in AccVGPRs, and would move it back and forth."""


@frozen
class Held:
    """C lines ahead of a boundary and behind it."""

    ahead: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


def held_products(kernel: Kernel, scope: Scope) -> dict[Boundary, Held]:
    """What holds the products around each boundary in their places.

    Sums in accumulation registers stay where they are, and `sched_barrier` alone holds their products.
    """
    around = products_around(intervals(kernel))
    sums = {each.target.buffer for products in around.values() for each in (*products[0], *products[1])}
    declared = dict(_declared(kernel.body, frozenset()))
    taken = {each for each in sums if each.file == "accumulation"}
    if sum(map(register_words, sums - taken)) > _MOST_WORDS:
        taken = sums
    return {
        boundary: Held(
            _lines((each.target.buffer for each in before), declared[boundary] - taken, scope),
            _lines((_begun_by(each) for each in after), declared[boundary] - taken, scope),
        )
        for boundary, (before, after) in around.items()
    }


def _begun_by(product: Mma) -> Buffer:
    """Registers without which a product cannot begin: its sums or, if they start from zero, the smaller operand."""
    if product.init is not TRUE:
        return product.target.buffer
    return min((product.a.buffer, product.b.buffer), key=lambda each: layout_of(each).values.size())


def _declared(body: Sequence[Stmt], known: frozenset[Buffer]) -> Iterator[tuple[Boundary, frozenset[Buffer]]]:
    """The register buffers that the text has declared where a boundary stands."""
    for stmt in body:
        if isinstance(stmt, Alloc):
            known |= {stmt.buffer}
        elif isinstance(stmt, Boundary):
            yield stmt, known
        for part in bodies(stmt):
            yield from _declared(part, known)


def _lines(buffers: Iterator[Buffer], declared: frozenset[Buffer], scope: Scope) -> tuple[str, ...]:
    found = [each for each in dict.fromkeys(buffers) if each in declared]
    return tuple(line for each in found for line in _pass(each, scope))


def _pass(buffer: Buffer, scope: Scope) -> list[str]:
    name, values, width = scope.names.buffers[buffer], layout_of(buffer).values.size(), scope.accumulators.get(buffer)
    if width is not None:
        return unrolled_loops([("at", values // width)], f"held({name}[at]);")
    return unrolled_loops([("at", values * buffer.dtype.bits // _OPERAND_BITS)], f"held(((b64*){name})[at]);")
