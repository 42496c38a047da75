"""Scratch memory, and flat addresses, which are of global memory, of LDS or of scratch memory.

[MI300 ISA, "Flat memory instructions"; LLVM AMDGPU user guide, "Address spaces".] Scratch memory is private to a lane.
What a lane stores there before it has written it stays unwritten when it is loaded again: compilers store registers
that hold nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np

from argus.interp.gfx942.atomics import Atomic, update
from argus.interp.gfx942.global_memory import ATOMICS, LOADS, STORES, Finish, checked, gather, scatter, signature
from argus.interp.gfx942.instruction import Instruction, Scalar, Vector, vectors
from argus.interp.gfx942.local_memory import elements, load_local, store_local, update_local
from argus.interp.gfx942.memory import PRIVATE_BASE, SHARED_BASE
from argus.interp.gfx942.races import Touch
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.scoreboard import Issued
from argus.interp.gfx942.scoreboard import Unit as Counter
from argus.interp.gfx942.state import Array, Group, Mask, Wave
from argus.interp.gfx942.unmodelled import not_modelled

U32, U64 = np.uint32, np.uint64
Run = Callable[[Group, Wave, Instruction], None]


@contextmanager
def _only(wave: Wave, lanes: Mask) -> Generator[None]:
    """With these lanes active alone."""
    active, full = wave.active, wave.full
    wave.active, wave.full = lanes, bool(lanes.all())
    try:
        yield
    finally:
        wave.active, wave.full = active, full


def scratch_places(wave: Wave, instruction: Instruction) -> Array:
    """Bytes of a scratch instruction from the start of a lane's memory."""
    at = np.full(wave.active.shape, instruction.immediate, np.int64)
    if "vaddr" in instruction.flags:
        first = instruction.sources[0]
        assert isinstance(first, Vector)
        at = at + wave.v[first.first].view(np.int32)
    if "saddr" in instruction.flags:
        base = instruction.sources[-1]
        assert isinstance(base, Scalar)
        at = at + wave.s[base.first].view(np.int32)[:, None]
    return at


def _inside(group: Group, wave: Wave, instruction: Instruction, places: Array, lanes: Mask, size: int) -> Mask:
    held = wave.scratch.shape[2]
    wrong = lanes & ((places < 0) | (places + size > held))
    if wrong.any():
        what = f"{size} bytes at byte {int(places[wrong][0])} of scratch memory, of which a lane has {held}"
        group.report("out of bounds", wave, instruction, what, wrong)
    return lanes & ~wrong


