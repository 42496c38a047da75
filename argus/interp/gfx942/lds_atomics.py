"""Atomic operations on LDS [MI300 ISA, chapter "Instructions", DS]."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from argus.interp.gfx942 import atomics
from argus.interp.gfx942.atomics import LONG, SHORT, Atomic
from argus.interp.gfx942.instruction import Instruction, Vector
from argus.interp.gfx942.local_memory import track_local, update_local
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import Group, Wave

_NUMBERS = {
    "add_u": ("add", 0), "sub_u": ("sub", 1), "rsub_u": ("rsub", 2), "inc_u": ("inc", 3), "dec_u": ("dec", 4),
    "min_i": ("smin", 5), "max_i": ("smax", 6), "min_u": ("umin", 7), "max_u": ("umax", 8), "and_b": ("and", 9),
    "or_b": ("or", 10), "xor_b": ("xor", 11), "cmpst_b": ("cmpswap", 16),
}  # fmt: skip
_FLOATS: tuple[tuple[str, int, int, Atomic], ...] = (
    ("min_{}f32", 18, 50, atomics.LEAST_F32),
    ("max_{}f32", 19, 51, atomics.MOST_F32),
    ("add_{}f32", 21, 53, atomics.ADD_F32),
    ("pk_add_{}f16", 23, 183, atomics.ADD_HALVES),
    ("pk_add_{}bf16", 24, 184, atomics.ADD_BRAINS),
    ("min_{}f64", 82, 114, atomics.LEAST_F64),
    ("max_{}f64", 83, 115, atomics.MOST_F64),
    ("add_{}f64", 92, 124, atomics.ADD_F64),
)


def _run(atomic: Atomic) -> Callable[[Group, Wave, Instruction], None]:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        address, *data = instruction.sources
        assert isinstance(address, Vector)
        places = wave.v[address.first].astype(np.int64) + instruction.immediate
        # The value to compare with comes first here, and last in the instructions on global memory.
        operands = [each.first for each in reversed(data) if isinstance(each, Vector)]
        before, touch = update_local(group, wave, instruction, atomic, places, operands)
        for target in instruction.results:
            assert isinstance(target, Vector)
            for number, word in enumerate(before):
                wave.write(target.first + number, word)
        track_local(wave, instruction, [touch])

    return run


def _pair(stem: str, number: int, returning: int, atomic: Atomic) -> tuple[Row, Row]:
    """Without and with a result."""
    kind = f"b{8 * atomic.size}"
    sources = f"u32 {kind} {kind}" if atomic.compares else f"u32 {kind}"
    return (
        act(f"ds_{stem.format('')}", "DS", number, f"= {sources}", _run(atomic)),
        act(f"ds_{stem.format('rtn_')}", "DS", returning, f"{kind} = {sources}", _run(atomic)),
    )


def _of_integers(bits: int, known: Mapping[str, Atomic]) -> tuple[Row, ...]:
    base = 0 if bits == 32 else 64
    found: list[Row] = []
    for name, (operation, number) in _NUMBERS.items():
        stem, letter = name.split("_")
        first = base + number
        found += _pair(f"{stem}_{{}}{letter}{bits}", first, first + 32, known[operation])
    kind = f"b{bits}"
    exchange = act(f"ds_wrxchg_rtn_b{bits}", "DS", base + 45, f"{kind} = u32 {kind}", _run(known["swap"]))
    return (*found, exchange)


ROWS: tuple[Row, ...] = (
    *_of_integers(32, SHORT),
    *_of_integers(64, LONG),
    *(row for stem, number, returning, atomic in _FLOATS for row in _pair(stem, number, returning, atomic)),
)
