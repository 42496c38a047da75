"""Choosing the instruction of a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import numpy.typing as npt

from argus.core.atom import Atom, Space
from argus.core.atoms import gfx942
from argus.core.dsl.faults import fault
from argus.core.ir import View
from argus.core.layout import TV
from argus.core.target import Target
from argus.core.walk import IntArray, evaluate, symbols

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
    bits = source.buffer.dtype.bits
    legal = [atom for atom in named if _fits(atom, target, spaces) and atom.vector_bits % bits == 0]
    if not legal:
        fault(
            "E108",
            f"no instruction of {target} named here copies {bits}-bit elements from {spaces[0]} to {spaces[1]}: "
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
    """How many consecutive values of a thread are consecutive elements of the tensor's last axis.

    Looked at for one setting of the symbols: what is chosen here is proved for all of them later (I19). One where
    that setting divides by zero.
    """
    trial = {symbol: _TRIAL_SIZE if symbol.kind == "size" else 0 for at in memory.at for symbol in symbols(at)}
    axes = by.coordinates()
    try:
        places = [np.broadcast_to(cast(IntArray, evaluate(at, trial, axes)), axes[0].shape) for at in memory.at]
    except ZeroDivisionError:
        return 1
    follows = np.ones(by.values.size() - 1, np.bool_)
    for axis, place in enumerate(places):
        step = 1 if axis == len(places) - 1 else 0
        follows &= (place[:, 1:] - place[:, :-1] == step).all(axis=0)
    count = by.values.size()
    return max(run for run in range(1, count + 1) if count % run == 0 and _in_runs(follows, run))


def _in_runs(follows: npt.NDArray[np.bool_], run: int) -> bool:
    """Whether each value but the first of a run follows the one before."""
    return bool(follows[np.arange(1, len(follows) + 1) % run != 0].all())


_TRIAL_SIZE = 1 << 20