def _load_private(wave: Wave, places: Array, lanes: Mask, size: int) -> tuple[Array, Array]:
    """Dwords (dword, workgroup, lane), 0 in other lanes, and the bits of them that nothing has written."""
    found = np.zeros((2, (size + 3) // 4, *lanes.shape), U32)
    rows, columns = np.nonzero(lanes)
    at = (rows[:, None], columns[:, None], places[lanes][:, None] + np.arange(size))
    for number, held in enumerate((wave.scratch, wave.unwritten_scratch)):
        octets = np.zeros((len(rows), found.shape[1] * 4), np.uint8)
        octets[:, :size] = held[at]
        found[number][:, lanes] = octets.view(U32).T
    return found[0], found[1]


def _store_private(wave: Wave, places: Array, lanes: Mask, words: Array, holes: Array, size: int) -> None:
    rows, columns = np.nonzero(lanes)
    at = (rows[:, None], columns[:, None], places[lanes][:, None] + np.arange(size))
    for held, parts in ((wave.scratch, words), (wave.unwritten_scratch, holes)):
        octets = np.ascontiguousarray(parts[:, lanes].T).view(np.uint8)
        held[at] = octets[:, :size]


def _flat(wave: Wave, instruction: Instruction) -> tuple[Array, tuple[Mask, Mask, Mask]]:
    """Addresses, and the active lanes whose addresses are of LDS, of scratch memory, and of global memory."""
    first = instruction.sources[0]
    assert isinstance(first, Vector)
    at = (wave.v[first.first].astype(U64) | wave.v[first.first + 1].astype(U64) << U64(32)) + U64(instruction.immediate)
    upper = at >> U64(32)
    shared, private = upper == U64(SHARED_BASE >> 32), upper == U64(PRIVATE_BASE >> 32)
    active = wave.active
    return at, (active & shared, active & private, active & ~shared & ~private)


def _issue(wave: Wave, instruction: Instruction, counter: Counter, late: tuple[Touch, ...] = ()) -> None:
    registers = frozenset(vectors(instruction.results))
    wave.scoreboard.issue(Issued(counter, instruction, registers, frozenset(), late))


def _write(wave: Wave, instruction: Instruction, words: Array, holes: Array, finish: Finish | None, size: int) -> None:
    (target,) = instruction.results
    assert isinstance(target, Vector)
    for number, word in enumerate(words):
        register = target.first + number
        before, missing = wave.undefined_bits(register), holes[number]
        keeps = "old" in instruction.row.sources
        wave.write(register, word if finish is None else finish(word, wave.v[register]))
        if size < 4:
            missing = np.where(missing != 0, U32(0xFFFFFFFF), U32(0))
        if keeps:
            high = instruction.row.name.endswith("_hi")
            part = U32(0xFFFF0000 if high else 0xFFFF)
            missing = missing & part | before & ~part
        if missing.any():
            wave.mark_undefined(register, missing)


def _scratch_load(size: int, finish: Finish | None) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        places = scratch_places(wave, instruction)
        lanes = _inside(group, wave, instruction, places, wave.active, size)
        words, holes = _load_private(wave, places, lanes, size)
        _write(wave, instruction, words, holes, finish, size)
        _issue(wave, instruction, "vector")

    return run


def _scratch_store(size: int, shift: int) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        words, holes = _data(wave, instruction, shift)
        places = scratch_places(wave, instruction)
        lanes = _inside(group, wave, instruction, places, wave.active, size)
        _store_private(wave, places, lanes, words, holes, size)
        _issue(wave, instruction, "vector")

    return run


def _data(wave: Wave, instruction: Instruction, shift: int) -> tuple[Array, Array]:
    """The dwords that a store writes, and their bits that nothing has written."""
    number = 1 if instruction.row.form == "FLAT" or "vaddr" in instruction.flags else 0
    data = instruction.sources[number]
    assert isinstance(data, Vector)
    words = wave.v[data.first : data.first + data.count]
    holes = np.stack([wave.undefined_bits(data.first + n) for n in range(data.count)])
    return (words >> U32(shift), holes >> U32(shift)) if shift else (words, holes)


def _flat_load(size: int, finish: Finish | None) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        at, (shared, private, others) = _flat(wave, instruction)
        low = (at & U64(0xFFFFFFFF)).astype(np.int64)
        offsets = group.memory.offsets(at)
        words = gather(group, offsets, checked(group, wave, instruction, offsets, others, size, stores=False), size)
        holes = np.zeros_like(words)
        touches: list[Touch] = []
        if shared.any():
            with _only(wave, shared):
                found, touch = load_local(group, wave, instruction, low, size)
            touches += [touch] if touch is not None else []
            words = np.where(shared, np.stack(found), words)
        if private.any():
            lanes = _inside(group, wave, instruction, low, private, size)
            found, missing = _load_private(wave, low, lanes, size)
            words, holes = np.where(private, found, words), np.where(private, missing, holes)
        _write(wave, instruction, words, holes, finish, size)
        _issue(wave, instruction, "flat", tuple(touches))

    return run


def _flat_store(size: int, shift: int) -> Run:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        words, holes = _data(wave, instruction, shift)
        at, (shared, private, others) = _flat(wave, instruction)
        used = U32(0xFFFFFFFF if size >= 4 else (1 << 8 * size) - 1)
        missing = ~private & wave.active & ((holes & used) != 0).any(0)
        if missing.any():
            what = "stores data of which nothing has written all that it uses"
            group.report("uninitialised register", wave, instruction, what, missing)
        low = (at & U64(0xFFFFFFFF)).astype(np.int64)
        offsets = group.memory.offsets(at)
        scatter(group, offsets, checked(group, wave, instruction, offsets, others, size, stores=True), words, size)
        touches: list[Touch] = []
        if shared.any():
            with _only(wave, shared):
                touches.append(store_local(group, wave, instruction, low, words, size))
        if private.any():
            lanes = _inside(group, wave, instruction, low, private, size)
            _store_private(wave, low, lanes, words, holes, size)
        _issue(wave, instruction, "flat", tuple(touches))

    return run


def _flat_atomic(atomic: Atomic) -> Run:
    size = atomic.size

    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        at, (shared, private, others) = _flat(wave, instruction)
        if private.any():
            raise not_modelled(f"`{instruction}` on scratch memory", 0, 0, instruction.address)
        data = instruction.sources[1]
        assert isinstance(data, Vector)
        operands = [data.first, data.first + size // 4] if atomic.compares else [data.first]
        offsets = group.memory.offsets(at)
        lanes = checked(group, wave, instruction, offsets, others, size, stores=True)
        apart = lanes & (offsets % size != 0)
        if apart.any():
            what = f"an atomic operation on {group.memory.describe(int(offsets[apart][0]))}, not a multiple of {size}"
            group.report("misaligned", wave, instruction, what, apart)
            lanes = lanes & ~apart
        values = [elements(wave, atomic.kind, register)[lanes] for register in operands]
        held, places = group.memory.data.view(atomic.kind), offsets[lanes] // size
        found = update(atomic, held, places, values[0], values[-1], returns=bool(instruction.results))
        before = np.zeros((*lanes.shape, size // 4), U32)
        before[lanes] = np.ascontiguousarray(found).view(U32).reshape(-1, size // 4)
        touches: list[Touch] = []
        if shared.any():
            low = (at & U64(0xFFFFFFFF)).astype(np.int64)
            with _only(wave, shared):
                words, touch = update_local(group, wave, instruction, atomic, low, operands)
            before = np.where(shared[..., None], np.stack(words, axis=-1), before)
            touches.append(touch)
        for target in instruction.results:
            assert isinstance(target, Vector)
            for number in range(size // 4):
                wave.write(target.first + number, before[..., number])
        _issue(wave, instruction, "flat", tuple(touches))

    return run


ROWS: tuple[Row, ...] = (
    *(
        act(f"scratch_load_{name}", "SCRATCH", number, f"{text} u32", _scratch_load(size, finish))
        for name, number, size, text, finish in LOADS
    ),
    *(
        act(f"scratch_store_{name}", "SCRATCH", number, f"= u32 {kind}", _scratch_store(size, shift))
        for name, number, size, kind, shift in STORES
    ),
    *(
        act(f"flat_load_{name}", "FLAT", number, f"{text} u64", _flat_load(size, finish))
        for name, number, size, text, finish in LOADS
    ),
    *(
        act(f"flat_store_{name}", "FLAT", number, f"= u64 {kind}", _flat_store(size, shift))
        for name, number, size, kind, shift in STORES
    ),
    *(
        act(f"flat_atomic_{name}", "FLAT", number, signature(atomic, "u64"), _flat_atomic(atomic))
        for name, number, atomic in ATOMICS
    ),
)
