"""Mutation operators on copy and matrix instructions: atom, padding, combination, registers, initialisation."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from argus.core.algebra import FALSE, TRUE, add, eq, le, lt, negate, sub, sym
from argus.core.atoms.registry import ATOMS
from argus.core.index import Cond
from argus.core.ir import Copy, For, Kernel, Mma
from argus.core.layout import Layout
from argus.testing.mutation.operator import Change, Operator, around, each, other


def _unpadded(_: Kernel, stmt: Copy) -> Iterator[Change]:
    yield from other(stmt, "without padding", edge=None)


def _padded(_: Kernel, stmt: Copy) -> Iterator[Change]:
    if "global" in (stmt.source.buffer.space, stmt.target.buffer.space):
        for value in (0.0, 1.0, float("-inf")):
            if stmt.edge != value:
                yield from other(stmt, f"padded with {value}", edge=value)


def _other_atom(_: Kernel, stmt: Copy) -> Iterator[Change]:
    """Use any other instruction between the same memory spaces: other width, proxy or swizzle."""
    spaces = (stmt.source.buffer.space, stmt.target.buffer.space)
    for atom in ATOMS:
        if atom.mnk is not None or not atom.targets & stmt.atom.targets or atom is stmt.atom:
            continue
        if "source" in atom.operands and (atom.operands["source"].space, atom.operands["target"].space) == spaces:
            yield from other(stmt, f"by `{atom}`", atom=atom)


def _joined(_: Kernel, stmt: Copy) -> Iterator[Change]:
    for combine in (None, "add", "max"):
        yield from other(stmt, f"joins by {combine}", combine=combine)


def _operands(_: Kernel, stmt: Mma) -> Iterator[Change]:
    yield from other(stmt, "operands exchanged", a=stmt.b, b=stmt.a)


def _one_operand(_: Kernel, stmt: Mma) -> Iterator[Change]:
    yield from other(stmt, "the left operand twice", b=stmt.a)
    yield from other(stmt, "the right operand twice", a=stmt.b)


def _always(_: Kernel, stmt: Mma) -> Iterator[Change]:
    yield from other(stmt, "the sum begins anew each time", init=TRUE)


def _never(_: Kernel, stmt: Mma) -> Iterator[Change]:
    yield from other(stmt, "the sum never begins", init=FALSE)


def _negated(_: Kernel, stmt: Mma) -> Iterator[Change]:
    yield from other(stmt, "the sum begins in all other trips", init=negate(stmt.init))


def _elsewhen(kernel: Kernel, stmt: Mma) -> Iterator[Change]:
    for loop in [holder for holder in around(kernel, stmt) if isinstance(holder, For)][-1:]:
        k = sym(loop.symbol)
        choices: tuple[tuple[Cond, str], ...] = (
            (eq(k, 1), "in trip 1"),
            (le(k, 1), "in trips 0 and 1"),
            (lt(k, sub(loop.stop, 1)), "in all trips but the last"),
            (eq(k, sub(loop.stop, 1)), "in the last trip"),
            (eq(add(k, 1), 0), "before the first trip"),
        )
        for cond, what in choices:
            yield from other(stmt, f"the sum begins {what}", init=cond)


def _registers(_: Kernel, stmt: Mma) -> Iterator[Change]:
    """Permute the registers that the executions of the instruction read or write."""
    for role in ("a", "b", "c"):
        layout: Layout = getattr(stmt.tiling, role)
        size = layout.size()
        first = int(layout.table()[0])
        table = layout.table().tolist()
        reverse = Layout(size, -(table[1] - table[0])) if size > 1 else layout
        for made in (Layout(size, 0), reverse):
            if size > 1 and min(made.table().tolist()) >= 0 and made.table().tolist() != table and not first:
                tiling = evolve(stmt.tiling, **{role: made})
                yield from other(stmt, f"registers of {role} by {made}", tiling=tiling)
        if not isinstance(layout.shape, int) and not isinstance(layout.stride, int):
            for at, (shape, stride) in enumerate(zip(layout.shape, layout.stride, strict=True)):
                if isinstance(shape, tuple) and isinstance(stride, tuple):
                    strides = (*layout.stride[:at], stride[::-1], *layout.stride[at + 1 :])
                    made = Layout(layout.shape, strides)
                    if made.table().tolist() != table and int(made.table().max()) <= int(layout.table().max()):
                        tiling = evolve(stmt.tiling, **{role: made})
                        yield from other(stmt, f"registers of {role} in another order", tiling=tiling)


def _waves(_: Kernel, stmt: Mma) -> Iterator[Change]:
    waves = stmt.tiling.waves
    if waves[0] != waves[1]:
        tiling = evolve(stmt.tiling, waves=waves[::-1])
        yield from other(stmt, "waves along the other axis", tiling=tiling)


def _unsignalled(_: Kernel, stmt: Copy) -> Iterator[Change]:
    yield from other(stmt, "signals nothing", signal=None)


OPERATORS: tuple[Operator, ...] = (
    Operator("drop_edge", "a copy does not pad at the tensor's edge", each(Copy, _unpadded)),
    Operator("other_edge", "a copy is padded with another number", each(Copy, _padded)),
    Operator("other_instruction", "a copy is by another instruction or width", each(Copy, _other_atom)),
    Operator("join_otherwise", "a copy overwrites, adds or takes the larger", each(Copy, _joined)),
    Operator("drop_signal", "a copy signals no barrier", each(Copy, _unsignalled)),
    Operator("swap_operands", "a product's operands are exchanged", each(Mma, _operands)),
    Operator("one_operand_twice", "a product of one operand with itself", each(Mma, _one_operand)),
    Operator("init_always", "the accumulator is initialised by each product", each(Mma, _always)),
    Operator("init_never", "the accumulator is never initialised", each(Mma, _never)),
    Operator("init_negated", "the accumulator is initialised in all other iterations", each(Mma, _negated)),
    Operator("init_elsewhen", "the accumulator is initialised in another iteration", each(Mma, _elsewhen)),
    Operator("permute_registers", "a product reads or writes registers in another order", each(Mma, _registers)),
    Operator("swap_waves", "a product's waves are along the other axis", each(Mma, _waves)),
)
