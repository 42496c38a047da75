"""Program flow, waits and barriers: SOPP, and what reads or sets the program counter or MODE.

[MI300 ISA, "Program flow control", "Data dependency resolution".]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus.interp.gfx942.instruction import EXEC, VCC, Constant, Instruction, Scalar
from argus.interp.gfx942.row import Row, act
from argus.interp.gfx942.state import Array, Group, Mask, Wave
from argus.interp.gfx942.unmodelled import not_modelled


class DivergedError(Exception):
    """Workgroups that are executed together go different ways. taken: those that branch."""

    def __init__(self, taken: Mask) -> None:
        super().__init__()
        self.taken = taken


def _branch(when: Callable[[Wave], Array] | None) -> Callable[[Group, Wave, Instruction], None]:
    def run(group: Group, wave: Wave, instruction: Instruction) -> None:
        target = instruction.address + 4 + 4 * instruction.immediate
        if when is None:
            wave.at = target
            return
        taken = np.broadcast_to(when(wave), (group.count,))
        if taken.all():
            wave.at = target
        elif taken.any():
            raise DivergedError(taken)

    return run


def _write_return(wave: Wave, instruction: Instruction, base: int) -> None:
    """The address of the next instruction, where the code object is loaded. base: what is added for that."""
    (target,) = instruction.results
    assert isinstance(target, Scalar)
    address = instruction.address + instruction.size + base
    for number in range(2):
        wave.write_scalar(target.first + number, np.uint32(address >> 32 * number & 0xFFFFFFFF))


def _get_place(group: Group, wave: Wave, instruction: Instruction) -> None:
    _write_return(wave, instruction, group.memory.code_base)


def _set_place(group: Group, wave: Wave, instruction: Instruction) -> None:
    """Go on at an address; one that is not in the code is refused when it is reached."""
    (source,) = instruction.sources
    assert isinstance(source, Scalar)
    target = wave.s[source.first].astype(np.uint64) | wave.s[source.first + 1].astype(np.uint64) << np.uint64(32)
    same = target == target[0]
    if not same.all():
        raise DivergedError(same)
    if instruction.results:
        _write_return(wave, instruction, group.memory.code_base)
    wave.at = (int(target[0]) - group.memory.code_base) % (1 << 64)


def _call(group: Group, wave: Wave, instruction: Instruction) -> None:
    _write_return(wave, instruction, group.memory.code_base)
    wave.at = instruction.address + 4 + 4 * instruction.immediate


_MODE = 1
_MODELLED_MODE = (1 << 10) - 1
"""Rounding, subnormals, DX10_CLAMP, IEEE."""


def _field(instruction: Instruction) -> tuple[int, int]:
    """The first bit and the mask of the field of MODE that an instruction names. Raises ArgusError (E502)."""
    named = instruction.immediate
    if named & 63 != _MODE:
        raise not_modelled(f"the hardware register {named & 63} of `{instruction.row.name}`", 0, 0, instruction.address)
    return named >> 6 & 31, (1 << (named >> 11 & 31) + 1) - 1


def _set_mode(_group: Group, wave: Wave, instruction: Instruction) -> None:
    start, mask = _field(instruction)
    (source,) = instruction.sources
    if isinstance(source, Constant):
        value = source.word
    else:
        assert isinstance(source, Scalar)
        values = wave.s[source.first]
        if (values != values[0]).any():
            raise DivergedError(values == values[0])
        value = int(values[0])
    made = wave.mode & ~(mask << start) | (value & mask) << start
    if made & ~_MODELLED_MODE:
        raise not_modelled(f"the mode 0x{made:x}", 0, 0, instruction.address)
    wave.mode = made


def _get_mode(_group: Group, wave: Wave, instruction: Instruction) -> None:
    start, mask = _field(instruction)
    (target,) = instruction.results
    assert isinstance(target, Scalar)
    wave.write_scalar(target.first, np.uint32(wave.mode >> start & mask))


_ABORT = 2


def _trap(group: Group, wave: Wave, instruction: Instruction) -> None:
    """`__builtin_trap`, a failed assertion or unreachable code; a debugger's trap does nothing."""
    if instruction.immediate == _ABORT:
        group.report(
            "trap", wave, instruction, "the kernel stops itself: an assertion fails, or code that must not run"
        )
        wave.state = "ended"


def _halt(_group: Group, wave: Wave, instruction: Instruction) -> None:
    if instruction.immediate & 1:
        wave.state = "ended"


def _zero(register: int) -> Callable[[Wave], Array]:
    return lambda wave: (wave.s[register] | wave.s[register + 1]) == 0


def _nonzero(register: int) -> Callable[[Wave], Array]:
    return lambda wave: (wave.s[register] | wave.s[register + 1]) != 0


def _end(_group: Group, wave: Wave, _instruction: Instruction) -> None:
    wave.state = "ended"


def _barrier(_group: Group, wave: Wave, _instruction: Instruction) -> None:
    wave.state = "at barrier"


def _wait(_group: Group, wave: Wave, instruction: Instruction) -> None:
    """vmcnt is bits 15:14 and 3:0 of the immediate, lgkmcnt bits 11:8 [LLVM AMDGPU user guide]."""
    immediate = instruction.immediate
    wave.scoreboard.wait(immediate & 15 | (immediate >> 14 & 3) << 4, immediate >> 8 & 15)


def _nothing(_group: Group, _wave: Wave, _instruction: Instruction) -> None:
    """No effect on what is computed."""


ROWS: tuple[Row, ...] = (
    act("s_nop", "SOPP", 0, "=", _nothing),
    act("s_endpgm", "SOPP", 1, "=", _end),
    act("s_branch", "SOPP", 2, "=", _branch(None)),
    act("s_cbranch_scc0", "SOPP", 4, "= scc", _branch(lambda wave: ~wave.scc)),
    act("s_cbranch_scc1", "SOPP", 5, "= scc", _branch(lambda wave: wave.scc)),
    act("s_cbranch_vccz", "SOPP", 6, "= vcc", _branch(_zero(VCC))),
    act("s_cbranch_vccnz", "SOPP", 7, "= vcc", _branch(_nonzero(VCC))),
    act("s_cbranch_execz", "SOPP", 8, "= exec", _branch(_zero(EXEC))),
    act("s_cbranch_execnz", "SOPP", 9, "= exec", _branch(_nonzero(EXEC))),
    act("s_barrier", "SOPP", 10, "=", _barrier),
    act("s_waitcnt", "SOPP", 12, "=", _wait),
    act("s_sethalt", "SOPP", 13, "=", _halt),
    act("s_sendmsg", "SOPP", 16, "= m0", _nothing),
    act("s_trap", "SOPP", 18, "=", _trap),
    act("s_getreg_b32", "SOPK", 17, "b32 =", _get_mode),
    act("s_setreg_b32", "SOPK", 18, "= b32", _set_mode),
    act("s_setreg_imm32_b32", "SOPK", 20, "= k", _set_mode),
    act("s_sleep", "SOPP", 14, "=", _nothing),
    act("s_setprio", "SOPP", 15, "=", _nothing),
    act("s_wakeup", "SOPP", 3, "=", _nothing),
    act("s_getpc_b64", "SOP1", 28, "u64 =", _get_place),
    act("s_setpc_b64", "SOP1", 29, "= u64", _set_place),
    act("s_swappc_b64", "SOP1", 30, "u64 = u64", _set_place),
    act("s_call_b64", "SOPK", 21, "u64 = imm", _call),
    act("s_icache_inv", "SOPP", 19, "=", _nothing),
)
