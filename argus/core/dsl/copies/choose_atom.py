"""Chooses the instruction of a copy: the widest of those named that fits spaces, types and contiguous runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from argus.core import algebra
from argus.core.atom import Atom, Space
from argus.core.atoms import gfx942, gfx942_reductions
from argus.core.atoms.sm_90a import warp as sm_90a
from argus.core.atoms.sm_90a.reductions import red_global_add
from argus.core.dsl.copies.boxes import choose_box
from argus.core.dsl.copies.lds_direct import lds_direct_error
from argus.core.dsl.faults import fault
from argus.core.index import Bin, Held, Index, Node, Read
from argus.core.ir import View
from argus.core.layout import TV
from argus.core.target import Target
from argus.core.walk import IntArray, evaluate, fold, rebuild, symbols

_DEFAULTS: Mapping[tuple[str, Space, Space], tuple[Atom, ...]] = {
    ("gfx942", "global", "register"): (*gfx942.global_load, gfx942.global_load_b8),
    ("gfx942", "register", "global"): (*gfx942.global_store, gfx942.global_store_b8),
    ("gfx942", "shared", "register"): gfx942.ds_read,
    ("gfx942", "register", "shared"): gfx942.ds_write,
    ("sm_90a", "global", "register"): (*sm_90a.ld_global, sm_90a.ld_global_b8),
    ("sm_90a", "register", "global"): (*sm_90a.st_global, sm_90a.st_global_b8),
    ("sm_90a", "shared", "register"): sm_90a.ld_shared,
    ("sm_90a", "register", "shared"): sm_90a.st_shared,
}

global_load = (*gfx942.global_load, *sm_90a.ld_global)
global_store = (*gfx942.global_store, *sm_90a.st_global)
"""The plain loads and stores of all targets; a copy chooses among those of its own target."""

ld_global_b16, st_global_b16 = sm_90a.ld_global[0], sm_90a.st_global[0]
"""Loads and stores of single 16-bit elements, for rows of any alignment."""
ld_global_b8, st_global_b8 = sm_90a.ld_global_b8, sm_90a.st_global_b8
ld_global_b32 = sm_90a.ld_global[1]
"""Loads of 4 bytes: of single numbers in fp32 from any place on."""


_REDUCTIONS: Mapping[str, tuple[Atom, ...]] = {
    "sm_90a": red_global_add,
    "gfx942": gfx942_reductions.ATOMS,
}


def choose_atom(
    target: Target,
    source: View,
    to: View,
    by: TV,
    via: Atom | tuple[Atom, ...] | None,
    combine: str | None = None,
) -> Atom:
    """The widest instruction whose vectors divide the runs of consecutive elements of every thread.

    via: the instructions to choose from; None: the default ones. combine: the reduction into the target, if any. Raises
    E204 for different types, E108 if no instruction fits.
    """
    spaces = (source.buffer.space, to.buffer.space)
    if source.buffer.dtype != to.buffer.dtype:
        fault(
            "E204",
            f"a copy from {source.buffer.dtype} to {to.buffer.dtype}",
            here=f"`{source.buffer.name}` and `{to.buffer.name}` differ in type",
            help="convert in registers with `.to(...)`",
        )
    default = _DEFAULTS.get((target.name, *spaces), ()) if combine is None else _REDUCTIONS.get(target.name, ())
    named = default if via is None else via if isinstance(via, tuple) else (via,)
    named = tuple(atom for atom in named if target.name in atom.targets) or named
    bits = source.buffer.dtype.bits
    legal = [
        atom
        for atom in named
        if _matches_spaces(atom, target, spaces)
        and atom.vector_bits % bits == 0
        and _matches_reduction(atom, combine, source)
    ]
    if not legal:
        joining = "" if combine is None else f", combined by {combine}"
        fault(
            "E108",
            f"no instruction of {target} named here copies {bits}-bit elements from {spaces[0]} to {spaces[1]}"
            f"{joining}: {', '.join(map(str, named)) or 'none known'}",
            help="go through registers, or name another instruction with `via=`",
        )
    if legal[0].unit == 1:
        return choose_box(legal, source, to)
    in_memory = [view for view in (source, to) if view.buffer.space != "register"]
    matrices = [atom for atom in legal if _moves_matrices(atom)]
    if matrices:
        return _choose_matrices(matrices, in_memory[0], by)
    if legal[0].direct:
        return _choose_direct(legal[0], to, by)
    run = min(run_length(view, by) for view in in_memory) * bits
    fitting = [atom for atom in legal if run % atom.vector_bits == 0]
    if not fitting:
        fault(
            "E108",
            f"each thread moves runs of {run} bits, `{legal[-1]}` wants {legal[-1].vector_bits}",
            here=f"`{source.buffer.name}` to `{to.buffer.name}`",
            help="choose a narrower instruction or a layout with longer runs",
        )
    return max(fitting, key=lambda atom: atom.vector_bits)


def _matches_reduction(atom: Atom, combine: str | None, source: View) -> bool:
    dtype = atom.operands["source"].dtype
    return atom.combine == combine and (dtype is None or dtype == source.buffer.dtype)


def _choose_direct(atom: Atom, to: View, by: TV) -> Atom:
    places = _trial_coordinates(to, by)
    why = "its index divides by a size" if places is None else lds_direct_error(atom, to, places, by)
    if why:
        fault(
            "E108",
            f"`{atom}` cannot fill this tile of `{to.buffer.name}`: {why}",
            help="spread rows over lanes",
        )
    return atom


def _matches_spaces(atom: Atom, target: Target, spaces: tuple[Space, Space]) -> bool:
    if atom.mnk is not None or target.name not in atom.targets:
        return False
    return (atom.operands["source"].space, atom.operands["target"].space) == spaces


def run_length(memory: View, by: TV) -> int:
    """The number of consecutive values of each thread that are consecutive elements of the tensor's last axis.

    Evaluated for one assignment of the symbols; I19 proves the chosen instruction for all of them. 1 if that assignment
    divides by zero.
    """
    places = _trial_coordinates(memory, by)
    if places is None:
        return 1
    follows = np.ones(by.values.size() - 1, np.bool_)
    for axis, place in enumerate(places):
        step = 1 if axis == len(places) - 1 else 0
        follows &= (place[:, 1:] - place[:, :-1] == step).all(axis=0)
    count = by.values.size()
    return max(run for run in range(1, count + 1) if count % run == 0 and _splits_into_runs(follows, run))


def _trial_coordinates(memory: View, by: TV) -> list[IntArray] | None:
    """The tensor coordinates of each (thread, value) for the trial assignment; None if it divides by zero."""
    trial = {symbol: _TRIAL_SIZE if symbol.kind == "size" else 0 for at in memory.at for symbol in symbols(at)}
    axes, shape = by.coordinates(), (by.threads.size(), by.values.size())
    placed = [_without_reads(at) for at in memory.at]
    try:
        return [np.broadcast_to(cast(IntArray, evaluate(at, trial, axes)), shape) for at in placed]
    except ZeroDivisionError:
        return None


def _without_reads(at: Index) -> Index:
    """The expression with 0 for each integer from memory; as for loop variables, any trial value will do."""

    def visit(node: Node, parts: Sequence[Node]) -> Node:
        if isinstance(node, Read | Held) or (
            isinstance(node, Bin) and node.op in ("//", "%") and parts[1] == algebra.const(0)
        ):
            return algebra.const(0)
        return rebuild(node, parts)

    return cast(Index, fold(at, visit))


def _moves_matrices(atom: Atom) -> bool:
    return atom.mnk is None and any(operand.tv is not None for operand in atom.operands.values())


def _choose_matrices(named: list[Atom], memory: View, by: TV) -> Atom:
    """The first `ldmatrix` or `stmatrix` whose 8x8 matrices make up the fragment. Raises E108 if there is none."""
    for atom in named:
        if memory.buffer.dtype.bits == 16 and _holds_matrices(atom, memory, by):
            return atom
    fault(
        "E108",
        f"`{named[0]}` moves 8x8 matrices of 16-bit elements, of which `{memory.buffer.name}` and this fragment "
        "do not consist",
        here="each pair of a lane's registers must belong to one row of 16 bytes",
        help="use the fragment of a matrix instruction, or copy with ordinary loads and stores",
    )


def _holds_matrices(atom: Atom, memory: View, by: TV) -> bool:
    """Whether each pair of registers holds an 8x8 matrix as the instruction does, with rows contiguous in memory."""
    operand = next(each for each in atom.operands.values() if each.space == "register")
    places = _trial_coordinates(memory, by)
    lanes = by.threads.size()
    if places is None or operand.tv is None or by.values.size() % operand.tv.values.size() or lanes % atom.unit:
        return False
    column, row, _ = np.unravel_index(operand.tv.elements()[:, :2], (8, 8, 4), order="F")
    for axis, place in enumerate(places):
        held = place.reshape(lanes // atom.unit, atom.unit, -1, 2).transpose(0, 2, 1, 3)
        first = held - column if axis == len(places) - 1 else held
        # The coordinate of the first element of each matrix row, computed from each lane that holds a part of the row.
        for number in range(8):
            of_row = first[:, :, row == number]
            if (of_row != of_row[:, :, :1]).any() or (axis == len(places) - 1 and (of_row % 8 != 0).any()):
                return False
    return True


def _splits_into_runs(follows: npt.NDArray[np.bool_], run: int) -> bool:
    """Whether each value that does not begin a run of length `run` is consecutive to the previous one."""
    return bool(follows[np.arange(1, len(follows) + 1) % run != 0].all())


_TRIAL_SIZE = 1 << 20
"""The value of every size in the trial assignment; other symbols are 0."""
