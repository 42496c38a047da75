"""Kernels whose limiting resource is known by construction, and changes that must make a prediction slower."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve

from argus.core.cost.dies import DIE_MACHINES, MI300X_DIES
from argus.interp.gfx942.code_object import CodeObject
from argus.interp.gfx942.dispatch import Extents
from argus.interp.gfx942.timing.predict import CodePrediction, Launch, predict
from tests.interp.gfx942.assembled import kernels

WAVES, BLOCKS, TRIPS = 4, 304, 40
_START = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_and_b32_e32 v1, 15, v0
v_lshrrev_b32_e32 v2, 4, v0
v_and_b32_e32 v2, 3, v2
{address}
v_lshlrev_b32_e32 v5, 4, v0
s_lshl_b32 s8, {block}, 22
v_add_u32_e32 v5, s8, v5
s_movk_i32 s9, {trips}
s_waitcnt lgkmcnt(0)
.Lloop_{name}:
{body}
v_add_u32_e32 v5, 0x4000, v5
s_sub_u32 s9, s9, 1
s_cmp_lg_u32 s9, 0
s_cbranch_scc1 .Lloop_{name}
"""
# Of 16 rows of 128 bytes each lane reads 16: rows apart by 128 bytes, permuted by the row, and apart by 144.
_LINEAR = "v_lshlrev_b32_e32 v3, 7, v1\nv_lshl_add_u32 v3, v2, 4, v3"
_SWIZZLED = (
    "v_and_b32_e32 v4, 7, v1\nv_xor_b32_e32 v4, v2, v4\nv_lshlrev_b32_e32 v3, 7, v1\nv_lshl_add_u32 v3, v4, 4, v3"
)
_PADDED = "v_mul_u32_u24_e32 v3, 144, v1\nv_lshl_add_u32 v3, v2, 4, v3"
_PRODUCTS = "\n".join(
    f"v_mfma_f32_32x32x8_bf16 a[{16 * n}:{16 * n + 15}], v[10:11], v[12:13], a[{16 * n}:{16 * n + 15}]"
    for n in range(8)
)
_READS = "\n".join(f"ds_read_b128 v[{20 + 4 * n}:{23 + 4 * n}], v3" for n in range(8))
_LOADS = "\n".join(
    f"global_load_dwordx4 v[{60 + 4 * n}:{63 + 4 * n}], v5, s[4:5] offset:{1024 * (n % 4)}" for n in range(4)
)
_SHORT = _PRODUCTS.splitlines()[0]
_LOAD, _NEXT = "global_load_dwordx4 v[60:63], v5, s[4:5]\n", "v_add_u32_e32 v5, 0x1000, v5\n"
_BACK = "v_subrev_u32_e32 v5, 0xc000, v5\n"
# For each kernel: how lanes address LDS, and the loop.
BODIES: Mapping[str, tuple[str, str]] = {
    "products": (_LINEAR, _PRODUCTS),
    "products_and_barriers": (_LINEAR, _PRODUCTS.replace("\n", "\ns_barrier\n")),
    "conflicts": (_LINEAR, f"{_READS}\ns_waitcnt lgkmcnt(0)\n{_PRODUCTS}"),
    "padded": (_PADDED, f"{_READS}\ns_waitcnt lgkmcnt(0)\n{_PRODUCTS}"),
    "swizzled": (_SWIZZLED, f"{_READS}\ns_waitcnt lgkmcnt(0)\n{_PRODUCTS}"),
    "loads": (_LINEAR, f"{_LOADS}\ns_waitcnt vmcnt(16)\n{_SHORT}"),
    "shared_loads": (_LINEAR, f"{_LOADS}\ns_waitcnt vmcnt(16)\n{_SHORT}"),
    "lines_of_one_load": (_LINEAR, (_LOAD + _NEXT) * 24),
    "lines_of_two_loads": (_LINEAR, (2 * _LOAD + _NEXT) * 12),
    "lines_of_loads_apart": (_LINEAR, 12 * (_LOAD + _NEXT) + _BACK + 12 * (_LOAD + _NEXT)),
    "one_buffer": (_LINEAR, f"{_LOADS.splitlines()[0]}\ns_waitcnt vmcnt(0)\n{_PRODUCTS}"),
    "two_buffers_of_one": (_LINEAR, f"s_waitcnt vmcnt(0)\n{_LOADS.splitlines()[0]}\n{_PRODUCTS}"),
}  # fmt: skip


@pytest.fixture(scope="module")
def code() -> CodeObject:
    made = {
        name: _START.format(address=address, body=body, name=name, trips=TRIPS, block="0" if "shared" in name else "s2")
        for name, (address, body) in BODIES.items()
    }
    return kernels(made, lds=65536)


