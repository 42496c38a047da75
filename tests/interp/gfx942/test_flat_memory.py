"""Scratch memory and flat addresses against plain bytes: segments, widths, halves, what nothing has written, waits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from argus.interp.gfx942.launch import Tensor, execute
from argus.interp.gfx942.memory import PRIVATE_BASE, SHARED_BASE
from argus.interp.gfx942.scoreboard import Issued, Scoreboard
from argus.interp.gfx942.state import Group
from tests.interp.gfx942.assembled import kernels
from tests.interp.gfx942.executed import Instructions
from tests.interp.gfx942.test_atomics import GLOBAL, data, values_of, wide
from tests.interp.gfx942.test_memory import (
    ALL,
    HALF_LOADS,
    LANES,
    LOADS,
    START,
    STORES,
    held_by,
    number,
    place_of,
    prepared,
    registers,
)

SCRATCH_BYTES = 2048
STORED = (*STORES, "short_d16_hi", "byte_d16_hi")
LINES = {
    **{
        f"{unit}_load_{width}": f"{unit}_load_{width} {registers(10, LOADS[width][0] if width in LOADS else 4)}, {at}"
        for unit, at in (("flat", "v[2:3] offset:8"), ("scratch", "v1, off offset:8"))
        for width in (*LOADS, *HALF_LOADS)
    },
    **{
        f"{unit}_store_{width}": f"{unit}_store_{width} {at[0]}, {registers(10, STORES.get(width, 4))}{at[1]}"
        for unit, at in (("flat", ("v[2:3]", " offset:8")), ("scratch", ("v1", ", off offset:8")))
        for width in STORED
    },
    **{
        f"flat_atomic_{name}": f"flat_atomic_{name} {data(20, 2 if wide(name) else 1)}, v[2:3], "
        f"{data(10, (2 if wide(name) else 1) * (2 if 'cmpswap' in name else 1))} sc0"
        for name in GLOBAL
        if name != "pk_add_bf16"
    },
}
# For each: where lane 0 reads, and how far apart the others do.
ADDRESSED = {
    "scratch_load_dword v10, off, s4 offset:12": (112, 0),
    "scratch_load_dword v10, off, off offset:40": (40, 0),
    "scratch_load_dword v10, v1, s4 offset:-4": (96, 4),
}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *ADDRESSED])


Segments = list[bytearray]


def arranged(unit: str, places: npt.NDArray[np.int64]) -> tuple[Group, dict[int, npt.NDArray[np.uint32]], list[int]]:
    """A group with random contents everywhere, and the segment of each lane: 0 global, 1 LDS, 2 scratch memory."""
    group, held = prepared(places)
    random = np.random.default_rng(5)
    (wave,) = group.waves
    wave.scratch = random.integers(0, 256, (1, LANES, SCRATCH_BYTES), np.uint8)
    wave.unwritten_scratch = np.zeros_like(wave.scratch)
    segments = [2] * LANES if unit == "scratch" else [int(each) for each in random.integers(0, 3, LANES)]
    bases = (START, SHARED_BASE, PRIVATE_BASE)
    whole = np.array([bases[s] + int(p) for s, p in zip(segments, places, strict=True)], np.uint64)
    held |= {2: whole.astype(np.uint32), 3: (whole >> np.uint64(32)).astype(np.uint32)}
    return group, {k: np.asarray(v, np.uint32) for k, v in held.items()}, segments


def bytes_of(group: Group, segment: int, lane: int) -> npt.NDArray[np.uint8]:
    return (group.memory.array_of("all"), group.lds[0], group.waves[0].scratch[0, lane])[segment]


@pytest.mark.parametrize("name", [name for name in LINES if "_load_" in name])
def test_a_load_gives_the_bytes_of_the_segment_of_its_address(code: Instructions, name: str) -> None:
    unit, _, width, *half = name.split("_")
    size, signed = LOADS.get(width, (2, False))
    places, active = place_of(size), ALL & ~0xF0F
    group, values, segments = arranged(unit, places)
    wave = code.run(LINES[name], values, active=active, group=group)

    for lane in range(LANES):
        at, count = int(places[lane]) + 8, (size + 3) // 4
        found = number(b"".join(int(wave.v[10 + n, 0, lane]).to_bytes(4, "little") for n in range(count)))
        memory = bytes(bytes_of(group, segments[lane], lane))
        wanted, old = number(memory[at : at + size], signed), number(held_by(values, 10, lane, size))
        if half == ["d16"]:
            wanted |= old & 0xFFFF0000
        elif half == ["d16", "hi"]:
            wanted = wanted << 16 | old & 0xFFFF
        assert found == (wanted if active >> lane & 1 else old), lane
    assert not group.findings.found


@pytest.mark.parametrize("name", [name for name in LINES if "_store_" in name])
def test_a_store_writes_the_segment_of_its_address(code: Instructions, name: str) -> None:
    unit, _, width, *half = name.split("_")
    size, active = STORES[width], ALL & ~0xF0F
    places = place_of(size)
    group, values, segments = arranged(unit, places)
    wanted = {
        (s, lane if s == 2 else 0): bytearray(bytes_of(group, s, lane)) for lane in range(LANES) for s in range(3)
    }
    for lane in range(LANES):
        if active >> lane & 1:
            stored = held_by(values, 10, lane, size)[2 if half else 0 :][:size]
            held = wanted[segments[lane], lane if segments[lane] == 2 else 0]
            held[int(places[lane]) + 8 : int(places[lane]) + 8 + size] = stored
    code.run(LINES[name], values, active=active, group=group)

    assert all(bytes(bytes_of(group, s, lane)) == bytes(held) for (s, lane), held in wanted.items())
    assert not group.findings.found


@pytest.mark.share(8)
@pytest.mark.parametrize("name", [name for name in LINES if "_atomic_" in name])
def test_atomic_operations_on_flat_addresses(code: Instructions, name: str) -> None:
    operation = name.removeprefix("flat_atomic_")
    join, size = GLOBAL[operation], 8 if wide(operation) else 4
    places = np.arange(LANES, dtype=np.int64) % 3 * size
    group, values = prepared(places)
    shared = np.arange(LANES) % 2 == 1
    whole = np.where(shared, SHARED_BASE, START).astype(np.uint64) + places.astype(np.uint64) - np.uint64(0)
    random = np.random.default_rng(len(name))
    new, compared = values_of(operation, LANES, random), values_of(operation, LANES, random)
    words = {2: whole.astype(np.uint32), 3: (whole >> np.uint64(32)).astype(np.uint32)}
    for first, each in ((10, new), (10 + size // 4, compared)):
        words |= {first + part: (each >> np.uint64(32 * part)).astype(np.uint32) for part in range(size // 4)}
    kind = np.uint64 if size == 8 else np.uint32
    held = [group.memory.array_of("all").view(kind), group.lds[0].view(kind)]
    for each in held:
        each[:3] = values_of(operation, 3, random)
    wanted = [[int(value) for value in each[:3]] for each in held]
    mask, returned = (1 << 8 * size) - 1, list[int]()
    for lane in range(LANES):
        segment, place = int(shared[lane]), lane % 3
        returned.append(wanted[segment][place])
        wanted[segment][place] = join(wanted[segment][place], int(new[lane]) & mask, int(compared[lane]) & mask) & mask
    wave = code.run(LINES[name], values | words, group=group)

    assert [[int(value) for value in each[:3]] for each in held] == wanted
    for lane in range(LANES):
        assert sum(int(wave.v[20 + n, 0, lane]) << 32 * n for n in range(size // 4)) == returned[lane]


@pytest.mark.parametrize("line", ADDRESSED)
def test_scratch_addresses_add_registers_and_an_offset(code: Instructions, line: str) -> None:
    group, values, _ = arranged("scratch", np.arange(LANES, dtype=np.int64) * 4)
    wave = code.run(line, values, {4: 100}, group=group)

    for lane in range(LANES):
        at = ADDRESSED[line][0] + lane * ADDRESSED[line][1]
        assert int(wave.v[10, 0, lane]) == number(bytes(wave.scratch[0, lane, at : at + 4]))


def test_scratch_memory_has_bounds(code: Instructions) -> None:
    group, values, _ = arranged("scratch", np.full(LANES, SCRATCH_BYTES - 8, np.int64))
    code.run(LINES["scratch_load_dword"], values, group=group)
    code.run(LINES["flat_store_dword"], values, group=group)

    assert {kind for kind, _ in group.findings.found} == {"out of bounds"}
    assert len(group.findings.found) == 2


def test_a_flat_operation_is_waited_for_in_both_counters_and_completes_in_any_order(code: Instructions) -> None:
    board = Scoreboard()
    instruction = code.steps[LINES["flat_load_dword"]].instruction
    first = Issued("vector", instruction, frozenset({1}), frozenset())
    flat = Issued("flat", instruction, frozenset({2}), frozenset())
    board.issue(first)
    board.issue(flat)
    board.wait(1, 15)
    assert set(board.registers) == {1, 2}
    board.wait(0, 15)
    assert set(board.registers) == {2}
    board.wait(0, 0)
    assert not board.registers


_SPILL = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
scratch_store_dword off, v9, off offset:4
scratch_store_dword off, v0, off offset:8
s_waitcnt vmcnt(0) lgkmcnt(0)
scratch_load_dword v2, off, off offset:{place}
s_waitcnt vmcnt(0)
global_store_dword v1, v2, s[6:7]
"""


@pytest.mark.parametrize(
    ("place", "kinds"), [(8, set[str]()), (4, {"uninitialised register"}), (0, {"uninitialised register"})]
)
def test_what_is_spilled_before_it_is_written_stays_unwritten(place: int, kinds: set[str]) -> None:
    made = kernels({"spill": _SPILL.format(place=place)}, scratch=16)
    tensors = (Tensor("in", np.zeros(64, np.uint32)), Tensor("out", np.zeros(64, np.uint32), written=True))
    done = execute(made, "spill", [1], 64, tensors)

    assert {each.kind for each in done.findings} == kinds
    if not kinds:
        assert [int(each) for each in done.tensors["out"]] == list(range(64))
