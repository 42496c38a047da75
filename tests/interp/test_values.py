"""Values: every instruction against NumPy, the GEMM against float64 within an error bound."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.interp.interpret import interpret
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Schedule, Style
from argus.kernels.gemm import gemm as shipped
from property_tests.depth import examples
from tests.interp.programs import gemm, moved, multiplied

Array = npt.NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
LOAD, STORE = isa.global_load[0], isa.global_store[0]


def random(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


def within_bound(a: Array, b: Array, c: Array) -> bool:
    """|C - A B^T| <= u |A B^T| + (1 + u) e.

    e = 2 K 2^-24 |A| |B|^T bounds fp32 sums of exact products in any order; u = 2^-8 is the rounding to bf16.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right.T
    error = 2 * a.shape[1] * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    unit = 2.0**-8 if c.dtype == BF16 else 0.0
    return bool((np.abs(c.astype(np.float64) - exact) <= unit * np.abs(exact) + (1 + unit) * error).all())


@pytest.mark.parametrize("atom", [*isa.global_load, *isa.buffer_load], ids=str)
def test_every_load_moves_its_elements(atom: Atom) -> None:
    check_move(atom, STORE, None)


@pytest.mark.parametrize("atom", [*isa.global_store, *isa.buffer_store], ids=str)
def test_every_store_moves_its_elements(atom: Atom) -> None:
    check_move(LOAD, atom, None)


@pytest.mark.parametrize("write", isa.ds_write, ids=str)
@pytest.mark.parametrize("read", isa.ds_read, ids=str)
def test_every_pair_of_shared_instructions_moves_its_elements(write: Atom, read: Atom) -> None:
    check_move(LOAD, STORE, (write, read))


def check_move(load: Atom, store: Atom, through: tuple[Atom, Atom] | None) -> None:
    rows = 70
    given_a = random((rows, 32), 1)
    for schedule in (DIRECTED[0], Schedule("mixed", 5)):
        outcome = run(moved(load, store, through), {"M": rows}, {"A": given_a}, schedule)
        assert outcome.violations == ()
        assert np.array_equal(outcome.arrays["B"], given_a)


@pytest.mark.parametrize("atom", [isa.mfma_f32_32x32x8_bf16, isa.mfma_f32_16x16x16_bf16], ids=str)
def test_every_matrix_instruction_multiplies(atom: Atom) -> None:
    assert atom.mnk is not None
    for cut in (0, 3):
        m, n, k = (extent - cut for extent in atom.mnk)
        a, b = random((m, k), 1), random((n, k), 2)
        outcome = run(multiplied(atom), {"M": m, "N": n, "K": k}, {"A": a, "B": b})
        assert outcome.violations == ()
        assert within_bound(a, b, outcome.arrays["C"])


@pytest.mark.share(4)
@pytest.mark.parametrize("sizes", [(1, 1, 4), (64, 64, 16), (65, 63, 20), (130, 1, 36), (3, 70, 100)])
@pytest.mark.parametrize("style", ["early", "late", "mixed"])
def test_gemm_is_within_its_bound_on_tails(sizes: tuple[int, int, int], style: Style) -> None:
    m, n, k = sizes
    a, b = random((m, k), 3), random((n, k), 4)
    outcome = run(gemm(), {"M": m, "N": n, "K": k}, {"A": a, "B": b}, Schedule(style, 11))
    assert outcome.violations == ()
    assert within_bound(a, b, outcome.arrays["C"])


def test_the_shipped_gemm_is_within_its_bound() -> None:
    a, b = random((129, 72), 3), random((131, 72), 4)
    found = interpret(shipped.trace(), a, b, np.empty((129, 131), BF16))
    assert list(found) == ["C"]
    assert within_bound(a, b, found["C"])


def test_the_bound_is_not_vacuous() -> None:
    a, b = random((8, 16), 3), random((8, 16), 4)
    c = (a.astype(np.float32) @ b.astype(np.float32).T).astype(BF16)
    assert within_bound(a, b, c)
    assert not within_bound(a, b, (c.astype(np.float32) * 1.02).astype(BF16))


ORDERS = st.sampled_from(["random", "lowest", "highest", "round_robin"])
SCHEDULES = st.builds(Schedule, st.sampled_from(["early", "late", "mixed"]), st.integers(0, 1 << 16), ORDERS)


@pytest.mark.share(20, among="correct kernels in the interpreter")
@settings(max_examples=examples(15), deadline=None)
@given(schedule=SCHEDULES, m=st.integers(1, 66), n=st.integers(1, 66), steps=st.integers(1, 10))
def test_schedules_agree_on_a_correct_kernel(schedule: Schedule, m: int, n: int, steps: int) -> None:
    kernel, sizes = gemm(), {"M": m, "N": n, "K": 4 * steps}
    expected = run(kernel, sizes, schedule=Schedule("early", 0, "lowest"))
    outcome = run(kernel, sizes, schedule=schedule)
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["C"], expected.arrays["C"])
    fast = run(kernel, sizes, schedule=schedule, tags=False)
    assert np.array_equal(fast.arrays["C"], expected.arrays["C"])


def test_inputs_come_from_the_seed() -> None:
    sizes = {"M": 4, "N": 4, "K": 4}
    one, same, other = (run(gemm(), sizes, seed=seed).arrays["C"] for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_missing_wait_shows_as_a_wrong_number() -> None:
    a, b = random((64, 32), 3), random((64, 32), 4)
    sizes = {"M": 64, "N": 64, "K": 32}
    found = run(gemm("no load wait"), sizes, {"A": a, "B": b}, DIRECTED[0], tags=False).arrays["C"]
    assert not within_bound(a, b, found)


def test_blocks_that_do_not_run_leave_their_output_poisoned() -> None:
    outcome = run(gemm(), {"M": 65, "N": 4, "K": 4}, blocks=[(0, 0)])
    assert outcome.violations == ()
    assert np.isnan(outcome.arrays["C"][64].astype(np.float32)).all()
    assert not np.isnan(outcome.arrays["C"][:64].astype(np.float32)).any()


def test_coverage_counts_executions_by_waves() -> None:
    kernel = gemm()
    outcome = run(kernel, {"M": 4, "N": 4, "K": 32})
    loop = next(stmt for stmt in kernel.body if type(stmt).__name__ == "For")
    assert outcome.coverage[loop] == 4
