"""Keep accumulators in AGPRs (accumulation registers) on gfx942.

Inline assembly that clobbers AGPR n makes LLVM reserve n + 1 AGPRs and select the AGPR form of every MFMA [LLVM AMDGPU
backend, attribute "amdgpu-agpr-alloc", inferred from inline assembly]. A loop-carried accumulator must not start as a
constant: LLVM would split it into single registers and copy all of them in every iteration.
"""

from __future__ import annotations

from argus.core.ir import Alloc, Buffer, Kernel, walk
from argus.core.proof.limits.budgets import accumulation_words
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.loops import unrolled_loops
from argus.emit.scope import Scope

ACCUMULATION = """\
// Places an accumulator in AGPRs and hides its value from the compiler.
template <class T> HELPER void accumulated(T& sum) { asm volatile("" : "+a"(sum)); }
"""


def uses_agprs(kernel: Kernel) -> bool:
    return _agpr_words(kernel) > 0


def reserve_agprs(kernel: Kernel) -> list[str]:
    """The statement at the top of the kernel that reserves the AGPRs its accumulators need."""
    words = min(_agpr_words(kernel), kernel.target.accumulation)
    return [f'asm volatile("" : : : "a{words - 1}");  // {words} accumulation registers'] if words else []


def move_to_agprs(target: Buffer, scope: Scope, span: Span) -> list[str]:
    """Move an assigned accumulator to AGPRs, if its buffer asks for them.

    Raises ArgusError (E501) for a buffer that no MFMA accumulates into.
    """
    if target.file == "any":
        return []
    width = scope.accumulators.get(target)
    if width is None:
        raise not_built(
            f"`{target.name}` in accumulation registers, which is not an accumulator of a matrix instruction,", span
        )
    count = accumulation_words(target) // width
    return unrolled_loops([("at", count)], f"accumulated({scope.names.buffers[target]}[at]);")


def _agpr_words(kernel: Kernel) -> int:
    tiles = {stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc)}
    return sum(accumulation_words(each) for each in tiles if each.space == "register")
