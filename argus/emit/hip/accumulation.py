"""Sums in accumulation registers: how the compiler is brought to keep them there.

A kernel that names an accumulation register has so many of them, and then every matrix instruction sums into them
[LLVM, AMDGPU backend: attribute "amdgpu-agpr-alloc", inferred from inline assembly]. What a loop carries must not begin
as a constant: the compiler would split it into single registers, and copy all of them in every trip.
"""

from __future__ import annotations

from argus.core.ir import Alloc, Buffer, Kernel, walk
from argus.core.proof.limits.budgets import accumulation_words
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.loops import loops
from argus.emit.scope import Scope

ACCUMULATION = """\
// A sum is in accumulation registers here, and the compiler does not know what it is.
template <class T> HELPER void accumulated(T& sum) { asm volatile("" : "+a"(sum)); }
"""


def accumulates(kernel: Kernel) -> bool:
    return _words(kernel) > 0


def reservation(kernel: Kernel) -> list[str]:
    """The first statement of a kernel whose sums are in accumulation registers: it takes as many as these need."""
    words = min(_words(kernel), kernel.target.accumulation)
    return [f'asm volatile("" : : : "a{words - 1}");  // {words} accumulation registers'] if words else []


def begun(target: Buffer, scope: Scope, span: Span) -> list[str]:
    """After an assignment: sums that are to be in accumulation registers are put there.

    Raises ArgusError (E501) for what no product sums into.
    """
    if target.file == "any":
        return []
    width = scope.accumulators.get(target)
    if width is None:
        raise not_built(f"`{target.name}` in accumulation registers, which no matrix instruction sums into,", span)
    count = accumulation_words(target) // width
    return loops([("at", count)], f"accumulated({scope.names.buffers[target]}[at]);")


def _words(kernel: Kernel) -> int:
    tiles = {stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc)}
    return sum(accumulation_words(each) for each in tiles if each.space == "register")
