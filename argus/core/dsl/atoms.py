"""Choosing the instruction of a copy."""

from __future__ import annotations

from collections.abc import Mapping

from argus.core import algebra
from argus.core.atom import Atom, Space
from argus.core.atoms import gfx942
from argus.core.dsl.faults import fault
from argus.core.index import Symbol
from argus.core.ir import View
from argus.core.layout import TV
from argus.core.target import Target
from argus.core.walk import substitute

_DEFAULTS: Mapping[tuple[str, Space, Space], tuple[Atom, ...]] = {
    ("gfx942", "global", "register"): gfx942.global_load,
    ("gfx942", "register", "global"): gfx942.global_store,
    ("gfx942", "shared", "register"): gfx942.ds_read,
    ("gfx942", "register", "shared"): gfx942.ds_write,
}


def choose(target: Target, source: View, to: View, by: TV, via: Atom | tuple[Atom, ...] | None) -> Atom:
    """The instruction named, or the widest of those named that moves whole runs of consecutive elements."""
    spaces = (source.buffer.space, to.buffer.space)
    if source.buffer.dtype != to.buffer.dtype:
        fault(
            "E204",
            f"a copy from {source.buffer.dtype} to {to.buffer.dtype}",
            here=f"`{source.buffer.name}` and `{to.buffer.name}` differ in type",
            help="convert in registers with `.to(...)`",
        )
    named = _DEFAULTS.get((target.name, *spaces), ()) if via is None else via if isinstance(via, tuple) else (via,)
    legal = [atom for atom in named if _fits(atom, target, spaces)]
    if not legal:
        fault(
            "E108",
            f"no instruction of {target} named here copies {spaces[0]} to {spaces[1]}: "
            f"{', '.join(map(str, named)) or 'none known'}",
            help="go through registers, or name another instruction with `via=`",
        )
    run = run_length(source if source.buffer.space != "register" else to, by) * source.buffer.dtype.bits
    fitting = [atom for atom in legal if run % atom.vector_bits == 0]
    if not fitting:
        fault(
            "E108",
            f"each thread moves runs of {run} bits, `{legal[-1]}` wants {legal[-1].vector_bits}",
            here=f"`{source.buffer.name}` to `{to.buffer.name}`",
            help="choose a narrower instruction or a layout with longer runs",
        )
    return max(fitting, key=lambda atom: atom.vector_bits)


def _fits(atom: Atom, target: Target, spaces: tuple[Space, Space]) -> bool:
    if atom.mnk is not None or target.name not in atom.targets:
        return False
    return (atom.operands["source"].space, atom.operands["target"].space) == spaces


def run_length(memory: View, by: TV) -> int:
    """How many consecutive values of a thread are consecutive elements of the tensor's last axis."""
    thread = algebra.sym(Symbol("thread", "thread", 0, by.threads.size - 1))
    count = by.values.size
    places = [
        tuple(substitute(at, {}, by.coordinates_at(thread, value)) for at in memory.at) for value in range(count)
    ]
    one = algebra.const(1)
    zero = algebra.const(0)

    def follows(value: int) -> bool:
        steps = [algebra.sub(b, a) for a, b in zip(places[value - 1], places[value], strict=True)]
        return steps[-1] is one and all(step is zero for step in steps[:-1])

    run = count
    while run > 1:
        if count % run == 0 and all(follows(value) for value in range(count) if value % run != 0):
            return run
        run -= 1
    return 1
