"""Obligations of TMA box copies and 8x8 matrix copies: alignment (I19), register layout (I20), descriptors (I17).

The requirements come from the instruction's table entry.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.atom import Operand
from argus.core.check.operands import canonical_layout_error
from argus.core.index import Bin, Cond, Coord, Index, Sum
from argus.core.index_text import show
from argus.core.ir import Copy, Mma, Staged, Strided, View
from argus.core.ir.view_ends import box_end, ended_coordinates
from argus.core.layout.inttuple import IntTuple
from argus.core.memory.swizzle_tiles import span_of, tile_columns
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.dataflow.timeline import Step, Timeline
from argus.core.proof.limits.integers import width_obligations
from argus.core.proof.obligation import Obligation
from argus.core.walk import IntArray, evaluate, mentions, substitute, symbols


def box_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """A box copy: row stride (I19) and start (I19) in global memory, swizzle (I17) in shared memory."""
    box, buffer = stmt.atom.box, access.view.buffer
    assert box is not None
    yield Obligation(
        "I19",
        f"the tile of `{buffer.name}` is a box: `{stmt.atom}` moves its axes in order",
        stmt,
        algebra.TRUE if _maps_axes_in_order(access.view) else algebra.FALSE,
        step.context,
    )
    if isinstance(buffer.layout, Strided):
        wide = box.multiple * 8 // buffer.dtype.bits
        strides_divisible = algebra.all_of(stride_divisible(stride, wide) for stride in buffer.layout.strides[:-1])
        apart = [algebra.mul(stride, buffer.dtype.bits // 8) for stride in buffer.layout.strides[:-1]]
        plain = buffer.layout.strides[-1] is algebra.const(1) and buffer.align % box.multiple == 0
        yield Obligation(
            "I19",
            f"rows of `{buffer.name}` are multiples of {box.multiple} bytes apart, as `{stmt.atom}` requires",
            stmt,
            strides_divisible if plain else algebra.FALSE,
            step.context,
            compared=access.shape[1],
            fault=f"rows of `{buffer.name}` are no multiple of {box.multiple} bytes apart, as `{stmt.atom}` requires",
            help=f"`assume({show(buffer.shape[-1])} % {wide} == 0)`, or use a schedule of narrower loads",
            of_descriptor=plain,
            quantities=tuple((f"bytes between rows along axis {axis}", byte) for axis, byte in enumerate(apart)),
        )
        yield from box_start_obligations(step, stmt, access)
        yield from _box_end_obligations(step, stmt, access)
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
    """I19: the box starts on a chunk boundary; the copy engine faults on a start inside a chunk."""
    box, buffer = stmt.atom.box, access.view.buffer
    assert box is not None
    wide = box.multiple * 8 // buffer.dtype.bits
    first = substitute(access.view.at[-1], {}, (algebra.const(0),) * len(access.view.shape))
    yield Obligation(
        "I19",
        f"the box of `{buffer.name}` begins at a multiple of {box.multiple} bytes of a row, as `{stmt.atom}` requires",
        stmt,
        algebra.eq(algebra.mod(first, wide), 0),
        step.context,
        compared=access.shape[1],
        help=f"begin at a multiple of {wide} elements",
    )


def _box_end_obligations(step: Step, stmt: Copy, access: Access) -> Iterator[Obligation]:
    """I37 and I28: of a box that ends with its view, no row before that end lies outside the view or the tensor.

    The copy engine compares rows with the end alone.
    """
    end = box_end(access.view)
    if end is None:
        return
    buffer = access.view.buffer
    first = tuple(substitute(at, {}, (algebra.const(0),) * len(access.view.shape)) for at in access.view.at)
    begins = algebra.le(0, first[end.axis]), *(each.holds(first[end.axis]) for each in end.lower)
    yield Obligation(
        "I37",
        f"the box of `{buffer.name}` begins and ends within the rows of its view",
        stmt,
        algebra.all_of((*begins, algebra.le(end.stop, buffer.shape[end.axis]))),
        step.context,
        compared=access.shape[1],
        help=f"let `rows(start, stop)` begin at 0 or later and end by {show(buffer.shape[end.axis])}",
    )
    roots = ended_coordinates(end, first)
    yield from width_obligations(roots, stmt, step.context, f"the box of `{buffer.name}`")


def stride_divisible(stride: Index, wide: int) -> Cond:
    """The condition that a stride is a multiple of `wide`; for a product, one divisible factor is enough."""
    factors = _factors(stride)
    return algebra.any_of(algebra.eq(algebra.mod(each, wide), 0) for each in (stride, *factors))


def _factors(stride: Index) -> tuple[Index, ...]:
    if isinstance(stride, Sum) and len(stride.terms) == 1 and stride.constant == 0:
        ((multiplied, _),) = stride.terms
        return multiplied, *_factors(multiplied)
    if not isinstance(stride, Bin) or stride.op != "*":
        return ()
    return (*_factors(stride.left), *_factors(stride.right), stride.left, stride.right)


def _maps_axes_in_order(view: View) -> bool:
    """Whether the view's axes map with step one to the last axes of the buffer, and fix the leading axes."""
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
    """A copy of 8x8 matrices: in the instruction's register layout, each row of a matrix is one aligned run of memory.

    offsets: element offsets in slot 0, shape (threads, values). slots: symbolic axes, with their strides.
    """
    buffer = access.view.buffer
    run, wide = memory.vector_bits // buffer.dtype.bits, memory.align * 8 // buffer.dtype.bits
    what = f"`{stmt.atom}` moves rows of {run} consecutive elements of `{buffer.name}`"
    if offsets is None:
        yield Obligation("I19", what, stmt, algebra.FALSE, step.context, unknown="a tile that moves inside one buffer")
        return
    yield _register_rows_obligation(stmt, access, offsets, run)
    rows = _matrix_rows(stmt, offsets, run)
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


