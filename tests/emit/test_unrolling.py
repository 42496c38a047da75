"""Loops with products that are unrolled: their text does what the loop does, for any number of iterations."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from argus.core.ir import For, Kernel, Mma, walk
from argus.emit.cuda.text import cuda_text
from argus.emit.cuda.unrolling import is_unrolled, unrolled
from argus.kernels.fp8_blocks import Blocks, gemm_fp8_blocks
from argus.kernels.gemm import gemm
from argus.runtime.cpu.validate import emitted, validate

SCHEDULE = Blocks(stages=2, slots=True, whole=True, cluster=(2, 1), rounds=2)


def made(config: Blocks = SCHEDULE) -> Kernel:
    return gemm_fp8_blocks.instance(config, "unrolled")


def sizes(depth: int) -> dict[str, int]:
    return {"M": 132, "N": 136, "K": 16 * depth, "KB": -(-depth // 8), "NB": 2}


def loop_of(kernel: Kernel) -> For:
    """The loop that holds the products."""
    loops = [stmt for stmt in walk(kernel.body) if isinstance(stmt, For)]
    return next(stmt for stmt in loops if any(isinstance(each, Mma) for each in stmt.body))


@pytest.mark.share(12, among="emit: unrolling")
@pytest.mark.parametrize("depth", [1, 16, 17])
def test_the_text_agrees_with_the_interpreter(depth: int) -> None:
    """No round, one, and one with an iteration left."""
    assert validate(made(), [sizes(depth)], seeds=[0]).right


@pytest.mark.share(12, among="emit: unrolling")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("first_of_round + of_round", "first_of_round", id="each iteration of a round is the first"),
        pytest.param("- first_of_round >= 2", "- first_of_round >= 1", id="a round too many"),
        pytest.param("= first_of_round; k_", "= 0; k_", id="what is left begins again"),
        pytest.param("arrive_at_if(math_thread_ == 0", "arrive_at_if(math_thread_ == -1", id="no thread releases"),
    ],
)
def test_a_fault_of_the_text_is_found(old: str, new: str) -> None:
    kernel = made()
    text = emitted(kernel)

    assert old in text.text
    wrong = evolve(text, text=text.text.replace(old, new))
    assert not validate(kernel, [sizes(17)], seeds=[0], made=wrong, seconds=20).right


def test_without_rounds_nothing_of_them_is_emitted() -> None:
    text = cuda_text(made(evolve(SCHEDULE, rounds=1))).text

    assert not is_unrolled(loop_of(made(evolve(SCHEDULE, rounds=1))))
    assert "of_round" not in text
    assert "_if(bool" not in text


def test_a_loop_with_products_in_flight_is_not_unrolled() -> None:
    loop = loop_of(gemm.trace("cooperative"))

    assert not is_unrolled(evolve(loop, unroll=2))


def test_only_loops_from_zero_by_ones_are_unrolled() -> None:
    loop: Any = loop_of(made())

    assert is_unrolled(loop)
    assert not is_unrolled(evolve(loop, start=loop.stop))
    assert not is_unrolled(evolve(loop, step=2))


def test_iterations_that_are_left_follow_the_rounds() -> None:
    text = "\n".join(unrolled("k_", "n_", 4, ["use(k_);"]))

    assert text.count("use(k_);") == 2
    assert "for (; n_ - first_of_round >= 4; first_of_round += 4)" in text
