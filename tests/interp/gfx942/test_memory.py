"""Loads, stores, LDS and scalar loads: widths, offsets, halves, bounds of buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from argus.interp.gfx942.memory import BASE
from argus.interp.gfx942.state import Group
from tests.interp.gfx942.executed import Instructions, group_of_one

LANES = 64
ALL = (1 << LANES) - 1
START = BASE + (1 << 16)
"""Where the tests' memory begins."""
LOADS = {
    "ubyte": (1, False), "sbyte": (1, True), "ushort": (2, False), "sshort": (2, True),
    "dword": (4, False), "dwordx2": (8, False), "dwordx3": (12, False), "dwordx4": (16, False),
}  # fmt: skip
STORES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
READS = {
    "u8": (1, False), "i8": (1, True), "u16": (2, False), "i16": (2, True), "b32": (4, False), "b64": (8, False),
    "b96": (12, False), "b128": (16, False),
}  # fmt: skip
WRITES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
PAIRS = {"ds_read2_b32": (4, 4), "ds_read2st64_b32": (4, 256), "ds_read2_b64": (8, 8), "ds_read2st64_b64": (8, 512)}
PAIRED_WRITES = {
    "ds_write2_b32": (4, 4), "ds_write2st64_b32": (4, 256), "ds_write2_b64": (8, 8), "ds_write2st64_b64": (8, 512),
}  # fmt: skip
Places = npt.NDArray[np.int64]


def registers(first: int, size: int) -> str:
    count = (size + 3) // 4
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def line(name: str) -> str:
    """A line that uses the address in v1 (or v[2:3], with s[4:5] as the base of a buffer), and data in v10 on."""
    kind = name.split("_")
    if name in PAIRS:
        return f"{name} {registers(10, 2 * PAIRS[name][0])}, v1 offset0:3 offset1:1"
    if name in PAIRED_WRITES:
        size = PAIRED_WRITES[name][0]
        return f"{name} v1, {registers(10, size)}, {registers(14, size)} offset0:3 offset1:1"
    match kind:
        case ["ds", "read", width, *rest]:
            return f"{name} {registers(10, 4 if rest else READS[width][0])}, v1 offset:8"
        case ["ds", "write", width, *_]:
            return f"{name} v1, {registers(10, WRITES[width])} offset:8"
        case [unit, action, width, *_]:
            size = (LOADS[width][0] if width in LOADS else 4) if action == "load" else STORES[width]
            data = registers(10, size)
            if unit == "buffer":
                return f"{name} {data}, v1, s[4:7], 0 offen offset:8"
            return (
                f"{name} {data}, v[2:3], off offset:8" if action == "load" else f"{name} v[2:3], {data}, off offset:8"
            )
        case _:
            raise AssertionError(name)


HALF_LOADS = ("short_d16", "short_d16_hi", "ubyte_d16", "ubyte_d16_hi")
NAMES = [
    *(f"{unit}_load_{width}" for unit in ("global", "buffer") for width in LOADS),
    *(f"{unit}_load_{width}" for unit in ("global", "buffer") for width in HALF_LOADS),
    *(f"{unit}_store_{width}" for unit in ("global", "buffer") for width in (*STORES, "short_d16_hi", "byte_d16_hi")),
    *(f"ds_read_{width}" for width in (*READS, "u16_d16", "u16_d16_hi", "u8_d16", "u8_d16_hi")),
    *(f"ds_write_{width}" for width in (*WRITES, "b16_d16_hi", "b8_d16_hi")),
    *PAIRS,
    *PAIRED_WRITES,
]
LINES = {name: line(name) for name in NAMES}
OTHERS = [
    "ds_bpermute_b32 v10, v1, v11",
    'ds_swizzle_b32 v10, v11 offset:swizzle(BITMASK_PERM,"01pip")',
    "ds_swizzle_b32 v10, v11 offset:swizzle(QUAD_PERM,1,0,3,2)",
    "buffer_load_dword v1, s[4:7], 0 offen offset:8 lds",
    "global_load_lds_dword v[2:3], off offset:8",
    "global_load_dword v10, v1, s[4:5] offset:8",
    "ds_permute_b32 v10, v1, v11 offset:4",
]


SCALAR_LOADS = {
    1: "s_load_dword s8, s[4:5], 0x4",
    **{n: f"s_load_dwordx{n} s[8:{7 + n}], s[4:5], 0x4" for n in (2, 4, 8, 16)},
}


BUFFER_LOADS = {
    1: "s_buffer_load_dword s8, s[4:7], 0x4",
    **{n: f"s_buffer_load_dwordx{n} s[8:{7 + n}], s[4:7], 0x4" for n in (2, 4, 8, 16)},
}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions([*LINES.values(), *OTHERS, *SCALAR_LOADS.values(), *BUFFER_LOADS.values()])


