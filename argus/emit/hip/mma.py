"""Emit `Mma` on gfx942: MFMA instructions on a wave's registers."""

from __future__ import annotations

from itertools import product

from argus.core.algebra import FALSE, TRUE
from argus.core.ir import Buffer, Kernel, Mma, walk
from argus.core.layout import Layout
from argus.emit.faults import not_built
from argus.emit.loops import unrolled_loops
from argus.emit.scope import Scope, c_type, whole_register_buffer

INTEGERS = """\
using i32x4 = int __attribute__((vector_size(16)));
using i32x16 = int __attribute__((vector_size(64)));
HELPER long operand(const signed char* first) { return *(const long __attribute__((may_alias))*)first; }
"""


def multiplies_integers(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Mma) and stmt.target.buffer.dtype.family == "int" for stmt in walk(kernel.body))


def accumulator_type(buffer: Buffer, width: int) -> str:
    """The C type of the registers of an accumulator that one instruction takes."""
    return f"{c_type(buffer.dtype)}x{width}"


def mma_lines(mma: Mma, scope: Scope, *, written_out: bool = False) -> list[str]:
    """All instructions of the tile: loops over k, n and m, with m innermost.

    written_out: no loops over n and m, so that sums have constant indices before the compiler unrolls anything, and
    each stays a vector. Else it may join all vectors of an array into one, and needs more wait states (`s_nop`).
    """
    target, a, b = (whole_register_buffer(view, None, mma.span) for view in (mma.target, mma.a, mma.b))
    width = scope.accumulators[target]
    rows, columns, depth = mma.tiling.repeat
    where = {
        "a": affine(mma.tiling.a, (rows, depth), ("mm", "kk"), 1),
        "b": affine(mma.tiling.b, (columns, depth), ("nn", "kk"), 1),
        "c": affine(mma.tiling.c, (rows, columns), ("mm", "nn"), width),
    }
    if None in where.values():
        raise not_built("a matrix product whose fragments are not evenly spaced in registers", mma.span)
    names = scope.names.buffers
    sum_ = f"{names[target]}[{where['c']}]"
    call = mma.atom.spelling["gfx942"].format(
        a=f"operand(&{names[a]}[{where['a']}])", b=f"operand(&{names[b]}[{where['b']}])", c=sum_
    )
    cleared = _clear(mma, scope, accumulator_type(target, width))
    if not written_out:
        counters = [("kk", depth), ("nn", columns), ("mm", rows)]
        return [*cleared, *unrolled_loops(counters, f"{sum_} =", f"    {call};")]
    each = [
        line
        for n, m in product(range(columns), range(rows))
        for line in (f"    {{ constexpr int nn = {n}, mm = {m}; {sum_} =", f"        {call}; }}")
    ]
    return [*cleared, *unrolled_loops([("kk", depth)], "{", *each, "}")]


def _clear(mma: Mma, scope: Scope, kind: str) -> list[str]:
    if mma.init is FALSE:
        return []
    target = scope.names.buffers[mma.target.buffer]
    rows, columns, _ = mma.tiling.repeat
    width = scope.accumulators[mma.target.buffer]
    index = affine(mma.tiling.c, (rows, columns), ("mm", "nn"), width)
    loop = unrolled_loops([("nn", columns), ("mm", rows)], f"{target}[{index}] = {kind}{{}};")
    if mma.init is TRUE:
        return loop
    return [f"if ({scope.text.cond(mma.init)}) {{", *(f"    {line}" for line in loop), "}"]


def affine(layout: Layout, extents: tuple[int, int], names: tuple[str, str], unit: int) -> str | None:
    """C text of `layout / unit` over the two repeat counters; None if it is not affine in them."""
    table = layout.table().reshape(extents, order="F")
    down = int(table[1, 0] - table[0, 0]) if extents[0] > 1 else 0
    across = int(table[0, 1] - table[0, 0]) if extents[1] > 1 else 0
    first = int(table[0, 0])
    for i in range(extents[0]):
        for j in range(extents[1]):
            if int(table[i, j]) != first + down * i + across * j or int(table[i, j]) % unit:
                return None
    terms = [name if f == unit else f"{f // unit} * {name}" for name, f in zip(names, (down, across), strict=True) if f]
    return " + ".join([*terms, *([str(first // unit)] if first or not terms else [])])
