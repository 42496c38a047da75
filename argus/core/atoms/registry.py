"""Registry of the instructions of all targets: lookup by name, and thread-value layouts of their operands."""

from __future__ import annotations

from difflib import get_close_matches

from argus.core.atom import Atom, Operand
from argus.core.atoms import gfx942, gfx942_reductions, lanes, sm_90a
from argus.core.layout import TV, Layout, LayoutError

ATOMS: tuple[Atom, ...] = (*gfx942.ATOMS, *gfx942_reductions.ATOMS, *sm_90a.ATOMS, *lanes.SHUFFLES.values())
_BY_NAME = {atom.name: atom for atom in ATOMS}


def atom_named(name: str) -> Atom:
    """The instruction of this name. Raises LayoutError (E803) for an unknown name, with similar names."""
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    similar = get_close_matches(name, list(_BY_NAME), n=8, cutoff=0.0)
    raise LayoutError(
        "E803",
        f"no instruction is called `{name}`",
        help=f"use one of the {len(ATOMS)} in `argus.core.atoms`, such as {', '.join(similar)}",
    )


def thread_values(atom: Atom | str, operand: str, *, element_bits: int | None = None) -> TV:
    """The thread-value layout of an operand, for one execution.

    For an operand of a matrix instruction: (lane, register) -> element of its tile, first axis fastest.
    For an operand of a copy: the tile is (elements of a vector, lanes), one vector after the other; their addresses
    are given by the access, not by the instruction. Elements are bits, as in CuTe's copy traits, or `element_bits`
    wide. Raises LayoutError (E803) for an unknown instruction or operand, or another width than the operand's.
    """
    found = atom_named(atom) if isinstance(atom, str) else atom
    chosen = found.operands.get(operand)
    if chosen is None:
        raise LayoutError(
            "E803",
            f"`{found}` has no operand `{operand}`",
            help=f"use one of {', '.join(found.operands)}",
        )
    if chosen.tv is None:
        return _vectors(found, chosen, 1 if element_bits is None else element_bits)
    if chosen.dtype is not None and element_bits not in (None, chosen.dtype.bits):
        raise LayoutError(
            "E803",
            f"`{operand}` of `{found}` has elements of {chosen.dtype.bits} bits, not {element_bits}",
            help=f"leave `element_bits` out, or give {chosen.dtype.bits}",
        )
    return chosen.tv


def _vectors(atom: Atom, operand: Operand, element_bits: int) -> TV:
    if element_bits < 1 or operand.vector_bits % element_bits != 0:
        raise LayoutError(
            "E803",
            f"`{atom}` moves {operand.vector_bits} bits per lane, not a multiple of {element_bits}-bit elements",
            help=f"give a divisor of {operand.vector_bits}",
        )
    count = operand.vector_bits // element_bits
    return TV(Layout(atom.unit, count), Layout(count, 1), (count, atom.unit))