def prepared(places: Places) -> tuple[Group, dict[int, npt.NDArray[Any]]]:
    """Random memory and LDS, and addresses: byte offsets in v1, whole addresses in v[2:3], random data beside them."""
    random = np.random.default_rng(7)
    group = group_of_one()
    group.memory.array_of("all")[:] = random.integers(0, 256, 4096, np.uint8)
    group.lds[:] = random.integers(0, 256, group.lds.shape, np.uint8)
    whole = np.uint64(START) + places.astype(np.uint64)
    held = {1: places.astype(np.uint32), 2: whole.astype(np.uint32), 3: (whole >> np.uint64(32)).astype(np.uint32)}
    held |= {number: random.integers(0, 1 << 32, LANES, np.uint32) for number in range(10, 22)}
    return group, held


def descriptor(records: int) -> dict[int, int]:
    return {4: START & 0xFFFFFFFF, 5: START >> 32, 6: records, 7: 0x00020000}


def number(octets: bytes, signed: bool = False) -> int:
    return int.from_bytes(octets, "little", signed=signed) & (1 << max(32, 8 * len(octets))) - 1


def held_by(values: dict[int, npt.NDArray[Any]], first: int, lane: int, size: int) -> bytes:
    return b"".join(int(values[first + n][lane]).to_bytes(4, "little") for n in range((size + 3) // 4))


def place_of(size: int) -> Places:
    """Distinct places, in no order, aligned to the size up to 4 bytes."""
    return np.random.default_rng(size).permutation(LANES).astype(np.int64) * 20 // min(size, 4) * min(size, 4)


@pytest.mark.parametrize("name", [name for name in NAMES if "load" in name or "ds_read_" in name])
def test_a_load_gives_the_bytes_at_its_address_in_active_lanes(code: Instructions, name: str) -> None:
    unit, _, width, *half = name.split("_")
    size, signed = (READS if unit == "ds" else LOADS).get(width, (2, False))
    places, active = place_of(size), ALL & ~0xF0F
    group, values = prepared(places)
    memory = bytes(group.lds[0]) if unit == "ds" else bytes(group.memory.array_of("all"))
    wave = code.run(LINES[name], values, descriptor(4096), active=active, group=group)

    for lane in range(LANES):
        at = int(places[lane]) + 8
        found = number(b"".join(int(wave.v[10 + n, 0, lane]).to_bytes(4, "little") for n in range((size + 3) // 4)))
        wanted, old = number(memory[at : at + size], signed), number(held_by(values, 10, lane, size))
        if half == ["d16"]:
            wanted |= old & 0xFFFF0000
        elif half == ["d16", "hi"]:
            wanted = wanted << 16 | old & 0xFFFF
        assert found == (wanted if active >> lane & 1 else old), lane


@pytest.mark.parametrize("name", [name for name in NAMES if "store" in name or "ds_write_" in name])
def test_a_store_writes_the_bytes_of_active_lanes_and_no_others(code: Instructions, name: str) -> None:
    unit, _, width, *half = name.split("_")
    size, active = (WRITES if unit == "ds" else STORES)[width], ALL & ~0xF0F
    places = place_of(size)
    group, values = prepared(places)
    array = group.lds[0] if unit == "ds" else group.memory.array_of("all")
    wanted = bytearray(bytes(array))
    for lane in range(LANES):
        if active >> lane & 1:
            data = held_by(values, 10, lane, size)[2 if half else 0 :][:size]
            wanted[int(places[lane]) + 8 : int(places[lane]) + 8 + size] = data
    code.run(LINES[name], values, descriptor(4096), active=active, group=group)

    assert bytes(array) == bytes(wanted)
    assert not group.findings.found


@pytest.mark.parametrize("name", [*PAIRS, *PAIRED_WRITES])
def test_paired_accesses_scale_their_offsets(code: Instructions, name: str) -> None:
    size, scale = (PAIRS | PAIRED_WRITES)[name]
    places = place_of(8)
    group, values = prepared(places)
    before = bytes(group.lds[0])
    wave = code.run(LINES[name], values, group=group)
    after = bytes(group.lds[0])

    for lane in range(LANES):
        for which, offset in enumerate((3, 1)):
            at = int(places[lane]) + offset * scale
            if name in PAIRS:
                first = 10 + which * size // 4
                found = b"".join(int(wave.v[first + n, 0, lane]).to_bytes(4, "little") for n in range(size // 4))
                assert found == before[at : at + size]
            elif not any(overlaps(at, size, places, scale, lane, which)):
                assert after[at : at + size] == held_by(values, 10 + 4 * which, lane, size)


def overlaps(at: int, size: int, places: Places, scale: int, lane: int, which: int) -> list[bool]:
    """Whether another access of the instruction writes to the same bytes."""
    return [
        abs(int(places[n]) + offset * scale - at) < size
        for n in range(LANES)
        for other, offset in enumerate((3, 1))
        if (n, other) != (lane, which)
    ]


@pytest.mark.parametrize("size", [4, 8, 12, 16])
def test_a_buffer_bounds_each_dword_and_reads_0_or_writes_nothing_outside(code: Instructions, size: int) -> None:
    width = {4: "dword", 8: "dwordx2", 12: "dwordx3", 16: "dwordx4"}[size]
    places, records = np.arange(LANES, dtype=np.int64) * 4, 200
    group, values = prepared(places)
    memory = group.memory.array_of("all")
    before = bytes(memory)
    wave = code.run(LINES[f"buffer_load_{width}"], values, descriptor(records), group=group)
    for lane in range(LANES):
        for part in range(size // 4):
            at = int(places[lane]) + 8 + 4 * part
            wanted = number(before[at : at + 4]) if at + 4 <= records else 0
            assert int(wave.v[10 + part, 0, lane]) == wanted
    code.run(LINES[f"buffer_store_{width}"], values, descriptor(records), group=group)

    assert bytes(memory)[records:] == before[records:]
    assert bytes(memory)[:records] != before[:records]
    assert not group.findings.found


def test_lanes_exchange_through_lds(code: Instructions) -> None:
    group, values = prepared(np.random.default_rng(3).integers(0, 256, LANES) * 4)
    permuted = code.run(OTHERS[0], values, active=ALL & ~4, group=group)
    source = [int(each) // 4 % 64 for each in values[1]]
    for lane in range(LANES):
        wanted = int(values[11][source[lane]]) if source[lane] != 2 else 0
        assert int(permuted.v[10, 0, lane]) == (wanted if lane != 2 else int(values[10][lane]))
    masked = [int(each) for each in code.run(OTHERS[1], values).v[10, 0]]
    quads = [int(each) for each in code.run(OTHERS[2], values).v[10, 0]]
    for lane in range(LANES):
        # "01pip", from the highest of five bits on: 0, 1, as it is, inverted, as it is.
        assert masked[lane] == int(values[11][lane & 32 | (8 | lane & 5 | ~lane & 2)])
        assert quads[lane] == int(values[11][lane ^ 1])


def test_lanes_send_to_others_and_the_highest_is_heard(code: Instructions) -> None:
    group, values = prepared(np.random.default_rng(4).integers(0, 300, LANES))
    sent = code.run(OTHERS[6], values, active=ALL & ~(1 << 20), group=group)
    wanted = dict.fromkeys(range(LANES), 0)
    for lane in range(LANES):
        if lane != 20:
            wanted[(int(values[1][lane]) + 4) // 4 % 64] = int(values[11][lane])

    for lane in range(LANES):
        assert int(sent.v[10, 0, lane]) == (wanted[lane] if lane != 20 else int(values[10][lane]))


@pytest.mark.parametrize("number_", [3, 4])
def test_loads_to_lds_write_one_dword_a_lane_from_m0_on(code: Instructions, number_: int) -> None:
    places = place_of(4)
    group, values = prepared(places)
    memory, before = bytes(group.memory.array_of("all")), bytes(group.lds[0])
    code.run(OTHERS[number_], values, descriptor(4096) | {124: 512}, active=ALL & ~2, group=group)

    for lane in range(LANES):
        at = 512 + 8 + 4 * lane
        source = memory[int(places[lane]) + 8 :][:4]
        assert bytes(group.lds[0])[at : at + 4] == (source if lane != 1 else before[at : at + 4])


@pytest.mark.parametrize("count", SCALAR_LOADS)
def test_scalar_loads_fill_registers_in_order(code: Instructions, count: int) -> None:
    group, values = prepared(place_of(4))
    memory = bytes(group.memory.array_of("all"))
    loaded = code.run(SCALAR_LOADS[count], values, descriptor(0) | {8 + count: 77}, group=group)

    assert [int(loaded.s[8 + n, 0]) for n in range(count)] == [number(memory[4 + 4 * n :][:4]) for n in range(count)]
    assert int(loaded.s[8 + count, 0]) == 77


@pytest.mark.parametrize("count", BUFFER_LOADS)
def test_scalar_loads_of_a_buffer_read_0_beyond_its_end(code: Instructions, count: int) -> None:
    group, values = prepared(place_of(4))
    memory, records = bytes(group.memory.array_of("all")), 24
    loaded = code.run(BUFFER_LOADS[count], values, descriptor(records), group=group)
    wanted = [number(memory[4 + 4 * n :][:4]) if 8 + 4 * n <= records else 0 for n in range(count)]

    assert [int(loaded.s[8 + n, 0]) for n in range(count)] == wanted


def test_a_scalar_base_is_added_to_an_offset_of_32_bits(code: Instructions) -> None:
    group, values = prepared(place_of(4))
    memory = bytes(group.memory.array_of("all"))
    based = code.run(OTHERS[5], values, descriptor(0), group=group)

    for lane in range(LANES):
        at = int(values[1][lane]) + 8
        assert int(based.v[10, 0, lane]) == number(memory[at : at + 4])
