"""Caches between executions of an instruction: operands of products, places in LDS, epochs without a race."""

from __future__ import annotations

import numpy as np
import pytest

from argus.interp.gfx942.launch import Executed, Tensor, execute
from argus.interp.gfx942.matrix import Operand, product_of, steps_of
from tests.interp.gfx942.assembled import kernels
from tests.interp.gfx942.executed import Instructions, group_of_one

LANES = 64
PRODUCT = "v_mfma_f32_16x16x16_bf16 v[8:11], v[40:41], v[44:45], 0"
MOVE = "v_mov_b32_e32 v40, v1"
LANE = "v_writelane_b32 v45, s5, 37"


@pytest.mark.parametrize("change", [MOVE, LANE])
def test_a_product_reads_registers_as_they_are(change: str) -> None:
    code, random = Instructions([PRODUCT, change]), np.random.default_rng(1)
    held = {n: random.integers(0x3F80, 0x4000, LANES, np.uint32) * np.uint32(0x10001) for n in (1, 40, 41, 44, 45)}
    kept, fresh = group_of_one(), group_of_one()
    before = code.run(PRODUCT, held, group=kept).v[8:12].copy()
    code.run(change, {}, {5: 0x40404040}, group=kept)
    code.run(change, held, {5: 0x40404040}, group=fresh)
    after, wanted = (code.run(PRODUCT, {}, group=group).v[8:12] for group in (kept, fresh))

    assert (after == wanted).all()
    assert (after != before).any()


@pytest.mark.parametrize("seed", range(20))
def test_products_in_f32_are_those_in_f64(seed: int) -> None:
    random = np.random.default_rng(seed)
    most, unit = 2 ** int(random.integers(1, 12)), 2.0 ** -int(random.integers(0, 8))
    left, right = (
        random.integers(-most, most + 1, (2, 16, 32)).astype(np.float32) * np.float32(unit) for _ in range(2)
    )
    right[0, 0, 0] = random.choice(np.array([1, 0.01, 1e6, np.inf, np.nan], np.float32))
    with np.errstate(all="ignore"):
        found = product_of(Operand(0, left, steps_of(left)), Operand(0, right, steps_of(right)))
        wanted = left.astype(np.float64).transpose(0, 2, 1) @ right.astype(np.float64)

    assert np.array_equal(found.astype(np.float64), wanted, equal_nan=True)


def test_what_f32_does_not_hold_is_not_multiplied_in_it() -> None:
    large, odd = np.full((1, 16, 32), 4096.0, np.float32), np.full((1, 16, 32), 1 / 3, np.float32)

    assert steps_of(large) == 4096 * 64
    assert steps_of(odd) == np.inf
    assert product_of(Operand(0, large, steps_of(large)), Operand(0, large, steps_of(large))).dtype == np.float64
    assert product_of(Operand(0, odd, steps_of(odd)), Operand(0, odd, steps_of(odd))).dtype == np.float64


# Two waves exchange their numbers by LDS, several times; in the last round the address may be another.
_ROUNDS = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v3, 0x100, v1
v_mov_b32_e32 v4, v0
v_mov_b32_e32 v5, 0
s_mov_b32 s8, {rounds}
.Lround{name}:
ds_write_b32 v1, v4
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v2, v3
s_waitcnt lgkmcnt(0)
s_barrier
v_add_u32_e32 v5, v5, v2
v_add_u32_e32 v4, 1, v4
s_sub_u32 s8, s8, 1
s_cmp_eq_u32 s8, 1
{last}
s_cmp_lg_u32 s8, 0
s_cbranch_scc1 .Lround{name}
global_store_dword v1, v5, s[6:7]
"""
_SAME_PLACE = "s_cselect_b32 s9, 0xff, -1\nv_and_b32_e32 v1, s9, v1"


def rounds(last: str) -> Executed:
    body = _ROUNDS.format(rounds=5, last=last, name="")
    tensors = (Tensor("in", np.zeros(4, np.uint32)), Tensor("out", np.zeros(128, np.uint32), written=True))
    return execute(kernels({"rounds": body}), "rounds", [3], 128, tensors, seed=2)


def test_places_that_are_accessed_again_hold_what_was_written_last() -> None:
    done = rounds("")

    assert not done.findings
    assert [int(each) for each in done.tensors["out"]] == [5 * (n ^ 64) + 10 for n in range(128)]


def test_a_race_in_the_last_round_is_found() -> None:
    done = rounds(_SAME_PLACE)

    assert "LDS race" in {each.kind for each in done.findings}
