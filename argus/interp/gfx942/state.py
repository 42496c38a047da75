"""What a wave and its workgroups hold while they are executed.

Workgroups that take the same way through the code are executed together: registers are arrays over (workgroup, lane).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field

from argus.interp.gfx942.findings import Finding, Findings, Kind, Where
from argus.interp.gfx942.instruction import ACC, EXEC, Instruction
from argus.interp.gfx942.memory import Memory
from argus.interp.gfx942.races import Races, Touch
from argus.interp.gfx942.recent import Recent
from argus.interp.gfx942.scoreboard import Scoreboard

Words = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
LANES = 64
FLOAT_MODE = 0xF0
"""Round to nearest even and keep subnormals, in 32-bit as in 16- and 64-bit operations: the default of HIP."""
_SCALARS = 128
_GARBAGE = 0x7FDEAD55
"""What registers and LDS hold before they are written: a NaN, and no address."""


@define
class Wave:
    """One wave of every workgroup of a group.

    v: vector registers, (register, workgroup, lane). s: scalar registers, (register, workgroup), special ones at their
    codes. whole: of each vector register, whether all of it has been written; holes: of others, the bits that have not
    been, all if there is no entry. known: of each scalar register, whether it has been written. active: EXEC by lane;
    full: whether it is all ones. scratch: private memory, (workgroup, lane, byte); unwritten_scratch: its bits that
    nothing has written. mode: the register MODE, the same in all workgroups.
    """

    number: int
    v: Words
    s: Words
    scc: Mask
    active: Mask
    at: int
    whole: list[bool]
    holes: dict[int, Words]
    known: list[bool]
    scratch: npt.NDArray[np.uint8]
    unwritten_scratch: npt.NDArray[np.uint8]
    mode: int = FLOAT_MODE
    full: bool = True
    state: Literal["ready", "at barrier", "ended"] = "ready"
    scoreboard: Scoreboard = field(factory=Scoreboard)
    recent: Recent = field(factory=Recent)
    scalar_holes: dict[int, Words] = field(factory=dict[int, Words])
    """Of scalar registers that are not known, the bits that nothing has written, all if there is no entry."""
    known_scc: bool = True
    clean: set[int] = field(factory=set[int])
    """Addresses of instructions all of whose registers are known to have been written."""
    clock: int = 0
    stamps: list[int] = field(factory=list[int])
    """Of each vector register, the clock at the last write to it."""
    converted: dict[tuple[int, int, str, bool], Any] = field(factory=dict[tuple[int, int, str, bool], Any])
    """Operands of matrix instructions as they are multiplied."""

    def __attrs_post_init__(self) -> None:
        self.stamps = [0] * len(self.v)

    def stamp(self, register: int, count: int = 1) -> None:
        """Note that vector registers have been written."""
        self.clock += 1
        if count == 1:
            self.stamps[register] = self.clock
        else:
            self.stamps[register : register + count] = [self.clock] * count

    def write(self, register: int, value: Array) -> None:
        """Write a vector register in the active lanes."""
        self.clock += 1
        self.stamps[register] = self.clock
        if self.full:
            self.v[register] = value
            self.whole[register] = True
            return
        np.copyto(self.v[register], value, where=self.active)
        if not self.whole[register]:
            left = np.where(self.active, np.uint32(0), self.undefined_bits(register))
            self.holes[register] = left
            self.whole[register] = not left.any()

    def write_scalar(self, register: int, value: Array | np.uint32) -> None:
        self.s[register] = value
        self.known[register] = True
        if register >= EXEC:
            self.refresh_active()

    def refresh_active(self) -> None:
        self.active = lanes_of(self.s[EXEC : EXEC + 2])
        self.full = bool(self.active.all())

    def mask(self, register: int) -> Mask:
        """A pair of scalar registers by lane."""
        return self.active if register == EXEC else lanes_of(self.s[register : register + 2])

    def write_mask(self, register: int, value: Mask) -> None:
        packed = np.packbits(np.broadcast_to(value, self.active.shape), axis=-1, bitorder="little").view(np.uint32)
        self.s[register], self.s[register + 1] = packed[:, 0], packed[:, 1]
        self.known[register] = self.known[register + 1] = True
        if register == EXEC:
            self.refresh_active()

    def undefined_bits(self, register: int) -> Words:
        """The bits of a vector register, by workgroup and lane, that nothing has written."""
        if self.whole[register]:
            return np.zeros(self.active.shape, np.uint32)
        found = self.holes.get(register)
        return np.full(self.active.shape, 0xFFFFFFFF, np.uint32) if found is None else found

    def mark_undefined(self, register: int, bits: Words, *, everywhere: bool = False) -> None:
        """Take back that some bits in active lanes, or in all, have been written."""
        joined = self.undefined_bits(register) | np.where(self.active | everywhere, bits, np.uint32(0))
        self.whole[register] = not joined.any()
        self.holes[register] = joined
        self.clean.clear()

    def undefined_scalar(self, register: int) -> Words:
        """The bits of a scalar register, by workgroup, that nothing has written."""
        if self.known[register]:
            return np.zeros(len(self.scc), np.uint32)
        found = self.scalar_holes.get(register)
        return np.full(len(self.scc), 0xFFFFFFFF, np.uint32) if found is None else found

    def forget(self, register: int, bits: Words) -> None:
        """Take back that some bits of a scalar register have been written."""
        self.known[register] = not bits.any()
        self.scalar_holes[register] = bits
        self.clean.clear()

    def unwritten(self, register: int) -> Mask | None:
        """The active lanes in which a vector register has bits that nothing has written; None if there are none."""
        lanes = self.active & (self.undefined_bits(register) != 0)
        return lanes if lanes.any() else None

    def taken(self, chosen: Mask, stride: int) -> Wave:
        """This wave in some of the workgroups. stride: LDS bytes of one."""
        made = Wave(
            self.number,
            self.v[:, chosen],
            self.s[:, chosen],
            self.scc[chosen],
            self.active[chosen],
            self.at,
            list(self.whole),
            {register: bits[chosen] for register, bits in self.holes.items()},
            list(self.known),
            self.scratch[chosen],
            self.unwritten_scratch[chosen],
            self.mode,
            state=self.state,
            scoreboard=self.scoreboard.taken(chosen, stride),
            recent=self.recent.copied(),
            scalar_holes={register: bits[chosen] for register, bits in self.scalar_holes.items()},
            known_scc=self.known_scc,
        )
        made.full = bool(made.active.all())
        return made


def lanes_of(pair: Words) -> Mask:
    """(2, workgroup) bits as (workgroup, lane)."""
    octets = np.ascontiguousarray(pair.T).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").view(np.bool_)


@define
class Access:
    """An access to LDS by all lanes that was made before. base: its addresses without their offset, which the register
    held at the time `stamp` of the wave's clock.

    index: the elements of its size that it accesses, in all workgroups' LDS, by workgroup and lane. touch: its bytes.
    """

    base: Words
    index: Array
    touch: Touch
    stamp: int


@define
class Group:
    """Workgroups that are executed together. ids: (workgroup, axis).

    lds: (workgroup, byte); written: 1 for each of these bytes that something has written. lds_bytes: how many of them a
    workgroup has; the arrays may have more, for alignment.
    """

    ids: npt.NDArray[np.int64]
    waves: list[Wave]
    lds: npt.NDArray[np.uint8]
    written: npt.NDArray[np.uint8]
    memory: Memory
    findings: Findings
    races: Races
    lds_bytes: int
    memo: dict[tuple[int, int, int], list[Access]] = field(factory=dict[tuple[int, int, int], list[Access]])
    """Accesses to LDS that have been made, by instruction, wave and part."""

    @property
    def count(self) -> int:
        return len(self.ids)

    def report(
        self, kind: Kind, wave: Wave, instruction: Instruction, what: str, lanes: Mask | None = None, other: int = 0
    ) -> None:
        """Add a finding. lanes: those concerned, of which the first is named."""
        first = (0, None) if lanes is None else tuple(int(axis[0]) for axis in np.nonzero(lanes))
        x, y, z = (int(each) for each in self.ids[first[0] or 0])
        where = Where((x, y, z), wave.number, first[1])
        self.findings.add(Finding(kind, instruction.address, str(instruction), what, where, other))

    def taken(self, chosen: Mask) -> Group:
        """Some of the workgroups, to be executed apart."""
        waves = [wave.taken(chosen, self.races.stride) for wave in self.waves]
        return evolve(
            self,
            ids=self.ids[chosen],
            waves=waves,
            lds=self.lds[chosen],
            written=self.written[chosen],
            races=self.races.taken(chosen),
            memo={},
        )


def new_wave(number: int, workgroups: int, vector_registers: int, at: int, scratch: int = 0) -> Wave:
    """A wave of which no register is written but EXEC. vector_registers: AccVGPRs included, from 256. scratch: bytes of
    a lane.
    """
    v = np.full((vector_registers, workgroups, LANES), _GARBAGE, np.uint32)
    s = np.full((_SCALARS, workgroups), _GARBAGE, np.uint32)
    s[EXEC : EXEC + 2] = 0xFFFFFFFF
    known = [False] * _SCALARS
    known[EXEC] = known[EXEC + 1] = True
    ones = np.ones((workgroups, LANES), np.bool_)
    scc = np.zeros(workgroups, np.bool_)
    private = np.full((workgroups, LANES, scratch), 0xD5, np.uint8)
    unwritten = np.full((workgroups, LANES, scratch), 0xFF, np.uint8)
    return Wave(number, v, s, scc, ones, at, [False] * vector_registers, {}, known, private, unwritten)


def vector_registers(vgprs: int, agprs: int) -> int:
    """Rows that a wave's vector registers take."""
    return ACC + agprs if agprs else vgprs