def _register_rows_obligation(stmt: Copy, access: Access, offsets: IntArray, run: int) -> Obligation:
    """I20: in the instruction's register layout, the elements of a row are consecutive along one axis of the buffer."""
    buffer, axis = access.view.buffer, _contiguous_axis(access.view)
    what = f"the registers that `{stmt.atom}` stores as matrix rows hold rows of `{buffer.name}`"
    if axis is None:
        return Obligation("I20", what, stmt, algebra.FALSE, unknown="no axis of the buffer has contiguous elements")
    misplaced = _first_misplaced_register(stmt, access, offsets.shape, run, axis)
    return Obligation(
        "I20",
        what,
        stmt,
        algebra.TRUE if misplaced is None else algebra.FALSE,
        compared=offsets.size,
        witness=() if misplaced is None else misplaced.witness(buffer.name),
        fault=f"`{stmt.atom}` stores registers as matrix rows that are not rows of `{buffer.name}`",
        help="store a fragment by the instruction for its layout: `stmatrix.x4` for the result of a product, "
        "`stmatrix.x4_trans` if the buffer holds columns",
    )


@frozen
class _MisplacedRegister:
    """A register that the instruction stores to a wrong coordinate.

    wanted: the coordinate of its element in the buffer. found: the coordinate to which the instruction stores it; None
    if the registers are not a whole number of matrices.
    """

    thread: int
    value: int
    wanted: tuple[int, ...]
    found: tuple[int, ...] | None

    def witness(self, name: str) -> tuple[tuple[str, str], ...]:
        register = ("register", f"thread {self.thread}, value {self.value}")
        belongs = ("belongs to", f"`{name}`[{', '.join(map(str, self.wanted))}]")
        if self.found is None:
            return (register, belongs, ("stored to", "no matrix: the registers are not a whole number of matrices"))
        return (register, belongs, ("stored to", f"`{name}`[{', '.join(map(str, self.found))}]"))


def _contiguous_axis(view: View) -> int | None:
    """The axis of the buffer with stride 1; the last one if there are several."""
    layout = view.buffer.layout
    strides = layout.layout.stride if isinstance(layout, Staged) else ()
    found = (
        [axis for axis, stride in enumerate(strides) if _innermost_stride(stride) == 1]
        if isinstance(strides, tuple)
        else []
    )
    return found[-1] if found else None


def _innermost_stride(stride: IntTuple) -> int:
    return _innermost_stride(stride[0]) if isinstance(stride, tuple) else stride


def _first_misplaced_register(
    stmt: Copy, access: Access, shape: tuple[int, ...], run: int, along: int
) -> _MisplacedRegister | None:
    """The first register, by matrix and row, whose element is not at its position in the row along the axis `along`.

    Coordinates are relative to the first element of a slot.
    """
    zero = {symbol: 0 for at in access.view.at for symbol in symbols(at)}
    places = [np.broadcast_to(evaluate(at, zero, stmt.by.coordinates()), shape) for at in access.view.at]
    registers = np.arange(shape[0] * shape[1]).reshape(shape)
    rows = _matrix_rows(stmt, registers, run)
    axes = [place.ravel() for place in places]
    if rows is None:
        return _MisplacedRegister(0, 0, tuple(int(axis[0]) for axis in axes), None)
    steps = [axis[rows] - axis[rows[..., :1]] for axis in axes]
    positions = np.arange(run)
    wrong = np.logical_or.reduce([s != (positions if axis == along else 0) for axis, s in enumerate(steps)])
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    register, first = int(rows[at]), int(rows[(*at[:-1], 0)])
    start = tuple(int(axis[first]) for axis in axes)
    return _MisplacedRegister(
        register // shape[1],
        register % shape[1],
        tuple(int(axis[register]) for axis in axes),
        tuple(place + (at[-1] if axis == along else 0) for axis, place in enumerate(start)),
    )


def _matrix_rows(stmt: Copy, offsets: IntArray, run: int) -> IntArray | None:
    """Offsets by (warp, execution, matrix row, position in the row); None if the registers are not whole matrices."""
    fragment = next(o.tv for o in stmt.atom.operands.values() if o.space == "register")
    if fragment is None or offsets.shape[0] % fragment.threads.size() or offsets.shape[1] % fragment.values.size():
        return None
    lanes, values = fragment.threads.size(), fragment.values.size()
    by_execution = offsets.reshape(-1, lanes, offsets.shape[1] // values, values).transpose(0, 2, 1, 3)
    placed = np.empty((*by_execution.shape[:2], lanes * values), np.int64)
    placed[:, :, fragment.elements().ravel()] = by_execution.reshape(*by_execution.shape[:2], -1)
    return placed.reshape(*by_execution.shape[:2], -1, run)


def descriptor_obligations(timeline: Timeline) -> Iterator[Obligation]:
    """I17: each shared-memory operand of a matrix instruction has a layout that a matrix descriptor can encode."""
    for step in timeline.steps:
        if not isinstance(step.stmt, Mma):
            continue
        for role, view in (("a", step.stmt.a), ("b", step.stmt.b)):
            operand = step.stmt.atom.operands[role]
            if operand.space == "shared":
                why = canonical_layout_error(view, operand)
                yield Obligation(
                    "I17",
                    f"a matrix descriptor can encode the layout of `{view.buffer.name}`",
                    step.stmt,
                    algebra.FALSE if why else algebra.TRUE,
                    witness=(("layout", why),),
                    fault=f"no descriptor of `{step.stmt.atom}` can encode `{view.buffer.name}`: {why}",
                    help="declare it `shared(dtype, (rows, columns), swizzle=128)` with rows of 128 bytes",
                )
