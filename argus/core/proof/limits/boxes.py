"""Copies of whole boxes and of 8x8 matrices: what their instructions demand of addresses (I19), and the layouts that
instructions name in shared memory (I17), by the instruction's own table entry.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.atom import Operand
from argus.core.check.operands import canonical_layout_error
from argus.core.index import Bin, Cond, Coord, Index
from argus.core.ir import Copy, Mma, Staged, Strided, View
from argus.core.layout.inttuple import IntTuple
from argus.core.memory.swizzle_tiles import span_of, tile_columns
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Step, Timeline
from argus.core.proof.obligation import Obligation
from argus.core.walk import IntArray, evaluate, mentions, show, substitute, symbols


def box_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """Of a copy of one thread: rows of the tensor as far apart as the instruction wants, the swizzle it applies."""
    box, buffer = stmt.atom.box, access.view.buffer
    assert box is not None
    yield Obligation(
        "I19",
        f"the tile of `{buffer.name}` is a box: `{stmt.atom}` moves its axes in order",
        stmt,
        algebra.TRUE if _in_order(access.view) else algebra.FALSE,
        step.context,
    )
    if isinstance(buffer.layout, Strided):
        wide = box.multiple * 8 // buffer.dtype.bits
        apart = algebra.all_of(stride_divisible(stride, wide) for stride in buffer.layout.strides[:-1])
        plain = buffer.layout.strides[-1] is algebra.const(1) and buffer.align % box.multiple == 0
        yield Obligation(
            "I19",
            f"rows of `{buffer.name}` are multiples of {box.multiple} bytes apart, as `{stmt.atom}` wants",
            stmt,
            apart if plain else algebra.FALSE,
            step.context,
            compared=access.shape[1],
            help=f"`assume({show(buffer.shape[-1])} % {wide} == 0)`, or use a schedule of narrower loads",
        )
        yield from box_start_obligations(step, stmt, access)
    elif isinstance(buffer.layout, Staged) and box.axes > 1:
        found, width = span_of(buffer.layout.swizzle, buffer.dtype), tile_columns(buffer)
        whole = width is not None and (not box.span or width * buffer.dtype.bits // 8 == box.span)
        yield Obligation(
            "I17",
            f"`{stmt.atom}` permutes chunks of `{buffer.name}` as its layout does, in rows as wide as its span",
            stmt,
            algebra.TRUE if found == box.span and whole else algebra.FALSE,
            unknown="" if whole or found != box.span else "rows that are narrower than the swizzle's span",
            compared=access.shape[1],
            witness=(("layout", str(buffer.layout.swizzle)), ("span", f"{box.span} bytes")),
            fault=f"`{stmt.atom}` swizzles over {box.span} bytes, `{buffer.name}` is laid out "
            f"{'in another pattern' if found is None else f'over {found}'}",
            help="declare the tile with the swizzle of the copy",
        )


def box_start_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """The engine finds a box by its first chunk: one that begins within a chunk is an illegal instruction."""
    box, buffer = stmt.atom.box, access.view.buffer
    assert box is not None
    wide = box.multiple * 8 // buffer.dtype.bits
    first = substitute(access.view.at[-1], {}, (algebra.const(0),) * len(access.view.shape))
    yield Obligation(
        "I19",
        f"the box of `{buffer.name}` begins at a multiple of {box.multiple} bytes of a row, as `{stmt.atom}` wants",
        stmt,
        algebra.eq(algebra.mod(first, wide), 0),
        step.context,
        compared=access.shape[1],
        help=f"begin at a multiple of {wide} elements",
    )


def stride_divisible(stride: Index, wide: int) -> Cond:
    """That a stride is a multiple of `wide`; of a product, one factor that is says so without multiplying."""
    factors = _factors(stride)
    return algebra.any_of(algebra.eq(algebra.mod(each, wide), 0) for each in (stride, *factors))


def _factors(stride: Index) -> tuple[Index, ...]:
    if not isinstance(stride, Bin) or stride.op != "*":
        return ()
    return (*_factors(stride.left), *_factors(stride.right), stride.left, stride.right)


def _in_order(view: View) -> bool:
    """Whether the last axes of the buffer move with the view's, by one, and the others not at all."""
    for position, expression in enumerate(view.at):
        axis = position - (len(view.at) - len(view.shape))
        rest = algebra.sub(expression, algebra.coord(axis)) if axis >= 0 else expression
        if mentions(rest, (Coord,)):
            return False
    return True


def matrix_copy_obligations(
    step: Step,
    stmt: Copy,
    access: Access,
    memory: Operand,
    offsets: IntArray | None,
    slots: tuple[tuple[Separable, int], ...],
) -> Iterator[Obligation]:
    """Of a copy of 8x8 matrices: each row of a matrix, held as the instruction has it, is one aligned run of memory.

    offsets: of the elements in slot 0, shape (threads, values). slots: symbolic axes, with their strides.
    """
    buffer = access.view.buffer
    run, wide = memory.vector_bits // buffer.dtype.bits, memory.align * 8 // buffer.dtype.bits
    what = f"`{stmt.atom}` moves rows of {run} consecutive elements of `{buffer.name}`"
    if offsets is None:
        yield Obligation("I19", what, stmt, algebra.FALSE, step.context, unknown="a tile that moves inside one buffer")
        return
    yield _held(stmt, access, offsets, run)
    rows = _rows(stmt, offsets, run)
    good = rows is not None and bool((rows[..., 0] % wide == 0).all())
    good = good and rows is not None and bool((rows == rows[..., :1] + np.arange(run)).all())
    aligned = algebra.all_of(algebra.eq(algebra.mod(algebra.mul(p.least, s), wide), 0) for p, s in slots)
    yield Obligation(
        "I19",
        f"{what} from a multiple of {memory.align} bytes on",
        stmt,
        aligned if good else algebra.FALSE,
        step.context,
        compared=offsets.size,
        help="copy to rows of whole 16-byte chunks",
    )


