"""Divisions of the next tile's number, computed under the last product of a tile, are those of that tile."""

from __future__ import annotations

import re

import pytest
from attrs import evolve

from argus.core.ir import For, Kernel
from argus.emit.cuda import statements
from argus.emit.cuda.next_divisions import LastWait, NextDivisions
from argus.emit.cuda.text import cuda_text
from argus.kernels.attention import attention_64
from argus.kernels.gemm import gemm
from argus.kernels.grouped_weights import FAMILIES
from argus.kernels.schedules.grouped_weights import GroupedWeights
from argus.language import bf16, sm_90a
from argus.runtime.cpu.validate import validate

SIZES = {"B": 1, "H": 3, "S": 200, "G": 1, "T": 70}
"""Six tiles of 192 queries, which two blocks take in three rounds."""


def nothing(_: NextDivisions) -> list[str]:
    return []


def made() -> Kernel:
    return evolve(attention_64, target=evolve(sm_90a, processors=2)).trace("full")


def test_the_last_product_hides_the_divisions() -> None:
    text = cuda_text(made()).text
    before, _, after = text.rpartition("wgmma_wait<0>")
    assert "= next_quotient" in before
    assert "wgmma_commit" in before.rpartition("wgmma_wait<")[2].partition("computed(")[0]
    assert "computed(" not in after


@pytest.mark.nightly
def test_a_block_computes_each_of_its_tiles() -> None:
    assert validate(made(), (SIZES,), seeds=1).right


@pytest.mark.nightly
def test_divisions_of_the_tile_itself_are_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NextDivisions, "later", nothing)
    assert not validate(made(), (SIZES,), seeds=1).right


def test_a_product_in_a_loop_within_hides_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "LEAST", 1)
    text = cuda_text(gemm.trace("cooperative")).text
    assert "const int quotient" in text
    assert "computed(" not in text


ROWS = {"M": 1, "K": 136, "N": 264, "E": 2, "R": 3}
"""Of two experts, one of which has no rows: eight tiles, which two blocks take."""


class OnTwo(GroupedWeights):
    target = evolve(sm_90a, processors=2)


def gradients() -> Kernel:
    return evolve(FAMILIES[bf16], configs={"two": OnTwo()}).trace("two").launches[1].kernel


def test_where_no_product_runs_divisions_come_at_once() -> None:
    """In the other branch of the `if` around the products of a tile."""
    text = cuda_text(gradients()).text
    _, _, loop = text.rpartition("next_quotient0 = 0")
    products, _, nothing = loop.partition("} else {")
    assert "= computed(" in products.partition("wgmma_commit")[2]
    assert "= computed(" in nothing.partition("stmatrix")[0]


@pytest.mark.nightly
def test_tiles_with_and_without_products_follow_each_other() -> None:
    assert validate(gradients(), (ROWS,), seeds=3).right


@pytest.mark.nightly
def test_divisions_of_a_tile_before_are_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found = statements.last_wait

    def without_branch(loop: For) -> LastWait | None:
        wait = found(loop)
        return None if wait is None else LastWait(wait.wait)

    monkeypatch.setattr(statements, "last_wait", without_branch)
    assert not validate(gradients(), (ROWS,), seeds=3).right


def test_no_name_is_a_user_s() -> None:
    """A user's name ends in one underscore, and may occur in what is divided by and in the end of the loop."""
    divisions = NextDivisions("t_", (("quotient0", "t_ / later_t_"),), "0", "later_t_ * next_t_")
    lines = [*divisions.first(), *divisions.now(), *divisions.later()]

    declared = {name for line in lines for name in re.findall(r"int (\w+)(?: =|,)", line)}
    assert declared == {"t_", "quotient0", "next_quotient0", "next_number"}
