"""The text of copies and products on the copy engine and the matrix unit."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.algebra import FALSE, TRUE
from argus.core.index import Index
from argus.core.ir import Copy, Mma, static
from argus.core.layout import TV
from argus.core.walk import substitute
from argus.emit.cuda.context import Context, linear
from argus.emit.cuda.plan import staged, start, swizzle_bytes
from argus.emit.faults import not_built
from argus.emit.registers import register_values
from argus.emit.scope import held_by


def copy_lines(copy: Copy, context: Context) -> list[str]:
    """Raises ArgusError (E501) for a copy that is not emitted yet."""
    name = copy.atom.name
    if copy.peers is not None or copy.combine is not None:
        raise not_built("a copy to several blocks, or one that combines", copy.span)
    if name.startswith("tma_load"):
        return [_tma_load(copy, context)]
    if name.startswith("tma_store"):
        return [_tma_store(copy, context)]
    if name == "stmatrix_x4":
        return list(_stmatrix(copy, context))
    raise not_built(f"the copy `{name}`", copy.span)


def _coordinates(at: tuple[Index, ...], context: Context) -> str:
    """Columns first, as the copy engine counts."""
    if len(at) != 2:
        raise not_built(f"a box of a tensor of {len(at)} axes")
    return ", ".join(context.text(coordinate) for coordinate in reversed(at))


def _tma_load(copy: Copy, context: Context) -> str:
    assert copy.signal is not None
    target, event = context.box(copy.target, copy.span), context.event(copy.signal, copy.span)
    at = _coordinates(start(copy.source, copy.span), context)
    return f"tma_load_2d({target}, &{context.plan.map_of(copy).name}, {event}, {at});"


def _tma_store(copy: Copy, context: Context) -> str:
    source = context.box(copy.source, copy.span)
    at = _coordinates(start(copy.target, copy.span), context)
    return f"tma_store_2d(&{context.plan.map_of(copy).name}, {source}, {at});"


# -- products ------------------------------------------------------------------------------------------------


def mma_lines(mma: Mma, context: Context) -> list[str]:
    """One group of products, with the steps along k from the first to the last."""
    assert mma.atom.mnk is not None
    _, n, k = mma.atom.mnk
    if not mma.atom.name.startswith("wgmma") or mma.a.buffer.space != "shared" or mma.b.buffer.space != "shared":
        raise not_built(f"the product `{mma.atom}`", mma.span)
    steps = static(mma.a.shape[-1]) // k
    for view in (mma.a, mma.b):
        span = swizzle_bytes(staged(view.buffer).swizzle, view.buffer.dtype.bits // 8, mma.span)
        row = static(view.shape[-1]) * view.buffer.dtype.bits // 8
        if span != 128 or row != span:
            raise not_built(f"an operand with rows of {row} bytes under a swizzle of {span}", mma.span)
    target = context.own(held_by(mma.target, None, mma.span))
    stride = k * mma.a.buffer.dtype.bits // 8 // 16
    keep = "1" if mma.init is FALSE else "0" if mma.init is TRUE else f"!({context.scope.text.cond(mma.init)})"
    call = f"wgmma_m64n{n}k{k}({target}, a + {stride} * kk, b + {stride} * kk, keep || kk > 0);"
    return [
        "{",
        f"    const u64 a = descriptor_128({context.box(mma.a, mma.span)});",
        f"    const u64 b = descriptor_128({context.box(mma.b, mma.span)});",
        f"    const int keep = {keep};",
        f"    hold({target});",
        "    wgmma_fence();",
        "#pragma unroll",
        f"    for (int kk = 0; kk < {steps}; ++kk) {call}",
        "    wgmma_commit();",
        f"    hold({target});",
        "}",
    ]


# -- stmatrix ------------------------------------------------------------------------------------------------


def _stmatrix(copy: Copy, context: Context) -> Iterator[str]:
    """Four 8 x 8 matrices a time: lane l gives the address of row l % 8 of matrix l / 8, and holds a pair of each."""
    source = context.own(copy.source.buffer)
    held = register_values(copy.source, copy.by, copy.span)
    if len(held) % 8:
        raise not_built(f"stmatrix of {len(held)} elements a thread", copy.span)
    yield "{"
    for group in range(0, len(held), 8):
        address = context.text(_row_address(copy, context, group))
        pairs = [
            f"pair({source}[{held[group + 2 * place]}], {source}[{held[group + 2 * place + 1]}])" for place in range(4)
        ]
        yield f"    stmatrix_x4({context.own(copy.target.buffer)} + {address}, {', '.join(pairs)});"
    yield "}"


def _row_address(copy: Copy, context: Context, group: int) -> Index:
    """Bytes from the buffer's start to the row that a lane addresses."""
    thread = algebra.sym(context.thread)
    lane = algebra.mod(thread, 32)
    matrix = algebra.floordiv(lane, 8)
    holder = algebra.add(algebra.sub(thread, lane), algebra.mul(algebra.mod(lane, 8), 4))
    first = copy.by.coordinates_at(holder, group)
    low, high = _step(copy, holder, group, 2), _step(copy, holder, group, 4)
    at = tuple(
        algebra.add(origin, algebra.mul(algebra.mod(matrix, 2), a), algebra.mul(algebra.floordiv(matrix, 2), b))
        for origin, a, b in zip(first, low, high, strict=True)
    )
    place = tuple(substitute(expression, {}, at) for expression in copy.target.at)
    layout = staged(copy.target.buffer)
    offset = linear(layout.layout, place)
    swizzled = offset if layout.swizzle is None else layout.swizzle.at(offset)
    return algebra.mul(swizzled, copy.target.buffer.dtype.bits // 8)


def _step(copy: Copy, holder: Index, group: int, distance: int) -> tuple[int, ...]:
    """How far the element `distance` values on lies along each axis, which the layout of matrices makes constant."""
    _check_pairs(copy.by, copy, group)
    here, there = copy.by.coordinates_at(holder, group), copy.by.coordinates_at(holder, group + distance)
    steps = [algebra.sub(b, a) for a, b in zip(here, there, strict=True)]
    found = tuple(getattr(step, "value", None) for step in steps)
    if any(step is None for step in found):
        raise not_built("stmatrix of registers that are no 8 x 8 matrices", copy.span)
    return tuple(int(step) for step in found if step is not None)


def _check_pairs(by: TV, copy: Copy, group: int) -> None:
    """Values 0, 2, 4, 6 begin the pairs of four matrices: rows of lane / 4, columns of 2 (lane % 4)."""
    rows, columns = (axis[:, group : group + 8] for axis in by.coordinates())
    lanes = rows[:32, 0] - rows[0, 0], columns[:32, 0] - columns[0, 0]
    wanted = [(lane // 4, 2 * (lane % 4)) for lane in range(32)]
    pairs = all((columns[:, place + 1] - columns[:, place] == 1).all() for place in (0, 2, 4, 6))
    square = (rows[0, 6] - rows[0, 4], columns[0, 6] - columns[0, 4]) == (
        rows[0, 2] - rows[0, 0],
        columns[0, 2] - columns[0, 0],
    )
    if list(zip(*(axis.tolist() for axis in lanes), strict=True)) != wanted or not pairs or not square:
        raise not_built("stmatrix of registers that are no 8 x 8 matrices", copy.span)