def _held(stmt: Copy, access: Access, offsets: IntArray, run: int) -> Obligation:
    """I20: the elements of a row, as the instruction holds it, follow one another along an axis of the buffer."""
    buffer, axis = access.view.buffer, _contiguous(access.view)
    what = f"the registers that `{stmt.atom}` takes for rows of matrices hold rows of `{buffer.name}`"
    if axis is None:
        return Obligation(
            "I20", what, stmt, algebra.FALSE, unknown="no axis of the buffer has its elements side by side"
        )
    stray = _stray(stmt, access, offsets.shape, run, axis)
    return Obligation(
        "I20",
        what,
        stmt,
        algebra.TRUE if stray is None else algebra.FALSE,
        compared=offsets.size,
        witness=() if stray is None else stray.told(buffer.name),
        fault=f"`{stmt.atom}` takes its registers for rows of matrices that `{buffer.name}` does not have",
        help="store a fragment by the instruction for its layout: `stmatrix.x4` for the result of a product, "
        "`stmatrix.x4_trans` if the buffer holds columns",
    )


@frozen
class _Stray:
    """A register whose element belongs elsewhere than the instruction puts it.

    found: where it puts it; None if the registers are no whole number of matrices.
    """

    thread: int
    value: int
    wanted: tuple[int, ...]
    found: tuple[int, ...] | None

    def told(self, name: str) -> tuple[tuple[str, str], ...]:
        register = ("register", f"thread {self.thread}, value {self.value}")
        belongs = ("belongs to", f"`{name}`[{', '.join(map(str, self.wanted))}]")
        if self.found is None:
            return (register, belongs, ("stored to", "no matrix: the registers are no whole number of them"))
        return (register, belongs, ("stored to", f"`{name}`[{', '.join(map(str, self.found))}]"))


def _contiguous(view: View) -> int | None:
    """The axis of the buffer along which elements lie side by side; the last, where others have one element."""
    layout = view.buffer.layout
    strides = layout.layout.stride if isinstance(layout, Staged) else ()
    found = [axis for axis, stride in enumerate(strides) if _first(stride) == 1] if isinstance(strides, tuple) else []
    return found[-1] if found else None


def _first(stride: IntTuple) -> int:
    return _first(stride[0]) if isinstance(stride, tuple) else stride


def _stray(stmt: Copy, access: Access, shape: tuple[int, ...], run: int, along: int) -> _Stray | None:
    """The first register, by matrix and row, that does not lie where its place in the row is, along that axis.

    Slots are left out: places count from the first element of a slot.
    """
    zero = {symbol: 0 for at in access.view.at for symbol in symbols(at)}
    places = [np.broadcast_to(evaluate(at, zero, stmt.by.coordinates()), shape) for at in access.view.at]
    registers = np.arange(shape[0] * shape[1]).reshape(shape)
    rows = _rows(stmt, registers, run)
    axes = [place.ravel() for place in places]
    if rows is None:
        return _Stray(0, 0, tuple(int(axis[0]) for axis in axes), None)
    steps = [axis[rows] - axis[rows[..., :1]] for axis in axes]
    one_by_one = np.arange(run)
    wrong = np.logical_or.reduce([s != (one_by_one if axis == along else 0) for axis, s in enumerate(steps)])
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    register, first = int(rows[at]), int(rows[(*at[:-1], 0)])
    begun = tuple(int(axis[first]) for axis in axes)
    return _Stray(
        register // shape[1],
        register % shape[1],
        tuple(int(axis[register]) for axis in axes),
        tuple(place + (at[-1] if axis == along else 0) for axis, place in enumerate(begun)),
    )


def _rows(stmt: Copy, offsets: IntArray, run: int) -> IntArray | None:
    """Offsets by (warp, execution, row of a matrix, place in the row); None if the registers are no whole matrices."""
    held = next(o.tv for o in stmt.atom.operands.values() if o.space == "register")
    if held is None or offsets.shape[0] % held.threads.size() or offsets.shape[1] % held.values.size():
        return None
    lanes, values = held.threads.size(), held.values.size()
    by_execution = offsets.reshape(-1, lanes, offsets.shape[1] // values, values).transpose(0, 2, 1, 3)
    placed = np.empty((*by_execution.shape[:2], lanes * values), np.int64)
    placed[:, :, held.elements().ravel()] = by_execution.reshape(*by_execution.shape[:2], -1)
    return placed.reshape(*by_execution.shape[:2], -1, run)


def descriptor_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """I17: each matrix that a product reads from shared memory has a layout that its descriptor can name."""
    for step in timeline.steps:
        if not isinstance(step.stmt, Mma):
            continue
        for role, view in (("a", step.stmt.a), ("b", step.stmt.b)):
            operand = step.stmt.atom.operands[role]
            if operand.space == "shared":
                why = canonical_layout_error(view, operand)
                yield Obligation(
                    "I17",
                    f"a descriptor names the layout of `{view.buffer.name}`",
                    step.stmt,
                    algebra.FALSE if why else algebra.TRUE,
                    witness=(("layout", why),),
                    fault=f"no descriptor of `{step.stmt.atom}` names `{view.buffer.name}`: {why}",
                    help="declare it `shared(dtype, (rows, columns), swizzle=128)` with rows of 128 bytes",
                )