def launch(name: str, blocks: int, operands: float) -> Launch:
    return Launch(name, Extents((blocks, 1, 1), (64 * WAVES, 1, 1)), (None, None), operands)


def found(code: CodeObject, name: str, machine: str = "MI300X", blocks: int = BLOCKS) -> CodePrediction:
    return predict(code, launch(name, blocks, 1e9), DIE_MACHINES[machine])


@pytest.mark.parametrize(
    ("name", "limit", "instruction"),
    [
        ("products", "tensor", "v_mfma"),
        ("swizzled", "tensor", "v_mfma"),
        ("conflicts", "shared", "ds_read_b128"),
        ("loads", "memory", "global_load"),
        ("one_buffer", "wait for memory", "s_waitcnt"),
    ],
)
def test_the_limiting_resource_is_named(code: CodeObject, name: str, limit: str, instruction: str) -> None:
    made = found(code, name)

    assert made.limit == limit
    assert made.at[0][0].row.name.startswith(instruction)


def test_the_rate_of_matrix_instructions_is_that_of_the_manual(code: CodeObject) -> None:
    # Trips of eight instructions of 8 passes of 4 cycles, before the power limit.
    free = evolve(MI300X_DIES, power_share=1.0)
    made = predict(code, launch("products", BLOCKS, 0), free)
    cycles = (made.microseconds - MI300X_DIES.machine.fitted.launch_us) * made.clock

    assert cycles == pytest.approx(TRIPS * 8 * 32, rel=0.06)
    assert made.flops == 2.0 * 32 * 32 * 8 * 8 * TRIPS * WAVES * BLOCKS


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("swizzled", "padded"),
        ("padded", "conflicts"),
        ("products", "products_and_barriers"),
        ("two_buffers_of_one", "one_buffer"),
    ],
)
def test_a_worse_schedule_takes_longer(code: CodeObject, better: str, worse: str) -> None:
    assert found(code, worse).microseconds > 1.02 * found(code, better).microseconds


def test_lines_that_workgroups_share_come_once_to_each_die(code: CodeObject) -> None:
    own, shared = found(code, "loads"), found(code, "shared_loads")

    # 304 workgroups on eight dies: of what one takes from the caches behind L2, 38 share each line.
    assert own.limit == "memory"
    assert shared.microseconds < 0.5 * own.microseconds
    assert shared.busy["lines"] > own.busy["lines"]


@pytest.mark.share(8)
def test_lines_that_a_workgroup_has_just_requested_are_in_the_vector_cache(code: CodeObject) -> None:
    one, two, apart = (found(code, f"lines_of_{name}") for name in ("one_load", "two_loads", "loads_apart"))

    assert one.limit == two.limit == apart.limit == "memory"
    assert two.microseconds < 0.6 * one.microseconds
    assert 0.95 < apart.microseconds / one.microseconds < 1.05


def test_operands_that_fit_into_the_last_level_cache_are_not_fetched_from_memory(code: CodeObject) -> None:
    fits = predict(code, launch("loads", BLOCKS, 1e6), DIE_MACHINES["MI300X"])

    assert fits.microseconds < 0.6 * found(code, "loads").microseconds


def test_a_power_limit_lowers_the_clock_and_rows_of_machines_are_apart(code: CodeObject) -> None:
    one, other, faster = (found(code, "products", name, blocks=256) for name in ("MI300X", "MI325X", "MI355X"))

    assert one.clock < other.clock < 2100
    # Power is the share of busy units times the square of the clock.
    assert (other.clock / one.clock) ** 2 == pytest.approx(DIE_MACHINES["MI325X"].power / MI300X_DIES.power)
    assert one.busy == other.busy
    assert faster.microseconds < other.microseconds


def test_few_workgroups_use_few_compute_units(code: CodeObject) -> None:
    whole, part = found(code, "products"), found(code, "products", blocks=BLOCKS // 4)

    assert part.tflops < whole.tflops
    assert part.clock > whole.clock
    assert found(code, "products", blocks=2 * BLOCKS).microseconds > 1.5 * whole.microseconds


def test_iterations_that_are_left_out_take_as_long_as_those_that_are_simulated(
    code: CodeObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("conflicts", "one_buffer", "products_and_barriers"):
        short = found(code, name)
        with monkeypatch.context() as patched:
            patched.setattr("argus.interp.gfx942.timing.predict._SHORT", 1000)
            patched.setattr("argus.interp.gfx942.timing.predict._LONG", 1004)
            whole = found(code, name)

        assert short.microseconds == pytest.approx(whole.microseconds, rel=0.01)
        assert short.busy == pytest.approx(whole.busy, rel=0.02)
