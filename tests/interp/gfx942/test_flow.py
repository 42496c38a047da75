"""Branches, and workgroups that part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

from argus.interp.gfx942.flow import DivergedError
from argus.interp.gfx942.instruction import VCC
from argus.interp.gfx942.launch import Tensor, execute
from argus.interp.gfx942.state import Group, Wave
from tests.interp.gfx942.assembled import kernels
from tests.interp.gfx942.executed import Instructions, group_of_one

# For each: whether it branches, by SCC, VCC and EXEC being zero.
BRANCHES: dict[str, Callable[[bool, int, int], bool]] = {
    "s_branch": lambda _scc, _vcc, _active: True,
    "s_cbranch_scc0": lambda scc, _vcc, _active: not scc,
    "s_cbranch_scc1": lambda scc, _vcc, _active: scc,
    "s_cbranch_vccz": lambda _scc, vcc, _active: vcc == 0,
    "s_cbranch_vccnz": lambda _scc, vcc, _active: vcc != 0,
    "s_cbranch_execz": lambda _scc, _vcc, active: active == 0,
    "s_cbranch_execnz": lambda _scc, _vcc, active: active != 0,
}
PLACES = {
    "s_getpc_b64": "s_getpc_b64 s[8:9]",
    "s_setpc_b64": "s_setpc_b64 s[8:9]",
    "s_swappc_b64": "s_swappc_b64 s[10:11], s[8:9]",
    "s_call_b64": "s_call_b64 s[10:11], 5",
    "s_trap": "s_trap 2",
    "s_sethalt": "s_sethalt 1",
}
LINES = {name: f"{name} 5" for name in BRANCHES}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *PLACES.values(), "s_trap 3"])


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_counts_in_words_from_the_next_instruction(code: Instructions, name: str) -> None:
    for scc in (False, True):
        for high in (0, 1):
            group = group_of_one()
            group.waves[0].scc = np.array([scc])
            group.waves[0].at = 12
            wave = code.run(LINES[name], {}, {VCC: 0, VCC + 1: high}, active=high << 63, group=group)
            own = code.steps[LINES[name]].instruction.address
            taken = BRANCHES[name](scc, high, high << 63)

            assert wave.at == (own + 4 + 20 if taken else 12)


def test_workgroups_that_take_other_ways_end_as_if_each_ran_alone() -> None:
    body = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_lshl_b32 s8, s2, 8
v_add_u32_e32 v1, s8, v1
v_mov_b32_e32 v2, 0
s_waitcnt lgkmcnt(0)
s_mov_b32 s9, s2
.Lloop:
s_cmp_eq_u32 s9, 0
s_cbranch_scc1 .Lend
ds_write_b32 v1, v0
v_add_u32_e32 v2, s9, v2
s_sub_u32 s9, s9, 1
s_barrier
s_branch .Lloop
.Lend:
s_waitcnt lgkmcnt(0)
global_store_dword v1, v2, s[6:7]
"""
    tensors = (Tensor("input", np.zeros(4, np.uint32)), Tensor("output", np.zeros((5, 64), np.uint32), written=True))
    done = execute(kernels({"parts": body}, lds=2048), "parts", [5], 64, tensors)

    assert not done.findings
    assert [int(each) for each in done.tensors["output"][:, 7]] == [0, 1, 3, 6, 10]
    assert (done.tensors["output"] == done.tensors["output"][:, :1]).all()


def held(wave: Wave, first: int) -> int:
    return int(wave.s[first, 0]) | int(wave.s[first + 1, 0]) << 32


def test_the_program_counter_is_read_set_and_swapped(code: Instructions) -> None:
    base, target = 0x7F00_1234_0000, 0x100
    group = group_of_one()
    group.memory.code_base = base
    for name in ("s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64"):
        group.waves[0].at = 12
        next_ = code.steps[PLACES[name]].instruction.address + 4
        given = {8: base + target & 0xFFFFFFFF, 9: (base + target) >> 32}
        wave = code.run(PLACES[name], {}, given, group=group)
        match name:
            case "s_getpc_b64":
                assert (held(wave, 8), wave.at) == (base + next_, 12)
            case "s_call_b64":
                assert (held(wave, 10), wave.at) == (base + next_, next_ + 20)
            case _:
                assert wave.at == target
                assert name == "s_setpc_b64" or held(wave, 10) == base + next_


def test_workgroups_that_go_to_other_places_part(code: Instructions) -> None:
    group = group_of_one()
    wide = evolve_to_two(group)
    wide.waves[0].s[8], wide.waves[0].s[9] = np.array([4, 8], np.uint32), np.zeros(2, np.uint32)

    with pytest.raises(DivergedError) as parts:
        code.steps[PLACES["s_setpc_b64"]].run(wide, wide.waves[0])
    assert parts.value.taken.tolist() == [True, False]


def evolve_to_two(group: Group) -> Group:
    both = np.array([0, 0])
    (wave,) = group.waves
    return evolve(group, ids=group.ids[both], waves=[evolve(wave, s=wave.s[:, both])])


@pytest.mark.parametrize(("line", "kinds", "state"), [
    ("s_trap 2", {"trap"}, "ended"), ("s_trap 3", set[str](), "ready"), ("s_sethalt 1", set[str](), "ended"),
])  # fmt: skip
def test_a_trap_ends_a_wave_and_is_reported(code: Instructions, line: str, kinds: set[str], state: str) -> None:
    group = group_of_one()
    wave = code.run(line, {}, group=group)

    assert {kind for kind, _ in group.findings.found} == kinds
    assert wave.state == state
